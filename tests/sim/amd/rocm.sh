#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# rocm.sh BUILD SUITE...: fetches the ROCm of Debian's suites (sim/rocm), compiles the tests of ROCm
# and HIP by each suite's own compiler, and runs them there on the software GPU of the build. Then
# compares what Keel declares of HIP and HSA with the suite's headers, runs the facts about HIP, and
# conformance and random graphs on hip:// and amdgpu:// there, on hip:// also where memory and calls
# fail. The last line is `N passed, N failed, N skipped`. Logs are in BUILD/rocm/SUITE.tests.
# ONLY=keel leaves out all but Keel's own tests, ONLY=hip and ONLY=amdgpu all but those of one
# driver, ONLY=trace all but those of the tracer.
set -u
[ $# -ge 2 ] || { sed -n '3,9s/^# //p' "$0"; exit 2; }
cd "$(dirname "$0")/../../.." || exit 1
keel=$1/keel build=$1
shift
export LC_ALL=C
tests=tests/sim/amd
targets=$("$keel" sim --help | grep -o 'gfx9[0-9a-f]*' | sort -u)
passed=0 failed=0 skipped=0

inside() { "$keel" sim --rocm="$suite" "$@"; }

# make NAME SOURCE... -- COMMAND...: compiles in the root, if a source, the root or this script has
# changed.
make() {
    local name=$1 source stale= sources=("$build/rocm/$suite/versions" $tests/rocm.sh)
    shift
    while [ "$1" != -- ]; do
        sources+=("$1")
        shift
    done
    shift
    for source in "${sources[@]}"; do [ "$out/$name" -nt "$source" ] || stale=1; done
    [ -n "$stale" ] || return 0
    echo "$suite: compiling $name"
    if ! inside -- "$@" -o "$out/$name" >"$out/$name.log" 2>&1; then
        rm -f "$out/$name"
        failed=$((failed + 1))
        echo "$suite: $name does not compile:"
        tail -n 20 "$out/$name.log"
        return 1
    fi
}

# run NAME TEXT GPUS PROGRAM...: passes if the program ends well and its output has the text. A
# program that counts, counts for so many; one that ends with 77 is skipped. It may take `limit`
# seconds, if that is set.
run() {
    local name=$1 text=$2 gpus=$3 log=$out/$1.log good=0 status counts p f s
    shift 3
    timeout --kill-after=10 "${limit:-600}" "$keel" sim --rocm="$suite" --gpus="$gpus" -- "$@" \
        >"$log" 2>&1
    status=$?
    [ $status = 0 ] && grep -q -e "$text" "$log" && good=1
    counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" | tr -d 'a-z,')
    read -r p f s <<<"${counts:-$good $((1 - good)) 0}"
    [ $good = 1 ] || [ "$f" != 0 ] || f=1
    [ $status != 77 ] || p=0 f=0 s=1
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    printf '%s: %-24s %s passed, %s failed, %s skipped\n' "$suite" "$name" "$p" "$f" "$s"
    [ "$f" = 0 ] || tail -n 40 "$log" | sed 's/^/    /'
}

# trace CASE PROGRAM...: passes if the trace of the program has what it did; tests/capture/check.py.
trace() {
    local log=$out/trace-$1.log good=0 program=$2
    [ ! -x "$program" ] || [ ! -e "$build/libkeeltrace.so" ] || ! command -v python3 >/dev/null || {
        KEEL_SIM_ROCM=$suite timeout --kill-after=10 600 python3 tests/capture/check.py "$keel" \
            "$PWD/$build/libkeeltrace.so" "$build/tests/capture/capture_dump" "${1%-*}" "${@:2}" \
            >"$log" 2>&1 && good=1
        passed=$((passed + good)) failed=$((failed + 1 - good))
        printf '%s: %-24s %s passed, %s failed\n' "$suite" "trace-$1" $good $((1 - good))
        [ $good = 1 ] || tail -n 40 "$log" | sed 's/^/    /'
        return
    }
    skipped=$((skipped + 1))
    echo "$suite: trace-$1: python3 and libkeeltrace.so are needed"
}

# What the suite's compiler knows of what the software GPU is.
known_targets() {
    local known target
    known=$(inside -- "llvm-mc-${clang#*-}" -triple=amdgcn-amd-amdhsa -mcpu=help </dev/null 2>&1)
    for target in $targets; do
        case $known in *$target*) echo "$target" ;; esac
    done
}

