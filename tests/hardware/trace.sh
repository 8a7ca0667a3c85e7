#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# trace.sh [-o FOLDER] [PART...]: builds the tool and libkeeltrace.so on a machine with an NVIDIA
# GPU and PyTorch, and does what the parts name, `compare` if none is named:
#   compare  programs of PyTorch, Triton and JAX: kernels, copies and sets in a loop, counted by
#            `keel trace` and by torch.profiler; times of the loop alone, traced in each mode, and
#            under torch.profiler, in turns; the start of a process, with and without
#   floor    what CUPTI costs by itself, by what it is asked for and how it is set up, each in turns
#            with nothing: trace_floor.c
#   launches what the call of a launch takes on the host: trace_launch.cu, by nvcc
# FOLDER (default: a new temporary one) gets the tables as trace.txt, with what each run said.
# Installs nothing; its status is 0 if all counts agree. Takes two minutes (compare), five (floor)
# and one (launches).
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
if [[ $parts == *" floor "* ]]; then
    library=$build/libfloor.so
    gcc -std=gnu17 -O2 -pthread -shared -fPIC -o "$library" tests/hardware/trace_floor.c -ldl &&
        python3 tests/hardware/trace.py floor "$build/keel" "$folder" "$library" || status=1
fi
if [[ $parts == *" launches "* ]]; then
    library=$build/libfloor.so program=$build/launch
    gcc -std=gnu17 -O2 -pthread -shared -fPIC -o "$library" tests/hardware/trace_floor.c -ldl &&
        nvcc -O2 -cudart shared -o "$program" tests/hardware/trace_launch.cu &&
        python3 tests/hardware/trace.py launches "$build/keel" "$folder" "$library" "$program" ||
        status=1
fi
exit $status
