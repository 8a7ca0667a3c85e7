#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# trace.sh [-o FOLDER] [PART...]: builds the tool and libkeeltrace.so on a machine with an NVIDIA
# GPU and PyTorch, and does what the parts name, `compare` if none is named:
#   compare  programs of PyTorch, Triton and JAX: kernels, copies and sets in a loop, counted by
#            `keel trace` and by torch.profiler
#   turns    what tracing costs two of these programs, and the start of a process: in each mode, and
#            what CUPTI costs by itself (trace_floor.c); in turns of a tenth of a second
# FOLDER (default: a new temporary one) gets the tables as trace.txt, with what each run said.
# Installs nothing; its status is 0 if all counts agree. Takes one minute (compare) and three
# (turns).
set -u
usage() { sed -n '3,/^[^#]/s/^# //p' "$0"; exit 2; }
folder=''
while getopts o: option; do
    case $option in
    o) folder=$OPTARG ;;
    *) usage ;;
    esac
done
shift $((OPTIND - 1))
parts=" ${*:-compare} "
folder=${folder:-$(mktemp -d)}
mkdir -p "$folder" && folder=$(cd "$folder" && pwd) || exit 1
cd "$(dirname "$0")/../.." || exit 1
build=$PWD/build-card
exec > >(tee "$folder/trace.txt") 2>&1

echo "== machine"
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
nproc
command -v python3 gcc cmake ninja nvcc
ldconfig -p | grep -E 'libcupti|libsqlite3' || echo "no libcupti or libsqlite3 known to ldconfig"

echo "== build"
start=$SECONDS
if ! { cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DKEEL_TESTS=OFF \
    -DKEEL_EXAMPLES=OFF && ninja -C "$build" keel_tool keel_trace; } >"$folder/build.log" 2>&1; then
    tail -n 40 "$folder/build.log"
    exit 1
fi
echo "$((SECONDS - start)) s"
ls -l "$build/keel" "$build/libkeeltrace.so"

status=0
if [[ $parts == *" compare "* ]]; then
    python3 tests/hardware/trace.py compare "$build/keel" "$folder" || status=1
fi
if [[ $parts == *" turns "* ]]; then
    floor=$build/libfloor.so
    gcc -std=gnu17 -O2 -pthread -shared -fPIC -o "$floor" tests/hardware/trace_floor.c -ldl &&
        python3 tests/hardware/trace.py turns "$build/libkeeltrace.so" "$folder" "$floor" ||
        status=1
    for mode in lite standard cuda; do
        echo "== turns, keel $mode"
        "$build/keel" trace info "$folder/turns-$mode"
    done
fi
exit $status
