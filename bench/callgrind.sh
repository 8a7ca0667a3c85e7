#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Counts the instructions of recording a checked dispatch with 3 bindings, the making of its record
# included, and the library's allocations meanwhile. Unlike a time, the count does not depend on the
# load of the machine.
#
#     bench/callgrind.sh [BUILD] [LINES]      LINES: also show that many of the costliest functions
#
# Ends with 1 if a bar is missed, with 77 if there is no valgrind.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build}
lines=${2:-0}
bar=300

command -v valgrind >/dev/null || { echo "callgrind: no valgrind here"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

valgrind --tool=callgrind --callgrind-out-file="$work/out" --toggle-collect='record_commands*' \
    "$build/keel" bench --filter=record.dispatch --once >"$work/table" 2>"$work/log" ||
    { cat "$work/log"; exit 1; }

total=$(sed -n 's/^totals: *//p' "$work/out")
set -- $(sed -n 's/.* \([0-9]*\) allocations for \([0-9]*\) commands.*/\1 \2/p' "$work/table")
allocations=$1 commands=$2
each=$((total / commands))
if [ "$lines" -gt 0 ]; then
    callgrind_annotate --threshold=100 "$work/out" | grep '%' | head -n "$lines"
fi
echo "$each instructions per recorded dispatch (bar: <= $bar)"
echo "$allocations allocations for $commands commands (bar: none per command)"
[ "$each" -le $bar ] && [ $((allocations * 100)) -le "$commands" ] || { echo MISSED; exit 1; }
echo met
