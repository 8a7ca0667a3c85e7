#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make.sh KEEL_CC [FILE]: makes builtin.ptx, or FILE instead, of kernels.c by `keel cc`. The result
# is kept in the tree, so that a build needs no compiler for GPUs; a test compares it with what its
# source makes. It is clang 19's: another version would write the same code in another way.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=${here%/src/drivers/cuda/device}
file=${2:-$here/../builtin.ptx}
made=$(mktemp)
trap 'rm -f "$made"' EXIT
$1 "$here/kernels.c" -o "$made" --bare --target=nvptx:sm_52 --clang=clang-19 \
    -I"$root/include" -I"$root/src"
{
    echo '// SPDX-License-Identifier: Apache-2.0'
    echo '// Made of device/kernels.c by device/make.sh.'
    cat "$made"
} >"$file"
