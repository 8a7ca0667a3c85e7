#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# issue.sh KEEL PROGRAM_TEST: what the scheduler costs the GPU, in instructions of waves, as the
# software GPU logs them: at most 150 for each command that it issues, a few in turn or many at
# once, and 300 for a tick with nothing to do. What kernels themselves take is what they take when
# the host schedules.
set -eu
# The least of eight: how many ticks find nothing to do depends on when the host comes.
log() {
    for _ in 1 2 3 4 5 6 7 8; do
        "$keel" sim --gpus=gfx90a --log=isa -- "$test" "$@" 2>&1 | grep -c ' wave '
    done | sort -n | head -n 1
}

# issued FEW MANY: for each command beyond FEW.
issued() {
    device=$(($(log issue "$2") - $(log issue "$1")))
    kernels=$(($(log issue "$2" "$host") - $(log issue "$1" "$host")))
    echo $(((device - kernels) / ($2 - $1)))
}

keel=$1 test=$2 host='amdgpu://0?scheduler=host'
few=$(issued 1 8)
many=$(issued 64 192)
tick=$((($(log tick 101) - $(log tick 1)) / 100))
echo "instructions: $few for each of 8 commands, $many for each of 192, $tick for an idle tick"
[ "$few" -gt 0 ] && [ "$few" -le 150 ] && [ "$many" -le 150 ] && [ "$tick" -gt 0 ] &&
    [ "$tick" -le 300 ]
