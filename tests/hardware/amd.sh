# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What hip.sh and amdgpu.sh share: sourced by them behind steps.sh. Builds the tree for the GPUs
# that are here, and writes machine.txt.
# shellcheck disable=SC2154 # steps.sh sets them

# The targets of the GPUs that the kernel's driver knows, as the compiler calls them: 90010 is
# gfx90a.
card_targets() {
    sed -n 's/^gfx_target_version //p' /sys/class/kfd/kfd/topology/nodes/*/properties 2>/dev/null |
        sort -u | while read -r version; do
        [ "$version" = 0 ] || # a processor
            printf 'gfx%d%x%x\n' $((version / 10000)) $((version / 100 % 100)) $((version % 100))
    done
}

# machine DEVICE: what the results are results of.
machine() {
    uname -srm
    grep -m 1 '^model name' /proc/cpuinfo
    echo "kernel's driver: $(cat /sys/module/amdgpu/version 2>/dev/null || echo of the kernel)"
    echo "targets: $(card_targets | paste -sd ' ')"
    echo "ROCm: $(cat /opt/rocm/.info/version 2>/dev/null || echo 'not in /opt/rocm')"
    ldconfig -p | sed -n 's/.*\(libamdhip64[^ ]*\|libhsa-runtime64[^ ]*\) .*=> /\1 at /p'
    cc --version | head -n 1
    "$keel" devices -v "$1"
}

# card_build DEVICE: builds all, for these targets, and tells what the machine is.
card_build() {
    local options=() targets
    targets=$(card_targets | paste -sd ,)
    if [ -z "$targets" ]; then
        echo "there is no AMD GPU in /sys/class/kfd: kernels are built for all targets"
    elif [ -z "$kernels" ]; then
        options+=("-DKEEL_KERNELS_FOR=host,$targets")
    fi
    [ ! -x /opt/rocm/llvm/bin/clang ] || command -v clang-1{8,9} clang-2{0,1,2} >/dev/null ||
        options+=(-DKEEL_CLANG=/opt/rocm/llvm/bin/clang -DKEEL_LLD=/opt/rocm/llvm/bin/ld.lld)
    build_all "${options[@]}" || finish "$targets"
    machine "$1" >"$folder/machine.txt" 2>&1
}
