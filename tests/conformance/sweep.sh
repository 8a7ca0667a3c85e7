#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# sweep.sh BUILD DRIVER [EACH [AREA...]]: conformance on a driver (cuda, hip, amdgpu or metal) over
# its vendor's library in software, or the real one over a GPU in software, where every call of
# every function of the library is refused once, fails once, and once takes the device with it. EACH
# (12; 0: all of them) bounds how many calls of one function are tried in one test: polls come by
# the thousand.
#
# Goes area by area, prints a row for each as it ends, and keeps its output in
# BUILD/logs/sweep/DRIVER. An area that passed is not run again until the programs change: begin
# anew where it was interrupted by giving the same command. Ends with the sum of what was run.
set -u
build=${1:?which build, as: tests/conformance/sweep.sh build cuda} driver=${2-} each=${3:-12}
shift $(($# < 3 ? $# : 3))
keel=$build/keel logs=$build/logs/sweep/$driver
on_amd=("$keel" sim --cache="$build/sim/amd/cache" --gpus=gfx90a --)
case $driver in
cuda) library=$build/sim/cuda/libcuda.so.1 host=() ;;
hip) library=$build/sim/hip/libkeelhip.so host=("${on_amd[@]}") ;;
amdgpu) library=$build/sim/hsa/libkeelhsa.so host=("${on_amd[@]}") ;;
metal)
    library=$build/sim/metal/libMetal.so host=()
    export KEEL_SIM_METAL=cache=$build/sim/metal/cache # of compiled kernels
    ;;
*)
    echo "no driver has a sweep that is called '$driver': cuda, hip, amdgpu and metal have" >&2
    exit 2
    ;;
esac
device="$driver://0?lib=$library"
mkdir -p "$logs"
programs=("$keel" "$library")
[ ${#host[@]} = 0 ] || programs+=("$build/sim/amd/libkeelkfd.so")
stamp="$each $(cat "${programs[@]}" | sha256sum)" || exit 2
areas=${*:-$("$keel" conformance --device="$device" --list | sed 's/\..*//' | sort -u)}
options=()
[ "$each" = 0 ] || options=(--each="$each")
passed=0 failed=0 skipped=0 runs=0

for area in $areas; do
    log=$logs/$area.log start=$SECONDS
    if [ "$(cat "$logs/$area.passed" 2>/dev/null)" = "$stamp" ]; then
        when="before"
    else
        "${host[@]}" "$keel" conformance --device="$device" --mode=fault "${options[@]}" \
            --filter="$area.*" >"$log" && echo "$stamp" >"$logs/$area.passed"
        status=$?
        [ $status = 130 ] && exit 130
        when="$((SECONDS - start)) s"
    fi
    read -r n p f s < <(awk '/^[0-9]+ runs$/ { runs = $1 }
        /^[0-9]+ passed/ { print runs, $1, $3, $5; told = 1 }
        END { if (!told) print 0, 0, 1, 0 }' "$log")
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s)) runs=$((runs + n))
    printf '%-18s %8d runs: %d passed, %d failed, %d skipped (%s)\n' "$area" "$n" "$p" "$f" "$s" \
        "$when"
    [ "$f" = 0 ] || grep -E '^FAILED|^ +again' "$log"
done
echo "$runs runs"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
