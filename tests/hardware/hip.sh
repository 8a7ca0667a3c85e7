#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# hip.sh [-k KERNELS] [-o FOLDER] [PART...]: builds this tree on a machine with an AMD GPU and ROCm
# and runs on hip://0 what the parts name, all of them if none is named:
#   conformance  the suite, and a piece of it with a wait after each operation
#   examples     each of them
#   facts        what Keel relies on in HIP: facts/; needs the clang also with -k
#   graphs       random graphs, on the card alone and mixed with the processor
#   bench        the benchmark, as table and JSON, without a peer
# The build comes first in any case (`build` alone is only that); it needs a C compiler, cmake,
# ninja, pkg-config, hwloc, and a clang for the card: that of ROCm 6.2 or later, or clang-18 or
# later with lld; the script says which of them is not here. KERNELS is a folder that cuda-pack.sh
# filled elsewhere, for machines without such a clang. HIP_VISIBLE_DEVICES=1 has the second card
# tried. The build stays in build-card and is brought up to date the next time. Each step tells its
# result and seconds when it ends. Without /sys/class/kfd, as where a HIP forwards to another
# vendor's library, kernels are built for all targets. Where there is no HIP, or it finds no GPU,
# the script says so before it builds anything, and ends with 77. Installs nothing; its status is 0
# if nothing failed. Ends before ten minutes are over: what is not begun by then is left out, and
# the table says so: the parts can be shared out among several calls.
#
# FOLDER (default: a new temporary one) gets table.txt, machine.txt with the card, the kernel and
# the ROCm that are here, logs.tar.gz, and of the benchmark bench.txt and bench.json. Please send us
# all of it; the logs name the folder of this tree.
parts='build conformance examples facts graphs bench'
# shellcheck source=tests/hardware/steps.sh
. "$(dirname "$0")/steps.sh"

# shellcheck source=tests/hardware/amd.sh
. tests/hardware/amd.sh

# Whether the loader finds a HIP, or ROCm is where AMD installs it.
has_hip() {
    local folder folders
    [ -d /opt/rocm/lib ] && return
    PATH=$PATH:/sbin:/usr/sbin ldconfig -p | grep -q libamdhip64 && return
    IFS=: read -ra folders <<<"${LD_LIBRARY_PATH:-}"
    for folder in "${folders[@]}"; do
        compgen -G "$folder/libamdhip64.so*" >/dev/null && return
    done
    return 1
}
if [ -z "$(card_targets)" ] && ! has_hip; then
    echo "there is neither an AMD GPU in /sys/class/kfd nor a libamdhip64 here: nothing can be run"
    echo "it takes the kernel's amdgpu driver, a card, and ROCm 5.2 or later"
    exit 77
fi

# Names the HIP that Keel would open; or says what it lacks.
hip_find() {
    cc -x c - -o "$logs/find" -ldl <<'END' && "$logs/find"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
int main(void)
{
    static const char *const names[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"};
    void *hip = NULL;
    int (*count_gpus)(int *count), count = 0;
    int at = 0, there = 0;
    char why[512] = "";
    for (; at < 3 && !hip; at += !hip) {
        hip = dlopen(names[at], RTLD_NOW);
        if (hip || there) continue;
        snprintf(why, sizeof why, "%s", dlerror());
        there = strncmp(why, names[at], strlen(names[at])); // and lacks something itself
    }
    if (!hip) return printf("it cannot be opened: %s\n", why), 0;
    *(void **)&count_gpus = dlsym(hip, "hipGetDeviceCount");
    int error = count_gpus ? count_gpus(&count) : -1;
    if (error || count < 1)
        printf("it finds no GPU: hipGetDeviceCount returned %d\n", error);
    else
        puts(names[at]);
    return 0;
}
END
}
tools_check
library=$(hip_find) || exit
if [[ $library != lib* && -d /opt/rocm/lib ]]; then # where the loader may not look
    export LD_LIBRARY_PATH=/opt/rocm/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    library=$(hip_find) || exit
fi
if [[ $library != lib* ]]; then
    echo "there is a libamdhip64, but $library"
    echo "targets in /sys/class/kfd: $(card_targets | paste -sd ' ')"
    ls -l /dev/kfd /dev/dri/renderD* 2>&1
    echo "the GPU takes the kernel's amdgpu driver, and leave to use these files: the groups video"
    echo "and render, or in a container --device=/dev/kfd --device=/dev/dri."
    exit 77
fi

# The facts, with kernels for the GPUs that are here. What is not so on a card is news to us.
facts() {
    local clang target
    clang=$(card_clang)
    [ -n "$clang" ] || { echo "there is no clang for the card here"; return 77; }
    cc -std=gnu17 -O1 -I. -Isim -o "$build/facts" tests/hardware/facts/{,cuda/,rocm/}*.c \
        -lpthread -ldl || return
    mkdir -p "$build/facts.kernels"
    for target in ${targets:-gfx90a}; do
        "$clang" -std=c2x -O2 -nogpulib -target amdgcn-amd-amdhsa -mcpu="$target" \
            -mcode-object-version=4 -ffreestanding -ffp-contract=off \
            tests/sim/amd/kernels/queue.c -o "$build/facts.kernels/$target-O2-queue.hsaco" || return
    done
    "$build/facts" --lib="$1" --kernels="$build/facts.kernels"
}
export -f facts

card_build hip://0
step device 60 "$keel" devices -v hip://0 || finish "$(cat "$folder/machine.txt")"

if part conformance; then
    conformance conformance hip://0 hip.txt
    step conformance-serial 120 "$keel" conformance --device='hip://0?serial=1' -j 8 \
        --timeout=100 --expect=conformance/expect/hip.txt --filter='[bdi]*'
fi
if part examples; then step examples 120 bash -c "examples hip://0"; fi
if part facts; then
    targets=$(card_targets) step facts 120 bash -c "facts $library"
fi
if part graphs; then
    step graphs 120 "$keel" graphs --device=hip://0 --count=2000
    step graphs-mixed 60 "$keel" graphs --device=cpu:// --device=hip://0 --count=500
fi
if part bench; then bench bench hip://0 --alone; fi
finish "$(cat "$folder/machine.txt")"
