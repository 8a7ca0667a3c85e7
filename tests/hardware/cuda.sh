#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cuda.sh KERNELS [FOLDER [STEPS]]: builds this tree on a machine with an NVIDIA GPU and runs on
# cuda://0: conformance, random graphs, the benchmark, what card.c and tensors.py show beside them
# (contexts, streams, memory and kernels of other programs), and compute-sanitizer where that is
# there; ends with a table. KERNELS is a folder of containers made elsewhere, for x86_64-linux and
# nvptx:sm_70, so that the machine needs no clang: conformance_kernels.keel,
# conformance_language.keel, graph_kernels.keel and bench_kernels.keel. Logs go to FOLDER (default:
# a new temporary one). STEPS is a pattern: only rows of the table that match it are run, and what
# they need ('@(card|graphs*)'; by default all but bench-json, the benchmark for machines to read).
# Installs nothing; its status is 0 if nothing failed. Ends before ten minutes are over: what is not
# begun by then is left out, and the table says so.
set -u
shopt -s extglob
[ $# -ge 1 ] || { sed -n '3,12s/^# //p' "$0"; exit 2; }
kernels=$(cd "$1" && pwd) || exit 2
cd "$(dirname "$0")/../.."
logs=${2:-$(mktemp -d)}
mkdir -p "$logs" && logs=$(cd "$logs" && pwd) || exit 1
steps="@(configure|build|programs|foreign|${3:-!(bench-json)})"
until=$((SECONDS + 585))
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
table=() failed=0

note() {
    table+=("$(printf '%-30s %4s  %s' "$1" "$2" "$3")")
}

# What a log has to say in one line: counts, what was left out, what compute-sanitizer found; else
# its last line.
summary() {
    local said
    said=$(grep -E '^[0-9]+ tests, from .* left out|^[0-9]+ passed, |SUMMARY: ' "$1" |
        sed 's/^=* *//' | paste -sd ';' | sed 's/;/; /g')
    echo "${said:-$(tail -n 1 "$1")}" | cut -c1-160
}

# step NAME SECONDS COMMAND...: runs it with a time limit, and makes a row of the table.
step() {
    local name=$1 limit=$2 status left=$((until - SECONDS))
    shift 2
    # shellcheck disable=SC2053 # it is a pattern
    [[ $name == $steps ]] || return 0
    [ $left -ge 10 ] || { note "$name" - "left out: the ten minutes are over"; return 0; }
    timeout --kill-after=5 $((limit < left ? limit : left)) "$@" >"$logs/$name.log" 2>&1
    status=$?
    [ $status = 0 ] || [ $status = 77 ] ||
        { failed=1; grep -A 4 '^FAILED' "$logs/$name.log" | cut -c1-300; }
    note "$name" "$status" "$(summary "$logs/$name.log")"
}

configure() {
    cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DKEEL_KERNELS="$kernels" \
        -DKEEL_TESTS=OFF -DKEEL_WERROR=OFF
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
        cc "${options[@]}" -shared -fPIC -o "$build/tensors.so" tests/hardware/tensors.c -lkeel
}

export -f configure foreign programs
export build kernels
step configure 60 bash -c configure
step build 300 ninja -C "$build" keel_tool keel_shared
keel=$build/keel
# What is skipped must be what expect/cuda.txt says.
expect=--expect=conformance/expect/cuda.txt
# In pieces: a context takes a second to make, and the driver makes one at a time.
for tests in '[a-e]*' '[f-k]*' 'l*' '[m-p]*' '[q-s]*' '[t-z]*'; do
    step "conformance-${tests//[^a-z-]/}" 180 "$keel" conformance --device=cuda://0 -j 8 \
        --timeout=100 $expect --filter="$tests"
done
# By the machine's own means: no pools of the vendor's, no graphs, a wait after each operation.
step conformance-sync 120 "$keel" conformance --device='cuda://0?alloc=sync&commands=stream' -j 8 \
    --timeout=100 $expect --filter='[ap]*'
step conformance-serial 120 "$keel" conformance --device='cuda://0?serial=1' -j 8 --timeout=100 \
    $expect --filter='[bdi]*'
step programs 60 bash -c programs
if command -v nvcc >/dev/null; then
    step foreign 60 bash -c foreign
    step card 60 "$build/card" libcuda.so.1 "$build"
else
    note foreign - "skipped: there is no nvcc here"
    step card 60 "$build/card" libcuda.so.1
fi
step tensors 100 python3 tests/hardware/tensors.py "$build/tensors.so"
step graphs 120 "$keel" graphs --device=cuda://0 --count=2000
step graphs-mixed 60 "$keel" graphs --device=cpu:// --device=cuda://0 --count=500
step bench 200 "$keel" bench --device=cuda://0
step bench-json 200 "$keel" bench --device=cuda://0 --json
# Conformance under compute-sanitizer runs in one process for each piece, for as long as is said;
# errors that calls return are what many tests ask for. Left out are branch.several_in_flight, which
# passes alone and under memcheck loses the device without a finding of memcheck's; gpu.*, whose
# tests lose the device, measure time or wait for each other's kernels; and racecheck over all but
# the kernels with workgroup memory, which is all it looks at.
if command -v compute-sanitizer >/dev/null; then
    check() { # TOOL-WHAT SECONDS COMMAND...
        step "sanitizer-$1" "$2" compute-sanitizer --tool "${1%%-*}" --error-exitcode 3 "${@:3}"
    }
    under() { # TOOL-WHAT SECONDS FILTER
        check "$1" $(($2 + 40)) --report-api-errors no "$keel" conformance --device=cuda://0 \
            --under-tool --timeout=60 --seconds="$2" --filter="$3"
    }
    under memcheck-a-f 25 '[ac-f]*'
    under memcheck-b 10 'b[!r]*'
    under memcheck-branch 10 'branch.[!s]*'
    under memcheck-switch 10 'branch.s[!e]*'
    under memcheck-h-l 35 '[h-l]*'
    under memcheck-m-q 20 '[m-q]*'
    under memcheck-recordings 20 'r*'
    under memcheck-s-z 25 '[s-z]*'
    under racecheck-dispatch 15 'dispatch*'
    under racecheck-language 30 'language*'
    check memcheck-card 60 "$build/card" libcuda.so.1
    check racecheck-card 60 "$build/card" libcuda.so.1 "$build"
    check memcheck-bench 120 "$keel" bench --device=cuda://0 --once
else
    note sanitizer - "skipped: there is no compute-sanitizer here"
fi

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
printf '%s\n' "${table[@]}"
exit $failed
