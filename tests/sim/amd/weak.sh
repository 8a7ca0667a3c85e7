#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# weak.sh BUILD SEEDS: ROCm's runtime, HIP and litmus tests on weak memory, with that many seeds.
set -eu
build=$1 seeds=$2 passed=0 failed=0
tests=$build/tests/sim/amd
log=$(mktemp)
trap 'rm -f "$log"' EXIT

try() { # try NAME COMMAND...
    name=$1
    shift
    if "$@" >"$log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "$name failed:"
        tail -20 "$log"
    fi
}

for seed in $(seq "$seeds"); do
    for gpus in gfx900,gfx900 gfx906,gfx908 gfx90a,gfx90a; do
        for test in hsa hip; do
            [ -x "$tests/test_sim_amd_$test" ] || continue
            try "$test, $gpus, seed $seed" "$build/keel" sim --gpus=$gpus --weak="$seed" -- \
                "$tests/test_sim_amd_$test" "$tests"
        done
    done
done
try litmus "$tests/test_sim_amd_weak" 3000 "$tests"/gfx*-O2-litmus.hsaco
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
