#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# sim-amd.sh FOLDER [LOGS]: runs the software AMD GPU and Debian's ROCm, which sim-amd-pack.sh put
# into FOLDER, on an x86-64 machine with glibc 2.36 or newer and without ROCm. Builds and installs
# nothing. Prints a row for each step; its status is 0 if nothing failed. Without hip.tar.xz in
# FOLDER it leaves HIP out and takes less than a minute, else some.
set -u
[ $# -ge 1 ] || { sed -n '3,6s/^# //p' "$0"; exit 2; }
folder=$(cd "$1" && pwd) || exit 2
logs=${2:-$(mktemp -d)}
mkdir -p "$logs" || exit 1
bin=$folder/bin kernels=$folder/kernels
hip=$(mktemp -d)
trap 'rm -rf "$hip"' EXIT
failed=0

# step NAME COMMAND...: prints its status, its time and its last line.
step() {
    local name=$1 status start=${EPOCHREALTIME/[.,]/}
    shift
    timeout --kill-after=10 100 "$@" >"$logs/$name.log" 2>&1
    status=$?
    printf '%-20s %4s %7s ms  %s\n' "$name" $status $(((${EPOCHREALTIME/[.,]/} - start) / 1000)) \
        "$(tail -n 1 "$logs/$name.log" | cut -c1-70)"
    [ $status = 0 ] || { failed=1; tail -n 20 "$logs/$name.log"; }
}

step same "$bin/same" "$kernels"/*-same.hsaco
step instructions "$bin/instructions" "$kernels"/{gfx90a,gfx908}-instructions.hsaco
step matrix "$bin/matrix" "$kernels"/*-matrix.hsaco
step kernel "$bin/kernel" "$kernels"/*-kernel.hsaco
for test in fault order kfd; do step $test "$bin/$test" "$kernels/gfx90a-O2-queue.hsaco"; done
step bench "$bin/bench" "$kernels/bench.hsaco"
cat "$logs/bench.log"

export LD_LIBRARY_PATH=$folder/lib:$hip PATH=$bin:$PATH LD_PRELOAD=$folder/lib/libkeelkfd.so
KEEL_SIM_GPUS=gfx900,gfx90a step rocminfo "$bin/rocminfo"
for gpus in gfx900 gfx906,gfx908 gfx90a,gfx90a; do
    KEEL_SIM_GPUS=$gpus step "hsa-$gpus" "$bin/hsa" "$kernels"
done
step strict "$bin/strict" "$kernels"
export KEEL_SIM_THREADS=4
for seed in 1 2 3; do KEEL_SIM_SEED=$seed step "hsa-seed-$seed" "$bin/hsa" "$kernels"; done
unset KEEL_SIM_THREADS
if [ -e "$folder/hip.tar.xz" ]; then
    xz -dc "$folder/hip.tar.xz" | tar -C "$hip" -xf -
    for gpus in gfx900 gfx906 gfx908 gfx90a,gfx90a; do
        KEEL_SIM_GPUS=$gpus step "hip-$gpus" "$bin/hip" "$kernels"
    done
    for seed in 1 2 3; do
        KEEL_SIM_SEED=$seed KEEL_SIM_THREADS=4 step "hip-seed-$seed" "$bin/hip" "$kernels"
    done
    # The same again and again: what hangs once in a hundred times shows here.
    for round in 1 2; do
        step "hip-again-$round" sh -c 'n=0; while [ $n -lt 20 ]; do
            timeout 20 "$@" || exit; n=$((n + 1)); done' sh "$bin/hip" "$kernels"
    done
fi
exit $failed
