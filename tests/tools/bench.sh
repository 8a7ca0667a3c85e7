#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench.sh KEEL: the forms in which `keel bench` gives its results, and that they agree.
set -eu
keel=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
    echo "$1"
    exit 1
}

run() {
    "$keel" bench --filter=record.dispatch --once "$@"
}

json_check() {
    grep -q '"name":"record.dispatch"' "$1" || fail "the row is not in $2"
    if command -v python3 >/dev/null; then
        python3 -m json.tool "$1" >/dev/null || fail "$2 is no JSON"
    fi
}

run --json="$folder/beside" >"$folder/table"
grep -q '^record\.dispatch: ' "$folder/table" || fail "--json=FILE took the table away"
json_check "$folder/beside" "the file of --json=FILE"

run --json >"$folder/instead"
json_check "$folder/instead" "what --json printed"

if run --json="$folder/none/file" >"$folder/table" 2>"$folder/said"; then
    fail "a file that cannot be made is no failure"
fi
grep -q "$folder/none/file" "$folder/said" || fail "the failure does not name the file"
[ ! -s "$folder/table" ] || fail "it measured although the file cannot be made"
