#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# areas.sh AREA... -- COMMAND...: runs the command, a conformance, for each of these areas of the
# suite. The last line is the sum of theirs.
[ $# -ge 3 ] || { sed -n '3,4s/^# //p' "$0"; exit 2; }
areas=() passed=0 failed=0 skipped=0
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    areas+=("$1")
    shift
done
shift
for area in "${areas[@]}"; do
    echo "$area"
    output=$("$@" --filter="$area.*" 2>&1)
    status=$?
    echo "$output"
    counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' <<<"$output" | tail -n 1)
    read -r p f s <<<"$(tr -d 'a-z,' <<<"${counts:-0 0 0}")"
    [ $status = 0 ] || [ "$f" != 0 ] || f=1
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
