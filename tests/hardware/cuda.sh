#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cuda.sh KERNELS [FOLDER]: builds this tree on a machine with an NVIDIA GPU and runs conformance,
# random graphs and the benchmark on cuda://0, the latter under compute-sanitizer where that is
# there, and ends with a table. KERNELS is a folder of containers made elsewhere, for x86_64-linux
# and nvptx:sm_70, so that the machine needs no clang: conformance_kernels.keel,
# conformance_language.keel, graph_kernels.keel and bench_kernels.keel. Logs go to FOLDER (default:
# a new temporary one). Installs nothing; its status is 0 if nothing failed. Takes six minutes.
set -u
[ $# -ge 1 ] || { sed -n '3,8s/^# //p' "$0"; exit 2; }
kernels=$(cd "$1" && pwd) || exit 2
cd "$(dirname "$0")/../.."
logs=${2:-$(mktemp -d)}
mkdir -p "$logs" && logs=$(cd "$logs" && pwd) || exit 1
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
table=() failed=0

note() {
    table+=("$(printf '%-24s %4s  %s' "$1" "$2" "$3")")
}

# step NAME SECONDS COMMAND...: runs it with a time limit; a row of the table is its last line.
step() {
    local name=$1 limit=$2 status
    shift 2
    timeout --kill-after=10 "$limit" "$@" >"$logs/$name.log" 2>&1
    status=$?
    [ $status = 0 ] || { failed=1; grep '^FAILED' "$logs/$name.log" | cut -c1-200; }
    note "$name" "$status" "$(tail -n 1 "$logs/$name.log" | cut -c1-90)"
}

configure() {
    cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DKEEL_KERNELS="$kernels" \
        -DKEEL_TESTS=OFF -DKEEL_WERROR=OFF
}

export -f configure
export build kernels
step configure 60 bash -c configure
step build 300 ninja -C "$build" keel_tool
keel=$build/keel
# In pieces: a context takes a second to make, and the driver makes one at a time.
for tests in '[a-e]*' '[f-k]*' 'l*' '[m-p]*' '[q-s]*' '[t-z]*'; do
    step "conformance-${tests//[^a-z-]/}" 180 "$keel" conformance --device=cuda://0 -j 8 \
        --timeout=100 --filter="$tests"
done
step graphs 120 "$keel" graphs --device=cuda://0 --count=2000
step graphs-mixed 60 "$keel" graphs --device=cpu:// --device=cuda://0 --count=500
step bench 200 "$keel" bench --device=cuda://0
step bench-json 100 "$keel" bench --device=cuda://0 --quick --json
if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck; do
        step "sanitizer-$tool" 120 compute-sanitizer --tool "$tool" --error-exitcode 3 \
            "$keel" bench --device=cuda://0 --once
    done
else
    note sanitizer - "skipped: there is no compute-sanitizer here"
fi

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
printf '%s\n' "${table[@]}"
exit $failed
