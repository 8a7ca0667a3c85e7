#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# host.sh [FOLDER]: builds this tree on a machine with many cores and runs there what two cores
# cannot show: unit tests, conformance, random graphs, stress, and the benchmark with 1, 2, 4 ...
# workers. Installs nothing; what the machine lacks is skipped, with the reason. Leaves the logs in
# FOLDER (default: a new temporary one) and ends with a summary; its status is 0 if nothing failed.
# Takes up to eight minutes.
set -u
cd "$(dirname "$0")/../.."
logs=${1:-$(mktemp -d)}
mkdir -p "$logs" && logs=$(cd "$logs" && pwd) || exit 1
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
cores=$(nproc)
summary=() failed=0

# step NAME SECONDS COMMAND...: runs it with a time limit, notes how it ended and its last line.
step() {
    local name=$1 limit=$2 start=$SECONDS status result
    shift 2
    printf '== %s\n' "$name"
    timeout --kill-after=10 "$limit" "$@" >"$logs/$name.log" 2>&1
    status=$?
    case $status in
    0) result=ok ;;
    77) result=skipped ;;
    124 | 137) result="HUNG after $limit s" ;;
    *) result="FAILED ($status)" ;;
    esac
    [ $status = 0 ] || [ $status = 77 ] || { failed=1; tail -n 30 "$logs/$name.log"; }
    note "$name" "$result" "$((SECONDS - start)) s" "$(tail -n 1 "$logs/$name.log")"
    return $status
}

note() {
    summary+=("$(printf '%-14s %-18s %6s  %s' "$1" "$2" "$3" "$4")")
}

skip() {
    note "$1" skipped - "$2"
}

configure() {
    local options=(-S . -B "$build" -DCMAKE_BUILD_TYPE=RelWithDebInfo)
    command -v ninja >/dev/null && options+=(-G Ninja)
    pkg-config --exists cmocka || options+=(-DKEEL_TESTS=OFF)
    cmake "${options[@]}"
}

counts=1
for n in 2 4 8 16 32 64; do [ "$n" -le "$cores" ] && counts+=,$n; done

finish() {
    echo
    uname -srm
    grep -m1 'model name' /proc/cpuinfo
    echo "$cores processors, $(cc --version | head -n 1)"
    echo
    printf '%s\n' "${summary[@]}"
    exit $failed
}

export -f configure
export build
step configure 60 bash -c configure || finish
step build 120 cmake --build "$build" -j "$cores" || finish

if pkg-config --exists cmocka; then
    step unit 60 ctest --test-dir "$build" -L unit -j "$cores" --no-tests=error
else
    skip unit "no cmocka here"
fi
step conformance 100 "$build/keel" conformance --device=cpu://
step graphs 90 "$build/keel" graphs --count=10000
step stress 90 "$build/keel" stress --workers-list="$counts"
step bench 60 "$build/keel" bench --quick
step bench-workers 120 "$build/keel" bench --quick --workers="$counts"
cat "$logs/bench.log" "$logs/bench-workers.log"
finish
