#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cuda-pack.sh FOLDER [TARGET...]: compiles the kernels that cuda.sh and hip.sh take to an x86-64
# machine without clang (-k FOLDER there), for x86_64-linux and these targets (default: nvptx:sm_70;
# gfx90a, gfx1100 ... for hip.sh).
set -eu
[ $# -ge 1 ] || { sed -n '3,5s/^# //p' "$0"; exit 2; }
folder=$(realpath -m "$1")
shift
targets=$(IFS=,; echo "x86_64-linux,${*:-nvptx:sm_70}")
cd "$(dirname "$0")/../.."
build=$PWD/build-kernels
cmake -S . -B "$build" -G Ninja -DCMAKE_C_COMPILER=clang-19 -DKEEL_TESTS=OFF -DKEEL_EXAMPLES=ON \
    -DKEEL_KERNELS_FOR="$targets" >/dev/null
ninja -C "$build" {conformance,bench,graph,example}_kernels conformance_{language,deep}
mkdir -p "$folder"
cp "$build"/kernels/*.keel "$folder"
