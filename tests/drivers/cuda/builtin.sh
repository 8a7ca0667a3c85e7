#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# builtin.sh SOURCE KEEL_CC FILE: builtin.ptx is what its source makes today.
set -eu
folder=$1/src/drivers/cuda
if ! command -v clang-19 >/dev/null; then
    echo "clang-19 is not installed, and other versions write the same code in another way"
    exit 77
fi
"$folder/device/make.sh" "$2" "$3"
if ! diff "$folder/builtin.ptx" "$3"; then
    echo "builtin.ptx is not what device/kernels.c makes: src/drivers/cuda/device/make.sh $2"
    exit 1
fi
