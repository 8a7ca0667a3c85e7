#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# amdgpu.sh [-k KERNELS] [-o FOLDER] [PART...]: builds this tree on a machine with an AMD GPU and
# ROCm's runtime (libhsa-runtime64; HIP is not needed) and runs on amdgpu://0 what the parts name,
# all of them if none is named:
#   conformance  the suite
#   host         the suite, as the host schedules
#   several      all GPUs as one device, where there are several of a kind
#   examples     each of them
#   graphs       random graphs, on the card alone and mixed with the processor
#   bench        the benchmark, as table and JSON, without a peer
# The build comes first in any case (`build` alone is only that); it needs a C compiler, cmake,
# ninja, pkg-config, hwloc, and a clang for the card: that of ROCm 6.2 or later, or clang-18 or
# later with lld; the script says which of them is not here. KERNELS is a folder that cuda-pack.sh
# filled elsewhere, for machines without such a clang. The build stays in build-card and is brought
# up to date the next time. Each step tells its result and seconds when it ends. Without /dev/kfd
# it says so, and ends with 77; `keel sim -- amdgpu.sh` tries the script itself. Installs nothing;
# its status is 0 if nothing failed. Ends before ten minutes are over: what is not begun by then is
# left out, and the table says so: the parts can be shared out among several calls.
#
# FOLDER (default: a new temporary one) gets table.txt, machine.txt with the card, the kernel and
# the ROCm that are here, logs.tar.gz, and of the benchmark bench.txt and bench.json. Please send us
# all of it; the logs name the folder of this tree.
parts='build conformance host several examples graphs bench'
# shellcheck source=tests/hardware/steps.sh
. "$(dirname "$0")/steps.sh"
# shellcheck source=tests/hardware/amd.sh
. tests/hardware/amd.sh

[ -e /dev/kfd ] || [ -n "${KEEL_SIM_GPUS:-}" ] || {
    echo "there is no /dev/kfd: the kernel has no driver for AMD's GPUs loaded (amdgpu), or this is"
    echo "a container that was not given the device. tests/hardware/amdgpu.sh needs a card; without"
    echo "one, the software GPU runs the same tests: keel sim --gpus=gfx90a (docs/amdgpu.md)."
    exit 77
}
if [ -e /dev/kfd ] && [ ! -w /dev/kfd ]; then
    echo "/dev/kfd may not be used by $(id -un): it belongs to group $(stat -c %G /dev/kfd)."
    exit 77
fi
card_build amdgpu://0

# The numbers of the GPUs, with commas between them, if there are several of one kind.
group() {
    [ "$(card_targets | wc -l)" = 1 ] || return 0
    "$keel" devices | grep -o 'amdgpu://[0-9]*' | sort -u | sed 's|.*/||' | paste -sd ,
}

if part conformance; then conformance conformance amdgpu://0 amdgpu.txt; fi
if part host; then conformance host 'amdgpu://0?scheduler=host' amdgpu.txt; fi
if part several; then
    gpus=$(group)
    case $gpus in
    *,*) conformance several "amdgpu://$gpus" amdgpu-group.txt ;;
    *) note several - - "left out: there are no two GPUs of one kind" ;;
    esac
fi
if part examples; then step examples 120 bash -c "examples amdgpu://0"; fi
if part graphs; then
    step graphs 120 "$keel" graphs --device=amdgpu://0 --count=2000
    step graphs-mixed 60 "$keel" graphs --device=cpu:// --device=amdgpu://0 --count=500
fi
if part bench; then bench bench amdgpu://0 --alone; fi
finish "$(cat "$folder/machine.txt")"
