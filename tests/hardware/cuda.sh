#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cuda.sh [-k KERNELS] [-o FOLDER] [PART...]: builds this tree on a machine with an NVIDIA GPU and
# runs on cuda://0 what the parts name, all of them if none is named:
#   conformance  the suite, and pieces of it with options of the device
#   examples     each of them
#   facts        what Keel relies on in NVIDIA's library: facts/
#   card         what card.c shows: contexts, streams, memory and kernels of other programs
#   tensors      PyTorch and Triton beside Keel
#   graphs       random graphs, on the card alone and mixed with the processor
#   bench        the benchmark, as table and JSON
#   sanitizer    compute-sanitizer over conformance, card.c and the benchmark
# The build comes first in any case (`build` alone is only that); it stays in build-card and is
# brought up to date the next time. KERNELS is a folder that cuda-pack.sh filled elsewhere, for
# machines without clang. Each step tells its result and seconds when it ends. FOLDER (default: a
# new temporary one) gets table.txt, logs.tar.gz, and of the benchmark bench.txt and bench.json.
# Installs nothing; its status is 0 if nothing failed. Ends before ten minutes are over: what is not
# begun by then is left out, and the table says so: the parts can be shared out among several calls.
set -u
parts='build conformance examples facts card tensors graphs bench sanitizer'
usage() { sed -n '3,19s/^# //p' "$0"; exit 2; }
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
    grep -A 4 '^FAILED' "$logs/$name.log" | cut -c1-300
    return 1
}

# part NAME: whether it was asked for.
part() { [[ $chosen == *" $1 "* ]]; }

configure() {
    cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DKEEL_KERNELS="$kernels" \
        -DKEEL_TESTS=OFF -DKEEL_EXAMPLES=ON
}

