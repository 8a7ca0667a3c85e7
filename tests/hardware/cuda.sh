#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cuda.sh [-k KERNELS] [-o FOLDER] [PART...]: builds this tree on a machine with an NVIDIA GPU and
# runs on cuda://0 what the parts name, all of them if none is named:
#   conformance  the suite, and pieces of it with options of the device
#   examples     each of them
#   facts        what Keel relies on in NVIDIA's library: facts/
#   card         what card.c shows: contexts, streams, memory and kernels of other programs
#   tensors      PyTorch and Triton beside Keel
#   graphs       random graphs, on the card alone and mixed with the processor
#   bench        the benchmark, as table and JSON
#   hip          HIP's driver on this card: hip_on_cuda/
#   sanitizer    compute-sanitizer over conformance, card.c and the benchmark
# The build comes first in any case (`build` alone is only that); it stays in build-card and is
# brought up to date the next time. KERNELS is a folder that cuda-pack.sh filled elsewhere, for
# machines without clang. Each step tells its result and seconds when it ends. FOLDER (default: a
# new temporary one) gets table.txt, logs.tar.gz, and of the benchmarks bench.txt and bench.json,
# hip-bench.txt and hip-bench.json.
# Installs nothing; its status is 0 if nothing failed. Ends before ten minutes are over: what is not
# begun by then is left out, and the table says so: the parts can be shared out among several calls.
parts='build conformance examples facts card tensors graphs bench hip sanitizer'
# shellcheck source=tests/hardware/steps.sh
. "$(dirname "$0")/steps.sh"

# What nvcc makes for the card that is here, in each of its forms.
foreign() {
    local arch source=tests/hardware/card.cu
    arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
    nvcc -ptx -arch=compute_80 -o "$build/card.ptx" $source &&
        nvcc -cubin -arch="sm_$arch" -o "$build/card.cubin" $source &&
        nvcc -fatbin -gencode=arch=compute_80,code=sm_80 \
            -gencode=arch="compute_$arch,code=sm_$arch" -o "$build/card.fatbin" $source
}

# Programs that see of Keel what any program would.
programs() {
    local options=(-std=gnu17 -O1 -Iinclude -L"$build" -Wl,-rpath,"$build")
    cc "${options[@]}" -o "$build/card" tests/hardware/card.c -lkeel -ldl &&
        cc -std=gnu17 -O1 -I. -Isim -o "$build/facts" tests/hardware/facts/{,cuda/,rocm/}*.c \
            -lpthread -ldl &&
        cc "${options[@]}" -shared -fPIC -o "$build/tensors.so" tests/hardware/tensors.c -lkeel
}

conformance_run() {
    local expect=--expect=conformance/expect/cuda.txt
    conformance conformance cuda://0 cuda.txt
    # By the machine's own means: no pools of the vendor's, no graphs, a wait after each operation.
    step conformance-sync 120 "$keel" conformance --device='cuda://0?alloc=sync&commands=stream' \
        -j 8 --timeout=100 $expect --filter='[ap]*'
    step conformance-serial 120 "$keel" conformance --device='cuda://0?serial=1' -j 8 \
        --timeout=100 $expect --filter='[bdi]*'
}

# HIP's driver on this card, by way of hip_on_cuda.
hip_library() {
    local libcuda
    libcuda=$(ldconfig -p | awk '$1 == "libcuda.so.1" { print $NF; exit }')
    cc -std=gnu17 -O2 -shared -fPIC -fvisibility=hidden -Wl,-soname,libamdhip64.so.6 \
        -DKEEL_KERNELS='"src/drivers/cuda/builtin.ptx"' -o "$build/libamdhip64.so.6" \
        tests/hardware/hip_on_cuda/*.c "${libcuda:--l:libcuda.so.1}" -lpthread &&
        echo "on ${libcuda:-libcuda.so.1}"
}
hip_run() {
    local device='hip://0?lib=build-card/libamdhip64.so.6'
    step hip-library 60 bash -c hip_library || return
    step hip-device 60 "$keel" devices -v "$device"
    conformance hip-conformance "$device" hip-on-cuda.txt
    step hip-examples 60 bash -c "examples '$device'"
    step hip-graphs 60 "$keel" graphs --device="$device" --count=1000
    step hip-graphs-mixed 60 "$keel" graphs --device=cpu:// --device=cuda://0 --device="$device" \
        --count=500
    bench hip-bench "$device"
}

# Conformance under compute-sanitizer runs in one process for each piece, for as long as is said;
# errors that calls return are what many tests ask for. Left out are branch.several_in_flight, which
# passes alone and loses the device under memcheck, as does a program of the driver API alone that
# changes nodes of a conditional body between launches (docs/hardware.md); gpu.*, whose tests lose
# the device, measure time or wait for each other's kernels; and racecheck over all but
# the kernels with workgroup memory, which is all it looks at.
check() { # TOOL-WHAT SECONDS COMMAND...
    step "$1" "$2" compute-sanitizer --tool "${1%%-*}" --error-exitcode 3 "${@:3}"
}
under() { # TOOL-WHAT SECONDS FILTER
    check "$1" $(($2 + 40)) --report-api-errors no "$keel" conformance --device=cuda://0 \
        --under-tool --timeout=60 --seconds="$2" --filter="$3"
}
sanitizer_run() {
    under memcheck-a-f 25 '[ac-f]*'
    under memcheck-b 10 'b[!r]*'
    under memcheck-branch 10 'branch.[!s]*'
    under memcheck-switch 10 'branch.s[!e]*'
    under memcheck-h-l 35 '[h-l]*'
    under memcheck-m-q 20 '[m-q]*'
    under memcheck-recordings 40 'r*'
    under memcheck-s-z 25 '[s-z]*'
    under racecheck-dispatch 15 'dispatch*'
    under racecheck-language 30 'language*'
    check memcheck-card 60 --report-api-errors no "$build/card" libcuda.so.1
    check racecheck-card 60 "$build/card" libcuda.so.1 "$build"
    check memcheck-bench 120 "$keel" bench --device=cuda://0 --once
}

the_card() {
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null ||
        echo "no nvidia-smi"
}

export -f foreign programs hip_library
{ build_all && step programs 60 bash -c programs; } || finish "$(the_card)"
images=() # the folder of what nvcc made, if it could
if command -v nvcc >/dev/null; then
    if part card || part sanitizer; then step foreign 60 bash -c foreign && images=("$build"); fi
else
    note foreign - - "skipped: there is no nvcc here"
fi

if part conformance; then conformance_run; fi
if part examples; then step examples 120 bash -c "examples cuda://0"; fi
if part facts; then
    step facts 300 "$build/facts" --lib=libcuda.so.1 \
        --kernels=tests/hardware/facts/cuda/kernels/card.ptx
fi
if part card; then step card 60 "$build/card" libcuda.so.1 "${images[@]}"; fi
if part tensors; then step tensors 100 python3 tests/hardware/tensors.py "$build/tensors.so"; fi
if part graphs; then
    step graphs 120 "$keel" graphs --device=cuda://0 --count=2000
    step graphs-mixed 60 "$keel" graphs --device=cpu:// --device=cuda://0 --count=500
fi
if part bench; then bench bench cuda://0; fi
if part hip; then hip_run; fi
if part sanitizer; then
    if command -v compute-sanitizer >/dev/null; then
        sanitizer_run
    else
        note sanitizer - - "skipped: there is no compute-sanitizer here"
    fi
fi
finish "$(the_card)"