flags="-std=c17 -O1 -w -D_GNU_SOURCE -D__HIP_PLATFORM_AMD__ -I. -pthread"
compile_kernels() {
    local target bad=0
    for target in $mine; do
        make "$target-O2-queue.hsaco" $tests/kernels/*.[ch] -- "$clang" -std=c2x -O2 -nogpulib \
            -target amdgcn-amd-amdhsa -mcpu="$target" -mcode-object-version=4 -ffreestanding \
            -ffp-contract=off $tests/kernels/queue.c || bad=1
    done
    return $bad
}

# Programs to be traced.
compile_traced() {
    local bad=0 hip
    hip=$(ls "$build/rocm/$suite/libraries" | grep '^libamdhip64\.so\.[0-9]*$')
    make trace-hip tests/capture/hip.c -- "$clang" $flags tests/capture/hip.c -lamdhip64 || bad=1
    make trace-opened tests/capture/hip.c -- "$clang" $flags -DOPENED -DHIP_LIBRARY=\"$hip\" \
        tests/capture/hip.c || bad=1
    make trace-private tests/capture/hip.c -- "$clang" $flags -DOPENED -DPRIVATE \
        -DHIP_LIBRARY=\"$hip\" tests/capture/hip.c || bad=1
    make trace-counted tests/capture/hip.c -- "$clang" $flags -DCOUNTED tests/capture/hip.c \
        -lamdhip64 || bad=1
    # Only releases with a dispatch table have its header.
    [ ! -e "$build/rocm/$suite/usr/include/hip/amd_detail/hip_api_trace.hpp" ] ||
        make trace-slots tests/capture/slots.cpp src/capture/hip/{slots,slots7,calls}.def \
            src/capture/hip/abi.h -- \
            "${clang/clang/clang++}" -std=c++17 -w -D__HIP_PLATFORM_AMD__ -Isrc \
            -c tests/capture/slots.cpp || bad=1
    make trace-hsa tests/capture/hsa.c $tests/hsa.[ch] -- "$clang" $flags -Itests \
        tests/capture/hsa.c $tests/hsa.c -lhsa-runtime64 || bad=1
    return $bad
}

compile_all() {
    local target test bad=0 offload= rtc=
    compile_kernels && compile_traced || bad=1
    for target in $mine; do offload="$offload --offload-arch=$target"; done
    for test in hsa strict mistake; do
        make $test $tests/${test}_test.c $tests/hsa.[ch] -- "$clang" $flags $tests/${test}_test.c \
            $tests/hsa.c -lhsa-runtime64 || bad=1
    done
    make hip $tests/hip_test.c -- "$clang" $flags $tests/hip_test.c -lamdhip64 || bad=1
    make app $tests/app.hip -- hipcc -O2 $offload -w $tests/app.hip || bad=1
    # hipRTC is a library of its own from version 6 on.
    [ ! -e "$build/rocm/$suite/libraries/libhiprtc.so" ] || rtc=-lhiprtc
    make programs $tests/hip/* -- hipcc -std=c++17 -O2 $offload -Wall -Wextra -pthread \
        $tests/hip/*.hip $rtc || bad=1
    return $bad
}

# The tracer knows what the suite's HIP has.
run_listed() {
    local log=$out/trace-listed.log good=0 hip
    hip=$(ls "$build/rocm/$suite/libraries/"libamdhip64.so.* | head -n 1)
    tests/capture/listed.sh "$build/libkeeltrace.so" "$hip" >"$log" 2>&1 && good=1
    passed=$((passed + good)) failed=$((failed + 1 - good))
    printf '%s: %-24s %s passed, %s failed\n' "$suite" trace-listed $good $((1 - good))
    [ $good = 1 ] || sed 's/^/    /' "$log"
}

run_traced() {
    local case
    [ ! -e "$build/libkeeltrace.so" ] || run_listed
    trace hsa "$out/trace-hsa" "$out"
    for case in plain streams threads graph fork compiled; do
        trace $case "$out/trace-hip" "$out/gfx90a-O2-queue.hsaco" $case
    done
    trace plain-opened "$out/trace-opened" "$out/gfx90a-O2-queue.hsaco" plain
    trace private "$out/trace-private" "$out/gfx90a-O2-queue.hsaco" plain
    trace counted "$out/trace-counted" "$out/gfx90a-O2-queue.hsaco" plain
}

run_all() {
    local gpus
    run rocminfo 'amdhsa--gfx90a' gfx906,gfx90a rocminfo
    for gpus in gfx900 gfx906,gfx908 gfx90a,gfx90a $newest; do
        run "hsa-$gpus" '' "$gpus" "$out/hsa" "$out"
    done
    run strict '' gfx90a "$out/strict" "$out"
    run mistake '' gfx90a "$out/mistake" "$out"
    for gpus in gfx900 gfx906 gfx908 gfx90a,gfx90a $newest; do
        run "hip-$gpus" '' "$gpus" "$out/hip" "$out"
        run "app-$gpus" '^0 wrong' "${gpus%,*}" "$out/app"
        run "programs-$gpus" ' 0 failed' "$gpus" "$out/programs"
    done
    run_traced
    KEEL_SIM_SEED=11 KEEL_SIM_THREADS=2 run programs-shuffled ' 0 failed' gfx90a,gfx90a \
        "$out/programs"
}

# What Keel's programs are linked with and the suite's /usr does not have.
own_libraries() {
    local library path
    mkdir -p "$out/own"
    ldd "$keel" "$build/tests/drivers/triton/test_drivers_triton" |
        sed -n 's/^\t\(.*\) => \(.*\) (.*/\1 \2/p' | while read -r library path; do
        [ -e "$build/rocm/$suite/libraries/$library" ] || cp -L "$path" "$out/own/"
    done
}

