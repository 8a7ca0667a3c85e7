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
# built for all targets; without a HIP, too, it says what is missing, and ends with 77. Installs
# nothing; its status is 0 if nothing failed. Ends before ten minutes are over: what is not begun by
# then is left out, and the table says so: the parts can be shared out among several calls.
#
# FOLDER (default: a new temporary one) gets table.txt, machine.txt with the card, the kernel and
# the ROCm that are here, logs.tar.gz, and of the benchmark bench.txt and bench.json. Please send us
# all of it; the logs name the folder of this tree.
parts='build conformance examples graphs bench'
# shellcheck source=tests/hardware/steps.sh
. "$(dirname "$0")/steps.sh"

# shellcheck source=tests/hardware/amd.sh
. tests/hardware/amd.sh

# Whether the loader finds a HIP, or ROCm is where AMD installs it.
has_hip() {
    [ -d /opt/rocm/lib ] || PATH=$PATH:/sbin:/usr/sbin ldconfig -p | grep -q libamdhip64
}
if [ -z "$(card_targets)" ] && ! has_hip; then
    echo "there is neither an AMD GPU in /sys/class/kfd nor a libamdhip64 here: nothing can be run"
    echo "it takes the kernel's amdgpu driver, a card, and ROCm 5 or later"
    exit 77
fi
card_build hip://0
step device 60 "$keel" devices -v hip://0 || finish "$(cat "$folder/machine.txt")"

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
