#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# devices.sh KEEL CUDA HIP METAL: `keel devices -v` says of each capability that a device lacks why
# it does, of every driver that can run here. CUDA, HIP and METAL are libraries; "": there is none.
set -u
keel=$1 cuda=$2 hip=$3 metal=$4
failed=0 told=0

# The lines from `lacking` on that belong to it.
lacking() { awk '/^    lacking / { on = 1 } on && /^    [a-z]/ && !/^    lacking / { on = 0 } on'; }

check() { # check URI: of a device that opens
    local lines
    if ! lines=$("$keel" devices -v "$1" 2>&1); then
        echo "$1 does not open: $lines"
        failed=1
        return
    fi
    lines=$(lacking <<<"$lines")
    [ -z "$lines" ] || told=$((told + $(wc -l <<<"$lines")))
    if [ -n "$lines" ] && grep -qv ': .' <<<"$lines"; then
        echo "$1: no reason is said for:"
        grep -v ': .' <<<"$lines"
        failed=1
    fi
}

check cpu://
check cpu://inline
check null://
[ -z "$hip" ] || check "hip://0?lib=$hip"
[ -z "$metal" ] || check "metal://0?lib=$metal"
if [ -n "$cuda" ]; then
    check "cuda://0?lib=$cuda"
    export KEEL_SIM_CUDA=without=graphs+pools+managed+shared+outside+arguments+peers
    check "cuda://0?lib=$cuda"
fi
[ $told -ge 10 ] || { echo "only $told are lacking"; failed=1; }
exit $failed
