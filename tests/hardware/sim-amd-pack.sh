#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# sim-amd-pack.sh FOLDER [nohip]: gathers what sim-amd.sh takes to an x86-64 machine without ROCm:
# the software GPU, its tests and kernels, and Debian's amd64 ROCm, 18 MB and 41 of HIP. FOLDER
# must not be there yet. Run `make foreign` before.
set -eu
[ $# = 1 ] || [ "${2-}" = nohip ] || { sed -n '3,5s/^# //p' "$0"; exit 2; }
folder=$(realpath -m "$1")
cd "$(dirname "$0")/../.."
root=build-x86_64/rocm/root
libraries=$root/usr/lib/x86_64-linux-gnu
if [ ! -e build-x86_64/rocm/strict ]; then
    echo "build-x86_64/rocm/strict is not there: run make foreign first" >&2
    exit 1
fi
if [ -e "$folder" ]; then
    echo "$folder is there already: name one that is not" >&2
    exit 1
fi
mkdir -p "$folder/bin" "$folder/lib" "$folder/kernels"

cp build-x86_64/rocm/{hsa,strict,hip} $root/usr/bin/rocminfo sim/amd/host/lsmod "$folder/bin"
cp build-x86_64/sim/amd/bin/bench "$folder/bin"
for test in same instructions matrix fault order kernel kfd; do
    cp build-x86_64/tests/sim/amd/test_sim_amd_$test "$folder/bin/$test"
done
cp build-x86_64/tests/sim/amd/*.hsaco build-x86_64/sim/amd/bench.hsaco "$folder/kernels"
cp build-x86_64/sim/amd/libkeelkfd.so "$folder/lib"
# All but the C library, which is the machine's own.
for name in libhsa-runtime64.so.1 libhsakmt.so.1 libdrm.so.2 libdrm_amdgpu.so.1 libelf.so.1 \
    libstdc++.so.6 libnuma.so.1; do
    cp -L $libraries/$name "$folder/lib"
done
cp -L $root/lib/x86_64-linux-gnu/{libgcc_s.so.1,libz.so.1} "$folder/lib"
x86_64-linux-gnu-strip --strip-unneeded "$folder"/bin/[!lr]* "$folder"/lib/*

[ $# = 1 ] || exit 0

# HIP brings a compiler. Of what that needs, two large libraries are never called: empty ones do.
hip=$(mktemp -d)
trap 'rm -rf "$hip"' EXIT
for name in libamdhip64.so.5 libamd_comgr.so.2 libLLVM-15.so.1 libffi.so.8 libedit.so.2 \
    libbsd.so.0 libmd.so.0; do
    cp -L $libraries/$name "$hip"
done
cp -L $root/lib/x86_64-linux-gnu/libtinfo.so.6 "$hip"
echo 'LIBXML2_2.4.30 { *; }; LIBXML2_2.6.0 { xmlReadMemory; };' >"$hip/versions"
for stub in libz3.so.4:Z3_ libxml2.so.2:xml; do
    x86_64-linux-gnu-nm -D --undefined-only "$hip/libLLVM-15.so.1" |
        sed -n "s/.* \(${stub#*:}[^@]*\).*/void \1(void) { __builtin_trap(); }/p" |
        x86_64-linux-gnu-gcc -w -shared -fPIC -x c - -Wl,-soname,${stub%:*} \
            -Wl,--version-script="$hip/versions" -o "$hip/${stub%:*}"
done
rm "$hip/versions"
tar -C "$hip" -cf - . | xz -T2 -6 >"$folder/hip.tar.xz"
du -sh "$folder"