# Each of the examples, which say themselves what goes wrong.
examples() {
    local example name passed=0 bad=0
    for example in examples/*.c; do
        name=$(basename "$example" .c)
        if timeout 60 "$build/examples/$name" cuda://0 2>&1; then
            passed=$((passed + 1))
        else
            bad=$((bad + 1))
            echo "FAILED $name"
        fi
    done
    echo "$passed passed, $bad failed"
    [ $bad = 0 ]
}

# What nvcc makes for the card that is here, in each of its forms.
foreign() {
    local arch source=tests/hardware/card.cu
    arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
    nvcc -ptx -arch=compute_80 -o "$build/card.ptx" $source &&
        nvcc -cubin -arch="sm_$arch" -o "$build/card.cubin" $source &&
        nvcc -fatbin -gencode=arch=compute_80,code=sm_80 \
            -gencode=arch="compute_$arch,code=sm_$arch" -o "$build/card.fatbin" $source
}

# Programs that see of Keel what any program would.
programs() {
    local options=(-std=gnu17 -O1 -Iinclude -L"$build" -Wl,-rpath,"$build")
    cc "${options[@]}" -o "$build/card" tests/hardware/card.c -lkeel -ldl &&
        cc -std=gnu17 -O1 -I. -Isim -o "$build/facts" tests/hardware/facts/{,cuda/,rocm/}*.c \
            -lpthread -ldl &&
        cc "${options[@]}" -shared -fPIC -o "$build/tensors.so" tests/hardware/tensors.c -lkeel
}

conformance_run() {
    # What is skipped must be what expect/cuda.txt says.
    local expect=--expect=conformance/expect/cuda.txt tests
    # In pieces: a context takes a second to make, and the driver makes one at a time.
    for tests in '[a-e]*' '[f-k]*' 'l*' '[m-p]*' '[q-s]*' '[t-z]*'; do
        step "conformance-${tests//[^a-z-]/}" 180 "$keel" conformance --device=cuda://0 -j 8 \
            --timeout=100 $expect --filter="$tests"
    done
    # By the machine's own means: no pools of the vendor's, no graphs, a wait after each operation.
    step conformance-sync 120 "$keel" conformance --device='cuda://0?alloc=sync&commands=stream' \
        -j 8 --timeout=100 $expect --filter='[ap]*'
    step conformance-serial 120 "$keel" conformance --device='cuda://0?serial=1' -j 8 \
        --timeout=100 $expect --filter='[bdi]*'
}

bench_run() {
    step bench 250 "$keel" bench --device=cuda://0 --json="$folder/bench.json"
    [ ! -e "$logs/bench.log" ] || cp "$logs/bench.log" "$folder/bench.txt"
}

# Conformance under compute-sanitizer runs in one process for each piece, for as long as is said;
# errors that calls return are what many tests ask for. Left out are branch.several_in_flight, which
# passes alone and loses the device under memcheck, as does a program of the driver API alone that
# changes nodes of a conditional body between launches (docs/hardware.md); gpu.*, whose tests lose
# the device, measure time or wait for each other's kernels; and racecheck over all but
# the kernels with workgroup memory, which is all it looks at.
check() { # TOOL-WHAT SECONDS COMMAND...
    step "$1" "$2" compute-sanitizer --tool "${1%%-*}" --error-exitcode 3 "${@:3}"
}
under() { # TOOL-WHAT SECONDS FILTER
    check "$1" $(($2 + 40)) --report-api-errors no "$keel" conformance --device=cuda://0 \
        --under-tool --timeout=60 --seconds="$2" --filter="$3"
}
sanitizer_run() {
    under memcheck-a-f 25 '[ac-f]*'
    under memcheck-b 10 'b[!r]*'
    under memcheck-branch 10 'branch.[!s]*'
    under memcheck-switch 10 'branch.s[!e]*'
    under memcheck-h-l 35 '[h-l]*'
    under memcheck-m-q 20 '[m-q]*'
    under memcheck-recordings 40 'r*'
    under memcheck-s-z 25 '[s-z]*'
    under racecheck-dispatch 15 'dispatch*'
    under racecheck-language 30 'language*'
    check memcheck-card 60 --report-api-errors no "$build/card" libcuda.so.1
    check racecheck-card 60 "$build/card" libcuda.so.1 "$build"
    check memcheck-bench 120 "$keel" bench --device=cuda://0 --once
}

finish() {
    echo
    { nvidia-smi --query-gpu=name,driver_version --format=csv,noheader || echo "no nvidia-smi"; } \
        2>/dev/null | tee -a "$folder/table.txt"
    cat "$folder/table.txt"
    exit $failed
}

export -f configure examples foreign programs
export build kernels
demos=(examples/*.c)
demos=("${demos[@]/#examples\//example_}")
{ step configure 60 bash -c configure &&
    step build 300 ninja -C "$build" keel_tool keel_shared "${demos[@]%.c}" &&
    step programs 60 bash -c programs; } || finish
images=() # the folder of what nvcc made, if it could
if command -v nvcc >/dev/null; then
    if part card || part sanitizer; then step foreign 60 bash -c foreign && images=("$build"); fi
else
    note foreign - - "skipped: there is no nvcc here"
fi

if part conformance; then conformance_run; fi
if part examples; then step examples 120 bash -c examples; fi
if part facts; then
    step facts 300 "$build/facts" --lib=libcuda.so.1 \
        --kernels=tests/hardware/facts/cuda/kernels/card.ptx
fi
if part card; then step card 60 "$build/card" libcuda.so.1 "${images[@]}"; fi
if part tensors; then step tensors 100 python3 tests/hardware/tensors.py "$build/tensors.so"; fi
if part graphs; then
    step graphs 120 "$keel" graphs --device=cuda://0 --count=2000
    step graphs-mixed 60 "$keel" graphs --device=cpu:// --device=cuda://0 --count=500
fi
if part bench; then bench_run; fi
if part sanitizer; then
    if command -v compute-sanitizer >/dev/null; then
        sanitizer_run
    else
        note sanitizer - - "skipped: there is no compute-sanitizer here"
    fi
fi
finish
