#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# older.sh PTXAS VERSION PTX ARCHITECTURE...: assembles older.c by a ptxas of before CUDA 13 into
# the cubins older.VERSION.ARCHITECTURE that tests read, and prints what it says of them. PTX is the
# version of PTX that it takes. NVIDIA's packages for Python, nvidia-cuda-nvcc-cu11 and -cu12, have
# such:
#     older.sh cu11/bin/ptxas 11.8 7.8 sm_70 sm_90
#     older.sh cu12/bin/ptxas 12.4 8.0 sm_90a
set -eu
ptxas=$1 version=$2 ptx=$3
shift 3
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for architecture; do
    clang-19 --target=nvptx64-nvidia-cuda -march=sm_70 -std=c23 -O1 -nogpulib -S "$here/older.c" \
        -o - | sed "s/^.version .*/.version $ptx/; s/^.target .*/.target $architecture/" \
        >"$work/k.ptx"
    "$ptxas" -v -arch="$architecture" "$work/k.ptx" -o "$here/older.$version.$architecture.cubin"
done
