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

# The clang for the card: ROCm's own knows the GPUs that this ROCm does. Nothing if there is none.
card_clang() {
    local clang
    for clang in /opt/rocm/llvm/bin/clang clang-{22,21,20,19,18}; do
        command -v "$clang" >/dev/null || continue
        [ "$("$clang" -dumpversion | cut -d. -f1)" -ge 18 ] || continue
        echo "$clang"
        return
    done
}
export -f card_clang

# Says what the build lacks here, all at once, and ends with 77 if that is anything.
tools_check() {
    local tool lacking=()
    for tool in cc cmake ninja pkg-config; do
        command -v $tool >/dev/null || lacking+=("$tool")
    done
    pkg-config --exists 'hwloc >= 2.4' 2>/dev/null || lacking+=("hwloc's headers")
    [ -n "$kernels$(card_clang)" ] || lacking+=("a clang for the card")
    [ ${#lacking[@]} = 0 ] && return
    echo "the build needs what is not here: $(printf '%s, ' "${lacking[@]}" | sed 's/, $//')"
    echo "Debian and Ubuntu have it: apt-get install gcc cmake ninja-build pkg-config libhwloc-dev"
    echo "clang-19 lld-19. ROCm 6.2 and later have a clang that will do, and -k takes kernels that"
    echo "were made elsewhere."
    exit 77
}

# machine DEVICE: what the results are results of.
machine() {
    uname -srm
    grep -m 1 '^model name' /proc/cpuinfo
    echo "kernel's driver: $(cat /sys/module/amdgpu/version 2>/dev/null || echo of the kernel)"
    echo "targets: $(card_targets | paste -sd ' ')"
    echo "ROCm: $(cat /opt/rocm/.info/version 2>/dev/null || echo 'not in /opt/rocm')"
    PATH=$PATH:/sbin:/usr/sbin ldconfig -p |
        sed -n 's/.*\(libamdhip64[^ ]*\|libhsa-runtime64[^ ]*\) .*=> /\1 at /p'
    cc --version | head -n 1
    "$keel" devices -v "$1"
}

# card_build DEVICE: builds all, for these targets, and tells what the machine is.
card_build() {
    local options=() targets
    tools_check
    targets=$(card_targets | paste -sd ,)
    if [ -z "$targets" ]; then
        echo "there is no AMD GPU in /sys/class/kfd: kernels are built for all targets"
    elif [ -z "$kernels" ]; then
        options+=("-DKEEL_KERNELS_FOR=host,$targets")
    fi
    case $(card_clang) in
    /*) options+=(-DKEEL_CLANG="$(card_clang)" -DKEEL_LLD="$(dirname "$(card_clang)")/ld.lld") ;;
    esac
    build_all "${options[@]}" || finish "$targets"
    machine "$1" >"$folder/machine.txt" 2>&1
}