# abi DRIVER HEADERS SOURCE...: what a driver of Keel's declares is what the suite's headers do.
abi() {
    local good=0 driver=$1 headers=$2 log=$out/keel-abi-$1.log folder=tests/drivers/$1
    shift 2
    mkdir -p "$out/include"
    ln -sfn "$PWD/$build/rocm/$suite/usr/include/$headers" "$out/include/$headers"
    "${CC:-cc}" -D_GNU_SOURCE -w -Iinclude -Isrc -Itests -I. -isystem "$out/include" \
        "$folder/abi_test.c" "$folder/abi_ours.c" "$@" -lcmocka -o "$out/abi-$driver" \
        >"$log" 2>&1 && "$out/abi-$driver" >>"$log" 2>&1 && good=1
    passed=$((passed + good)) failed=$((failed + 1 - good))
    printf '%s: %-24s %s passed, %s failed\n' "$suite" "keel-abi-$driver" $good $((1 - good))
    [ $good = 1 ] || tail -n 20 "$log"
}

# triton DRIVER: kernels of Triton's, where that can be had.
triton() {
    tests/drivers/triton/compile.sh "$build" >"$out/triton.log" 2>&1
    case $? in
    0) run "keel-triton-$1" PASSED gfx90a "$build/tests/drivers/triton/test_drivers_triton" \
        "$1://0" "$PWD/$build/triton/gfx90a" ;;
    77) skipped=$((skipped + 1)); tail -n 1 "$out/triton.log" ;;
    *) failed=$((failed + 1)); tail -n 20 "$out/triton.log" ;;
    esac
}

# generic DRIVER: code for a family of GPUs, by this machine's compiler; releases before 6.4 load
# none.
generic() {
    local program=$build/tests/drivers/$1/test_drivers_$1_hidden file=$out/generic.hsaco
    [ ! -e "$build/rocm/$suite/libraries/libamdhip64.so.5" ] || return 0
    if clang-19 -x cl -cl-std=CL2.0 -Xclang -finclude-default-header -nogpulib -O2 -w \
        --target=amdgcn-amd-amdhsa -mcpu=gfx9-generic -mcode-object-version=6 \
        tests/drivers/generic.cl -o "$file" >"$out/generic.log" 2>&1; then
        run "keel-generic-$1" PASSED gfx906 "$program" "$file"
    else
        failed=$((failed + 1)) && cat "$out/generic.log"
    fi
}

# What hip:// must have of the release's own. Its conformance may lack as much as that of any
# release, and would not notice.
hip_has() {
    case $(inside --gpus=gfx90a -- "$keel" devices -v hip://0 |
        sed -n 's/^ *interface *HIP //p') in
    5.2) echo '^ *native  *events,.* host import, dlpack' ;;
    5.*) echo '^ *native  *timestamps,.* host import, dlpack' ;;
    6.*) echo '^ *native  *events,.* host import, fd export' ;;
    *) echo '^ *native  *timestamps,.* host import, fd export' ;;
    esac
}

