#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# full.sh KEEL FULL_TEST LIBRARY: full rings where `keel trace` records, which leaves the driver's
# queues alone, and where libkeeltrace.so, the library, watches them as any tool does.
set -eu
keel=$1 full=$2 library=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

fail() {
    echo "$1"
    cat out
    exit 1
}
traced() { "$keel" sim --gpus=gfx90a -- "$keel" trace -o "$@" >out 2>&1 || fail "$* failed"; }
watched() {
    HSA_TOOLS_LIB=$library RTL_OUTPUT=$folder/%p.db RTL_MODE=standard \
        "$keel" sim --gpus=gfx90a -- "$@" >out 2>&1 || fail "$* failed"
}

# Each of 24 times 250 fills once, on the device's own queue; those without room said so.
for who in device host; do
    traced $who -- "$full" "amdgpu://0?scheduler=$who"
    ! grep -q INCOMPLETE out || fail "$who: the trace is incomplete"
    fills=$(awk '$0 ~ "%  fill " { print $1 }' out)
    [ "$fills" = 6000 ] || fail "$who: $fills fills, not 6000"
    "$keel" trace export -f csv -o $who.csv $who >/dev/null
done
grep -q 'a submission waits for room' device.csv || fail 'no submission had to wait for room'

# Queues that only look where rings lie are the driver's as well.
traced rings -- "$full" rings
grep -q '^rings=host: opened' out || fail 'rings=host is refused'
grep -q '^rings=device: rings=device: the rings of queues lie in memory of the host' out ||
    fail 'rings=device has another reason'

watched "$full" 'amdgpu://0'
watched "$full" rings
[ "$(grep -c '^rings=.*: a tool watches the queues' out)" = 2 ] ||
    fail 'the rings of a tool are taken for the hardware'"'"'s'
