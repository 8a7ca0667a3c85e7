#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# flat.sh KEEL PROGRAM_TEST: the instructions that the host needs to submit a recording do not grow
# with its commands. Callgrind counts them, where the test says, for 10 and 100,000 commands.
set -eu
if ! command -v valgrind >/dev/null || [ ! -e /usr/include/valgrind/callgrind.h ]; then
    echo "valgrind is not installed"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Fair: on a quiet machine a thread that polls can otherwise keep the others from running for ever.
count="valgrind --tool=callgrind --fair-sched=try --callgrind-out-file=$work/out
    --instr-atstart=no --collect-atstart=no"

# The instructions of all submissions of a recording of $3 commands, into $counted.
instructions() {
    # shellcheck disable=SC2086 # several words
    if ! "$1" sim --gpus=gfx90a -- $count "$2" submit "$3" >"$work/log" 2>&1; then
        cat "$work/log"
        # Debian 12's does not read what clang 19 writes.
        ! grep -q 'debuginfo reader' "$work/log" || exit 77
        exit 1
    fi
    counted=$(sed -n 's/^summary: \([0-9]*\).*/\1/p; s/^totals: \([0-9]*\).*/\1/p' "$work/out" |
        head -n 1)
}

instructions "$1" "$2" 10
few=$counted
instructions "$1" "$2" 100000
many=$counted
echo "10 submissions: $few instructions with 10 commands, $many with 100,000"
[ "$few" -gt 1000 ] && [ "$many" -le $((few + few / 10)) ]
