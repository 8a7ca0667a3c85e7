#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# metal.sh KEEL [FILTER]: what a Mac user runs to tell us how the driver does: the messages against
# Apple's headers, the device, and the conformance tests on it. Elsewhere on the software Metal.
# All is written to build/metal-report.txt as well; that file is what to send.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
[ $# -gt 0 ] || { sed -n '3,5s/^# //p' "$0" >&2; exit 2; }
keel=$1
filter=${2:-}
[ "$filter" ] || filter="*"
device=metal://0
if [ "$(uname)" != Darwin ]; then
    device='metal://0?lib=build/sim/metal/libMetal.so'
    export KEEL_SIM_METAL=${KEEL_SIM_METAL:-cache=build/sim/metal/cache}
fi
mkdir -p build
report=build/metal-report.txt

everything() {
    "$keel" version || echo "FAILED: there is no $keel"
    git log -1 --format=%H 2> /dev/null || true # not in an archive
    uname -a
    if [ "$(uname)" = Darwin ]; then
        sw_vers
        sysctl -n hw.model machdep.cpu.brand_string
    fi
    tests/macos/messages.sh build/macos || [ $? -eq 77 ] || echo "FAILED: messages"
    "$keel" devices -v "$device" || echo "FAILED: $device does not open"
    "$keel" conformance --device="$device" --expect=conformance/expect/metal.txt \
        --filter="$filter" || echo "FAILED: conformance"
}

everything > "$report" 2>&1 || true
cat "$report"
if [ "$(uname)" = Darwin ]; then
    echo "this is in $report as well: please send it to us"
else
    echo "this is in $report as well; it was the software Metal: on a Mac we would like to have it"
fi
! grep -q '^FAILED' "$report"
