#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# inspect.sh KEEL [--update]: what `keel inspect` prints of the images in the tree, compared with
# tests/tools/inspect/*.txt and *.json; or these made anew, to be looked at before they are kept.
set -eu
keel=$(realpath "$1") update=${2:-}
cd "$(dirname "$0")/../.."
failed=0

fail() {
    echo "$1"
    failed=1
}

# check NAME FILE: its text and its JSON.
check() {
    for form in txt json; do
        golden=tests/tools/inspect/$1.$form
        option=
        if [ $form = json ]; then option=--json; fi
        if [ -n "$update" ]; then
            "$keel" inspect "$2" $option >"$golden"
        elif ! "$keel" inspect "$2" $option | diff -u "$golden" -; then
            fail "keel inspect $2 $option prints something else than $golden"
        fi
        if [ $form = json ] && command -v python3 >/dev/null; then
            python3 -m json.tool "$golden" >/dev/null || fail "$golden is no JSON"
        fi
    done
}

corpus=tests/fuzz/corpus
check cubin tests/data/native.sm_90a.cubin
check fatbin tests/data/native.zstd.fatbin
check ptx $corpus/ptx/seed-hand
check hsaco $corpus/hsaco/seed-gfx1100
check spirv $corpus/spirv/seed-vulkan1.2
check kernel $corpus/spirv/seed-kernel
check host $corpus/host/seed-x86_64
check offload $corpus/offload/seed-two
check bundle $corpus/bundle/seed-three--compress
check container $corpus/container/seed-cc--compress

# What is no image, is not there, or is asked for wrongly.
refuses() {
    code=$1 words=$2
    shift 2
    status=0
    output=$("$keel" inspect "$@" 2>&1 >/dev/null) || status=$?
    if [ $status != "$code" ]; then fail "keel inspect $* ends with $status, not $code"; fi
    case $output in
    *"$words"*) ;;
    *) fail "keel inspect $* does not say '$words' but: $output" ;;
    esac
}
refuses 1 'no image of a kind that is known' README.md
refuses 1 NOT_FOUND no-such-file
refuses 2 'no option is called --yaml' README.md --yaml
refuses 2 'give one file' README.md LICENSE
refuses 2 usage
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf '.version 8.0 .target sm_70\n.entry a(.param .u65 b) {}' >"$work/bad.ptx"
refuses 1 'line 2: expected a type' "$work/bad.ptx"

# Of every image in the tree the JSON is JSON, and half of it is refused with a reason.
number=0
for file in tests/data/*bin $corpus/[b-hos]*/seed-* $corpus/ptx/seed-*; do
    number=$((number + 1))
    "$keel" inspect --json "$file" >"$work/$number.json" || fail "$file cannot be read"
    head -c $(($(wc -c <"$file") / 2)) "$file" >"$work/half"
    refuses 1 'because: ' "$work/half"
done
if command -v python3 >/dev/null; then
    python3 -c 'import json, sys; [json.load(open(file)) for file in sys.argv[1:]]' \
        "$work"/*.json || fail "one of $number files gave no JSON"
fi
exit $failed
