#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Counts the instructions of recording a checked dispatch with 3 bindings, and the library's
# allocations meanwhile. Unlike a time, the count does not depend on the load of the machine.
#
#     bench/callgrind.sh [BUILD] [LINES]      LINES: also show that many of the costliest functions
#
# Ends with 1 if a bar is missed, with 77 if there is no valgrind.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build}
lines=${2:-0}
bar=300

if ! command -v valgrind >/dev/null || [ ! -e /usr/include/valgrind/callgrind.h ]; then
    echo "callgrind: no valgrind here"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The benchmark switches the counting on around its loop (bench/record.c). Callgrind takes every
# byte that x86's `rep movsb` copies for an instruction, and glibc copies a stream that grows by it:
# so glibc is told to copy by vectors, which count as what they are. Elsewhere that setting is
# unknown and means nothing.
GLIBC_TUNABLES=glibc.cpu.x86_rep_movsb_threshold=0x40000000 \
    valgrind --tool=callgrind --callgrind-out-file="$work/out" --collect-atstart=no \
    "$build/keel" bench --filter=record.dispatch --once >"$work/table" 2>"$work/log" ||
    { cat "$work/log"; exit 1; }

set -- $(sed -n 's/.* \([0-9]*\) allocations for \([0-9]*\) commands.*/\1 \2/p' "$work/table")
allocations=$1 commands=$2

# What lies in the loop and in the inline functions of op.h is the making of the record, by the
# caller; all else is the call.
callgrind_annotate --auto=no --threshold=100 "$work/out" 2>/dev/null |
    sed -n 's/^ *\([0-9][0-9,]*\) ([^)]*)  *\([^ ]*:[^ ]*\).*/\1 \2/p' | tr -d , >"$work/functions"
[ "$lines" = 0 ] || head -n "$lines" "$work/functions"
set -- $(awk -v n="$commands" '
    $2 ~ /(^|\/)bench\/record\.c:|keel\/op\.h:/ { making += $1; next }
    { call += $1 }
    END { printf "%d %d", call / n, making / n }' "$work/functions")

echo "$1 instructions per recorded dispatch (bar: <= $bar), and $2 to make its record"
echo "$allocations allocations for $commands commands (bar: none per command)"
[ "$1" -le $bar ] && [ $((allocations * 50)) -le "$commands" ] || { echo MISSED; exit 1; }
echo met
