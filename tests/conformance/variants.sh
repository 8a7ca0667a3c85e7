#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# variants.sh BUILD: conformance and random graphs on the CUDA driver in software with each optional
# feature taken away, and with each quirk turned round.
set -u
build=${1:?give the build folder}
uri="cuda://0?lib=$build/sim/cuda/libcuda.so.1"
passed=0 failed=0 skipped=0

# run SETTINGS EXPECTATIONS [OPTIONS-OF-THE-URI]
run() {
    local log p f s
    log=$(KEEL_SIM_CUDA=$1 "$build/keel" conformance --device="$uri${3:-}" \
        --expect="conformance/expect/$2.txt" 2>&1)
    read -r p f s < <(echo "$log" | sed -nE \
        's/^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\1 \2 \3/p' | tail -n 1)
    [ -n "${f:-}" ] || p=0 f=1 s=0
    [ "$f" = 0 ] || { echo "$1:"; echo "$log" | tail -n 40; }
    if KEEL_SIM_CUDA=$1 "$build/keel" graphs --device=cpu:// --device="$uri${3:-}" --count=200 \
        >/tmp/graphs.$$ 2>&1; then
        p=$((p + 1))
    else
        f=$((f + 1))
        echo "$1: graphs:" && tail -n 40 /tmp/graphs.$$
    fi
    rm -f /tmp/graphs.$$
    echo "$1: $p passed, $f failed"
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

run without=graphs cuda "&commands=stream"
for feature in conditional updatable upload pools arguments peers; do
    run without=$feature cuda
done
for feature in managed shared outside; do run without=$feature cuda-$feature; done
for quirk in roomy prompt; do run quirk=$quirk cuda; done
run without=updatable,quirk=rigid cuda
run without=conditional+updatable+upload+pools,quirk=roomy+prompt+rigid cuda
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
