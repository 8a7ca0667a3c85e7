# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What cuda.sh, hip.sh and amdgpu.sh share: sourced by them with their arguments, and with `parts`
# set to the names of what they can run. Reads the options, goes to the root of the tree, and leaves
#   folder   where the results go
#   kernels  the folder of -k, or nothing
#   build    the folder of the build, build-card
#   keel     the tool in there
# and the functions below. The first lines of the script that sources it are its help.
set -u
usage() { sed -n '3,/^[^#]/s/^# //p' "$0"; exit 2; }
kernels='' folder=''
while getopts k:o: option; do
    case $option in
    k) kernels=$(cd "$OPTARG" && pwd) || exit 2 ;;
    o) folder=$OPTARG ;;
    *) usage ;;
    esac
done
shift $((OPTIND - 1))
for part; do [[ " $parts " == *" $part "* ]] || { echo "what is '$part'?"; usage; }; done
chosen=" ${*:-$parts} "
folder=${folder:-$(mktemp -d)}
mkdir -p "$folder" && folder=$(cd "$folder" && pwd) || exit 1
cd "$(dirname "$0")/../.." || exit 1
build=$PWD/build-card keel=$PWD/build-card/keel
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
until=$((SECONDS + 585)) failed=0
: >"$folder/table.txt"

# note NAME STATUS SECONDS WORDS: a row of the table, to be seen at once.
note() {
    printf '%-26s %4s %5s  %s\n' "$1" "$2" "$3" "$4" | tee -a "$folder/table.txt"
}

# What a log has to say in one line: counts, what was left out, what compute-sanitizer found; else
# its last line.
summary() {
    local said
    said=$(grep -E '^[0-9]+ tests, from .* left out|^[0-9]+ passed, |SUMMARY: ' "$1" |
        sed 's/^=* *//' | paste -sd ';' | sed 's/;/; /g')
    echo "${said:-$(tail -n 1 "$1")}" | cut -c1-160
}

# step NAME SECONDS COMMAND...: runs it with a time limit. Logs are packed each time, so that they
# are there even if this script is ended.
step() {
    local name=$1 limit=$2 start=$SECONDS status left=$((until - SECONDS))
    shift 2
    [ $left -ge 10 ] || { note "$name" - - "left out: the ten minutes are over"; return 0; }
    timeout --kill-after=5 $((limit < left ? limit : left)) "$@" >"$logs/$name.log" 2>&1
    status=$?
    note "$name" $status $((SECONDS - start)) "$(summary "$logs/$name.log")"
    tar -C "$logs" -czf "$folder/logs.tar.gz" .
    [ $status = 0 ] || [ $status = 77 ] && return 0
    failed=1
    { grep -A 4 '^FAILED' "$logs/$name.log" || tail -n 15 "$logs/$name.log"; } | cut -c1-300
    return 1
}

# part NAME: whether it was asked for.
part() { [[ $chosen == *" $1 "* ]]; }

# build_all OPTION...: the library, the tool and the examples, with these options of cmake.
build_all() {
    local demos=(examples/*.c)
    demos=("${demos[@]/#examples\//example_}")
    step configure 60 cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
        -DKEEL_KERNELS="$kernels" -DKEEL_TESTS=OFF -DKEEL_EXAMPLES=ON "$@" &&
        step build 300 ninja -C "$build" keel_tool keel_shared "${demos[@]%.c}"
}

# examples DEVICE: each of them, which say themselves what goes wrong. One that needs a capability
# that the device does not have is skipped.
examples() {
    local example name output passed=0 bad=0 skipped=0
    for example in examples/*.c; do
        name=$(basename "$example" .c)
        if output=$(timeout 60 "$build/examples/$name" "$1" 2>&1); then
            passed=$((passed + 1))
        elif grep -q '^UNSUPPORTED: .*the device has no KEEL_CAP_' <<<"$output"; then
            skipped=$((skipped + 1))
        else
            bad=$((bad + 1))
            output+=$'\n'"FAILED $name"
        fi
        echo "$output"
    done
    echo "$passed passed, $bad failed, $skipped skipped"
    [ $bad = 0 ]
}

# conformance NAME DEVICE FILE: the suite in pieces, as making a context takes a second and some
# drivers make one at a time. What is skipped must be what FILE in conformance/expect says.
conformance() {
    local tests
    for tests in '[a-e]*' '[f-k]*' 'l*' '[m-p]*' '[q-s]*' '[t-z]*'; do
        step "$1-${tests//[^a-z-]/}" 180 "$keel" conformance --device="$2" -j 8 \
            --timeout=100 --expect="conformance/expect/$3" --filter="$tests"
    done
    tests=$(sed -n 's/^FAILED  \([a-z0-9_]*\.[a-z0-9_]*\) .*/\1/p' "$logs/$1"-*.log)
    # shellcheck disable=SC2086 # several words
    [ -z "$tests" ] || step "$1-alone" 180 bash -c 'each_alone "$@"' bash "$2" "$3" $tests
}

# each_alone DEVICE FILE TEST...: tests that failed beside others once more, one at a time: the card
# or its kernel driver may not get on with several processes.
each_alone() {
    local test output passed=0 bad=0
    for test in "${@:3}"; do
        output=$("$keel" conformance --device="$1" -j 1 --filter="$test" \
            --expect="conformance/expect/$2" 2>&1) && passed=$((passed + 1)) || bad=$((bad + 1))
        grep -v ' passed, ' <<<"$output"
    done
    echo "$passed passed, $bad failed"
    [ $bad = 0 ]
}

# bench NAME DEVICE OPTION...: as NAME.txt and NAME.json in the folder, too.
bench() {
    step "$1" 250 "$keel" bench --device="$2" --json="$folder/$1.json" "${@:3}"
    [ ! -e "$logs/$1.log" ] || cp "$logs/$1.log" "$folder/$1.txt"
}

# finish WORDS: the machine's, then the table.
finish() {
    echo
    echo "$1" | tee -a "$folder/table.txt"
    cat "$folder/table.txt"
    echo "the results are in $folder"
    exit $failed
}

export -f examples each_alone
export build keel
