#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cuda-pack.sh FOLDER: compiles the kernels that cuda.sh takes to an x86-64 machine without clang
# (-k FOLDER there), for x86_64-linux and nvptx:sm_70.
set -eu
[ $# = 1 ] || { sed -n '3,4s/^# //p' "$0"; exit 2; }
folder=$(realpath -m "$1")
cd "$(dirname "$0")/../.."
build=$PWD/build-kernels
cmake -S . -B "$build" -G Ninja -DCMAKE_C_COMPILER=clang-19 -DKEEL_TESTS=OFF -DKEEL_EXAMPLES=ON \
    -DKEEL_KERNELS_FOR=x86_64-linux,nvptx:sm_70 >/dev/null
ninja -C "$build" {conformance,bench,graph,example}_kernels conformance_{language,deep}
mkdir -p "$folder"
cp "$build"/kernels/*.keel "$folder"
