#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make.sh KEEL_CC [FILE]: makes library.co, or FILE instead, of the device library by `keel cc`: a
# bundle of code objects, one for each target, of which the driver takes its own. The result is kept
# in the tree, so that a build needs no compiler for GPUs; a test compares it with what its source
# makes. It is clang 19's: another version would write the same code in another way.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=${here%/src/drivers/amdgpu/device}
file=${2:-$here/../library.co}
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
targets=host-x86_64-unknown-linux--
inputs=--input=/dev/null
for target in gfx900 gfx906 gfx908 gfx90a gfx942 gfx1030 gfx1100; do
    $1 "$here/library.c" -o "$made/$target" --bare --target=$target --clang=clang-19 \
        -I"$root/include" -I"$root/src"
    llvm-objcopy-19 --remove-section=.comment "$made/$target" # names the distribution's release
    targets=$targets,hipv4-amdgcn-amd-amdhsa--$target
    inputs="$inputs --input=$made/$target"
done
# shellcheck disable=SC2086 # several words
clang-offload-bundler-19 --type=o --bundle-align=4096 --targets=$targets $inputs --output="$file"
