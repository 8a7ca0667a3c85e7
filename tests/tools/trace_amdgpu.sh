#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# trace_amdgpu.sh KEEL SAXPY STEPS DECODE: operations of amdgpu://, on the software GPU: those that
# the host schedules, and those of a recording, which the GPU does; each once, whatever else is
# recorded.
keel=$1
decode=$4
. "$(dirname "$0")/trace_common.sh"

"$keel" sim --gpus=gfx90a -- "$here/trace_stream.sh" "$keel" "$2" amdgpu://0 "$3"
for mode in auto hip; do
    "$keel" sim --gpus=gfx90a -- "$keel" trace -m $mode -o $mode -- "$decode" \
        'amdgpu://0?scheduler=device' >out 2>err || fail "$mode: the program failed"
    ! grep -q INCOMPLETE err || fail "it is said to be incomplete"
    for name in attend remember; do
        is "$mode: $name" "$(calls $name)" 300
    done
done

# Their times are the device's, on the queue of the submission, which they are linked to.
"$keel" trace export -f csv -o one.csv auto >/dev/null
grep '^[0-9]*,operation,"attend"' one.csv >attend
is 'on the queue' "$(grep -c '"amdgpu://0?scheduler=device","queue 0"' attend)" 300
is 'without a call' "$(cut -d, -f14 attend | grep -cvE '^[0-9]+$')" 0
is 'different calls' "$(cut -d, -f14 attend | sort -u | wc -l)" 300
! awk -F, '$4 > $5 || $4 == 0' attend | grep -q . || fail 'an operation ends before it begins'
grep -q 'counter,"amdgpu://0?scheduler=device: scheduler 0: submissions"' one.csv ||
    fail 'the number of submissions is missing'
