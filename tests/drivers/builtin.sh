#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# builtin.sh MAKE KEEL_CC KEPT FILE: KEPT, kernels as the tree has them, are what MAKE, which makes
# FILE, makes of their source today.
set -eu
tools="clang-19 clang-offload-bundler-19 llvm-objcopy-19"
case $3 in *.ptx) tools=clang-19 ;; esac
for tool in $tools; do
    command -v "$tool" >/dev/null && continue
    echo "$tool is not installed, and other versions write the same code in another way"
    exit 77
done
unset TARGETS FEATURES # a builder's own
"$1" "$2" "$4"
if ! cmp "$3" "$4"; then
    echo "$3 is not what its source makes: $1 $2"
    exit 1
fi
