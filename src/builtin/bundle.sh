#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bundle.sh KEEL_CC SOURCE FILE: compiles SOURCE by `keel cc` for each GPU of AMD's that Keel has
# kernels of its own for, and makes FILE of that: a bundle of code objects. The results are kept in
# the tree, so that a build needs no compiler for GPUs; tests compare them with what their sources
# make. They are clang 19's: another version would write the same code in another way. $TARGETS are
# other GPUs than these, $FLAGS go to the compiler, and $LIMIT is what a code object must stay under
# instead of 64 KiB.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
targets=host-x86_64-unknown-linux--
inputs=--input=/dev/null
for target in ${TARGETS:-gfx900 gfx906 gfx908 gfx90a gfx90c gfx942 gfx1010 gfx1011 gfx1012 gfx1030 \
    gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036 gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 \
    gfx1151 gfx1152 gfx1200 gfx1201}; do
    # shellcheck disable=SC2086 # several words
    $1 "$2" ${FLAGS:-} -o "$made/$target" --bare --target=$target --clang=clang-19 \
        -I"$root" -I"$root/include" -I"$root/src"
    llvm-objcopy-19 --remove-section=.comment "$made/$target" # names the distribution's release
    size=$(wc -c <"$made/$target")
    [ "$size" -lt "${LIMIT:-65536}" ] || { echo "$target: $size bytes are too many" >&2; exit 1; }
    targets=$targets,hipv4-amdgcn-amd-amdhsa--$target
    inputs="$inputs --input=$made/$target"
done
# shellcheck disable=SC2086 # several words
clang-offload-bundler-19 --type=o --bundle-align=4096 --targets=$targets $inputs --output="$3"
