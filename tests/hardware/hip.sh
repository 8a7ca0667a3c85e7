#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# hip.sh [-k KERNELS] [-o FOLDER] [PART...]: builds this tree on a machine with an AMD GPU and ROCm
# and runs on hip://0 what the parts name, all of them if none is named:
#   conformance  the suite, and a piece of it with a wait after each operation
#   examples     each of them
#   graphs       random graphs, on the card alone and mixed with the processor
#   bench        the benchmark, as table and JSON, without a peer
# The build comes first in any case (`build` alone is only that); it needs a C compiler, cmake,
# ninja, and a clang for the card: clang-18 or later with lld, or ROCm's own. KERNELS is a folder
# that cuda-pack.sh filled elsewhere, for machines without such a clang. The build stays in
# build-card and is brought up to date the next time. Each step tells its result and seconds when it
# ends. Without /sys/class/kfd, as where a HIP forwards to another vendor's library, kernels are
# built for all targets. Installs nothing; its status is 0 if nothing failed. Ends before ten
# minutes are over: what is not begun by then is left out, and the table says so: the parts can be
# shared out among several calls.
#
# FOLDER (default: a new temporary one) gets table.txt, machine.txt with the card, the kernel and
# the ROCm that are here, logs.tar.gz, and of the benchmark bench.txt and bench.json. Please send us
# all of it; the logs name the folder of this tree.
parts='build conformance examples graphs bench'
# shellcheck source=tests/hardware/steps.sh
. "$(dirname "$0")/steps.sh"

# The targets of the GPUs that the kernel's driver knows, as the compiler calls them: 90010 is
# gfx90a.
card_targets() {
    sed -n 's/^gfx_target_version //p' /sys/class/kfd/kfd/topology/nodes/*/properties 2>/dev/null |
        sort -u | while read -r version; do
        [ "$version" = 0 ] || # a processor
            printf 'gfx%d%x%x\n' $((version / 10000)) $((version / 100 % 100)) $((version % 100))
    done
}

# What the results are results of.
machine() {
    uname -srm
    grep -m 1 '^model name' /proc/cpuinfo
    echo "kernel's driver: $(cat /sys/module/amdgpu/version 2>/dev/null || echo of the kernel)"
    echo "targets: $(card_targets | paste -sd ' ')"
    echo "ROCm: $(cat /opt/rocm/.info/version 2>/dev/null || echo 'not in /opt/rocm')"
    ldconfig -p | sed -n 's/.*\(libamdhip64[^ ]*\|libhsa-runtime64[^ ]*\) .*=> /\1 at /p'
    cc --version | head -n 1
    "$keel" devices -v hip://0
}

options=()
targets=$(card_targets | paste -sd ,)
if [ -z "$targets" ]; then
    echo "there is no AMD GPU in /sys/class/kfd: kernels are built for all targets"
elif [ -z "$kernels" ]; then
    options+=("-DKEEL_KERNELS_FOR=host,$targets")
fi
[ ! -x /opt/rocm/llvm/bin/clang ] || command -v clang-1{8,9} clang-2{0,1,2} >/dev/null ||
    options+=(-DKEEL_CLANG=/opt/rocm/llvm/bin/clang -DKEEL_LLD=/opt/rocm/llvm/bin/ld.lld)
build_all "${options[@]}" || finish "$targets"
machine >"$folder/machine.txt" 2>&1

if part conformance; then
    conformance conformance hip://0 hip.txt
    step conformance-serial 120 "$keel" conformance --device='hip://0?serial=1' -j 8 \
        --timeout=100 --filter='[bdi]*'
fi
if part examples; then step examples 120 bash -c "examples hip://0"; fi
if part graphs; then
    step graphs 120 "$keel" graphs --device=hip://0 --count=2000
    step graphs-mixed 60 "$keel" graphs --device=cpu:// --device=hip://0 --count=500
fi
if part bench; then bench bench hip://0 --alone; fi
finish "$(cat "$folder/machine.txt")"
