#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# builtin.sh SOURCE KEEL_CC FILE: library.co is what its source makes today.
set -eu
folder=$1/src/drivers/amdgpu
for tool in clang-19 clang-offload-bundler-19 llvm-objcopy-19; do
    command -v $tool >/dev/null && continue
    echo "$tool is not installed, and other versions write the same code in another way"
    exit 77
done
"$folder/device/make.sh" "$2" "$3"
if ! cmp "$folder/library.co" "$3"; then
    echo "library.co is not what device/library.c makes: src/drivers/amdgpu/device/make.sh $2"
    exit 1
fi
