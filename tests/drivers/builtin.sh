#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# builtin.sh SOURCE KEEL_CC DRIVER KEPT FILE: KEPT, the driver's own kernels as the tree has them,
# are what their source makes today.
set -eu
folder=$1/src/drivers/$3
tools="clang-19 clang-offload-bundler-19 llvm-objcopy-19"
[ "$3" != cuda ] || tools=clang-19
for tool in $tools; do
    command -v "$tool" >/dev/null && continue
    echo "$tool is not installed, and other versions write the same code in another way"
    exit 77
done
unset TARGETS # a builder's own
"$folder/device/make.sh" "$2" "$5"
if ! cmp "$folder/$4" "$5"; then
    echo "$4 is not what its source makes: src/drivers/$3/device/make.sh $2"
    exit 1
fi
