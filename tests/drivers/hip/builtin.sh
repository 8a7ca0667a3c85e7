#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# builtin.sh SOURCE KEEL_CC FILE: builtin.co is what its source makes today.
set -eu
folder=$1/src/drivers/hip
for tool in clang-19 clang-offload-bundler-19 llvm-objcopy-19; do
    command -v $tool >/dev/null && continue
    echo "$tool is not installed, and other versions write the same code in another way"
    exit 77
done
"$folder/device/make.sh" "$2" "$3"
if ! cmp "$folder/builtin.co" "$3"; then
    echo "builtin.co is not what builtin/kernels.c makes: src/drivers/hip/device/make.sh $2"
    exit 1
fi