# Keel's drivers of HIP and of HSA: their declarations, what HIP's takes to be so of this release,
# conformance, random graphs, and Triton.
run_hip() {
    local hip
    hip=$(ls "$build/rocm/$suite/libraries" | grep '^libamdhip64\.so\.[0-9]*$')
    abi hip hip src/drivers/hip/releases.c
    compile_kernels && run keel-facts ' 0 failed' gfx90a,gfx90a \
        "$build/tests/hardware/facts/facts" --lib="$hip" --kernels="$out"
    KEEL_SIM_SVM=1 run keel-facts-svm ' 0 failed' gfx90a,gfx90a \
        "$build/tests/hardware/facts/facts" --lib="$hip" --kernels="$out" --filter='memory.*'
    run keel-has "$(hip_has)" gfx90a "$keel" devices -v hip://0
    limit=3600 run keel-conformance ' 0 failed' gfx90a "$keel" conformance --device=hip://0 \
        --expect=conformance/expect/hip.txt
    KEEL_SIM_SVM=1 limit=3600 run keel-conformance-svm ' 0 failed' gfx90a "$keel" conformance \
        --device=hip://0 --expect=conformance/expect/hip.txt
    run keel-torture ' 0 failed' gfx90a "$keel" conformance --device=hip://0 --mode=torture \
        --seed=3 --tests=60 --samples=4
    run keel-shuffle ' 0 failed' gfx90a "$keel" conformance --device=hip://0 --mode=shuffle \
        --seed=3 --tests=100 --runs=1
    run keel-fault ' 0 failed' gfx90a "$keel" conformance --mode=fault --seed=3 --tests=60 \
        --device="hip://0?lib=$build/sim/hip/libkeelhip.so" --samples=4
    run keel-graphs ' 0 failed' gfx90a,gfx90a "$keel" graphs --device=cpu:// --device=hip://1 \
        --device=hip://0 --seed=550 --count=150
    run keel-beside PASSED gfx90a "$build/tests/drivers/hip/test_drivers_hip_beside"
    run keel-hip-amdgpu ' 0 failed' gfx90a,gfx90a "$keel" conformance --device=hip://0 \
        --partner=amdgpu://1 --filter='across.*'
    KEEL_SIM_SVM=1 run keel-hip-amdgpu-svm ' 0 failed' gfx90a,gfx90a "$keel" conformance \
        --device=hip://0 --partner=amdgpu://1 --filter='across.*'
    run keel-hip-amdgpu-graphs ' 0 failed' gfx90a,gfx90a "$keel" graphs --device=hip://0 \
        --device=amdgpu://1 --device=cpu:// --count=200
    triton hip
    generic hip
}
run_amdgpu() {
    abi amdgpu hsa
    limit=3600 run keel-amdgpu ' 0 failed' gfx90a "$keel" conformance --device=amdgpu://0 \
        --expect=conformance/expect/amdgpu.txt
    KEEL_SIM_SVM=1 limit=3600 run keel-amdgpu-svm ' 0 failed' gfx90a "$keel" conformance \
        --device=amdgpu://0 --expect=conformance/expect/amdgpu.txt
    [ -z "$newest" ] || limit=3600 run "keel-amdgpu-$newest" ' 0 failed' "$newest" "$keel" \
        conformance --device=amdgpu://0 --expect=conformance/expect/amdgpu.txt
    local gpu
    for gpu in gfx90a $newest; do
        limit=3600 run "keel-amdgpu-group-$gpu" ' 0 failed' "$gpu,$gpu" "$keel" conformance \
            --device=amdgpu://0,1 --expect=conformance/expect/amdgpu-group.txt
        KEEL_SIM_WEAK=1 KEEL_SIM_STRICT=1 run "keel-amdgpu-fence-$gpu" PASSED "$gpu,$gpu" \
            "$build/tests/drivers/amdgpu/test_drivers_amdgpu_fence"
    done
    limit=3600 run keel-amdgpu-host ' 0 failed' gfx90a "$keel" conformance \
        --device='amdgpu://0?scheduler=host' --expect=conformance/expect/amdgpu.txt
    ! grep -q HSA_ALLOCATE_QUEUE_DEV_MEM "$build/rocm/$suite/libraries/libhsa-runtime64.so.1" ||
        KEEL_SIM_BAR=1 HSA_ALLOCATE_QUEUE_DEV_MEM=1 run keel-amdgpu-rings ' 0 failed' gfx90a \
            "$keel" conformance --device='amdgpu://0?rings=device' --filter='[sqt]*.*'
    run keel-amdgpu-graphs ' 0 failed' gfx90a,gfx90a "$keel" graphs --device=cpu:// \
        --device='amdgpu://0?scheduler=host' --device=amdgpu://1 --count=100
    triton amdgpu
    generic amdgpu
}
run_keel() {
    own_libraries
    export LD_LIBRARY_PATH=$out/own
    [ "${ONLY:-}" = amdgpu ] || run_hip
    [ "${ONLY:-}" = hip ] || run_amdgpu
    unset LD_LIBRARY_PATH
}

for suite; do
    sim/rocm "$suite" --root="$build/rocm/$suite"
    case $? in
    0) ;;
    77) skipped=$((skipped + 1)); continue ;;
    *) failed=$((failed + 1)); continue ;;
    esac
    out=$PWD/$build/rocm/$suite.tests
    clang=$(sed -n 's/^\(clang-[0-9]*\) .*/\1/p' "$build/rocm/$suite/versions")
    mine=$(known_targets)
    newest=$(echo "$mine" | grep gfx942)
    [ "$mine" = "$(cat "$out/targets" 2>/dev/null)" ] || rm -rf "$out" # it is for others
    mkdir -p "$out"
    echo "$mine" >"$out/targets"
    case ${ONLY:-} in
    trace) compile_kernels && compile_traced && run_traced ;;
    '') ! compile_all || run_all ;;
    esac
    [ "${ONLY:-}" = trace ] || run_keel
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ] && [ $((passed + skipped)) -gt 0 ]
