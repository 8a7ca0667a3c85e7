#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILD [TARGET] [SECONDS]: fuzzes one target, or each in turn, for so long (60 s). What it
# finds is kept under BUILD/findings; what it learns, under BUILD/corpus, and the next run starts
# with it. The targets csmith and diverge are the software AMD GPU, with random C programs and
# random kernels.
set -eu
build=$1 target=${2:-} seconds=${3:-60}
here=$(dirname "$0")
if [ -z "$target" ]; then
    target=$(cd "$here/corpus" && ls)
    if [ -x "$build/tests/sim/amd/test_sim_amd_diverge" ]; then
        target="$target diverge"
        if command -v csmith >/dev/null; then target="$target csmith"; fi
    fi
fi
mkdir -p "$build/findings"
status=0
for name in $target; do
    case $name in
    csmith | diverge)
        "$here/../sim/amd/$name.py" "$build/tests/sim/amd/test_sim_amd_$name" \
            "$build/findings" --seconds="$seconds" || status=1
        continue
        ;;
    esac
    mkdir -p "$build/corpus/$name"
    dictionary=
    if [ -e "$here/$name.dict" ]; then dictionary=-dict=$here/$name.dict; fi
    log=$build/findings/$name.log
    if "$build/tests/fuzz/fuzz_$name" -max_total_time="$seconds" -timeout=300 -rss_limit_mb=2048 \
        -malloc_limit_mb=600 -max_len=65536 -print_final_stats=1 $dictionary \
        -artifact_prefix="$build/findings/$name-" \
        "$build/corpus/$name" "$here/corpus/$name" >"$log" 2>&1; then
        runs=$(sed -n 's/stat::number_of_executed_units: *//p' "$log")
        echo "$name: nothing found in $seconds s, $runs inputs"
    else
        status=1
        echo "$name: FOUND SOMETHING; see $log, and keep the input in $here/corpus/$name"
        tail -n 30 "$log"
    fi
done
exit $status
