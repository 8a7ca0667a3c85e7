#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make.sh [FOLDER]: compiles native.cu with nvcc into the cubins and fatbins that tests read, for
# machines that have no nvcc, and prints what ptxas says of them.
set -eu
here=$(dirname "$0")
to=${1:-$here}
from=$here/native.cu
nvcc --version | tail -n 2
for architecture in 75 90a 120; do
    nvcc -cubin -arch=sm_$architecture --resource-usage \
        -o "$to/native.sm_$architecture.cubin" "$from" 2>&1 | grep -v 'Compile time'
done
nvcc -cubin -arch=sm_90 -DLARGE -o "$to/large.sm_90.cubin" "$from"
nvcc -fatbin --compress-mode=size -gencode arch=compute_80,code=sm_80 \
    -gencode 'arch=compute_90,code=[sm_90,compute_90]' -o "$to/native.zstd.fatbin" "$from"
nvcc -fatbin --compress-mode=speed -gencode arch=compute_90a,code=compute_90a \
    -o "$to/native.lz4.fatbin" "$from"
