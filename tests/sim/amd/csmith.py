#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""csmith.py RUNNER FOLDER (--seeds=FIRST-LAST | --seconds=N): random C programs, made by csmith, give
the same checksum on the host and on the software GPU.

Each seed is compiled for two of the targets and levels, in turn. RUNNER is csmith_test. Programs
that differ are kept in FOLDER, with the command that shows it."""
import itertools
import os
import random
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
INCLUDE = ["-I", os.path.join(HERE, "kernels/csmith"), "-I", "/usr/include/csmith"]
TARGETS = [(target, level) for level in "0123s" for target in ("gfx900", "gfx90a", "gfx906", "gfx908")]
# No packed structs and no volatile pointers: what compilers may see differently is left out.
CSMITH = ["csmith", "--no-argc", "--no-packed-struct", "--max-funcs", "6", "--max-block-size", "4"]

# Programs with --float assign pointers to numbers of other types, an error for gcc 14, even with -w.
MIXED = "-Wno-incompatible-pointer-types"

# In large functions at -O0, clang-19 keeps scalars in the lanes of vector registers of which it then
# saves only the active lanes. What goes wrong there, and not where scalars are kept in memory, is
# not our doing.
SPILLS = ["-mllvm", "-amdgpu-spill-sgpr-to-vgpr=0"]


def run(command, seconds):
    """The output of a command; None when it takes too long."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return None
    return done.stdout.strip() if done.returncode == 0 else "%s: %s%s" % (
        command[0], done.stdout.strip(), done.stderr.strip()[-800:])


def program(seed, path):
    """Makes the source of a seed and its checksum on the host, None when it does not end."""
    options = ["--float"] if seed % 3 == 0 else []
    # It leaves a file of its own in the folder where it runs.
    subprocess.run(CSMITH + options + ["--seed", str(seed), "-o", path + ".c"], check=True,
                   cwd=os.path.dirname(path), stdout=subprocess.DEVNULL)
    made = run([os.environ.get("CC", "cc"), "-std=gnu11", "-O1", "-w", MIXED, "-ffp-contract=off"] +
               INCLUDE + [path + ".c", "-o", path, "-lm"], 60)
    if made:
        raise SystemExit(made)
    return run([path], 2)


def device(runner, path, target, level, options=()):
    """The checksum on the software GPU, None when the compiler takes too long."""
    code = os.path.join(os.path.dirname(path), "%s-O%s-%s.hsaco" % (target, level, os.path.basename(path)))
    made = run(["clang-19", "-std=gnu11", "-target", "amdgcn-amd-amdhsa", "-mcpu=" + target, "-O" + level,
                "-mcode-object-version=4", "-nogpulib", "-ffreestanding", "-ffp-contract=off", "-w"] +
               list(options) + INCLUDE + ["-c", path + ".c", "-o", code + ".o"], 120)
    if made is None:
        return None, code
    made = made or run(["ld.lld-19", "-shared", code + ".o", "-o", code], 60)
    return made or run([runner, code], 60) or "no end", code


def check(runner, folder, seed, configurations):
    """The number of configurations that differ, or None when the program is of no use."""
    path = os.path.join(folder, "csmith-%d" % seed)
    want = program(seed, path)
    files, wrong = [path, path + ".c"], 0
    for target, level in configurations if want else []:
        got, code = device(runner, path, target, level)
        files += [code, code + ".o"]
        if got in (None, want):
            continue
        if level == "0" and device(runner, path, target, level, SPILLS)[0] == want:
            print("seed %d, %s -O0: clang lost lanes of a register" % (seed, target))
        else:
            wrong += 1
            print("seed %d, %s -O%s: %s, not %s\n    %s %s" % (seed, target, level, got, want, runner, code))
    for file in files if not wrong else []:
        if os.path.exists(file):
            os.unlink(file)
    return wrong if want else None


def main():
    runner, folder, what = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
    os.makedirs(folder, exist_ok=True)
    if what.startswith("--seeds="):
        first, last = map(int, what[8:].split("-"))
        seeds, end = range(first, last + 1), float("inf")
    else:
        seeds, end = itertools.count(random.randrange(1 << 30)), time.time() + float(what[10:])
    turn, results = itertools.cycle(TARGETS), []
    for seed in seeds:
        if time.time() > end:
            break
        results.append(check(runner, folder, seed, [next(turn), next(turn)]))
    wrong = sum(result or 0 for result in results)
    print("csmith: %d programs, %d of them without end on the host, %d wrong" % (
        len(results), results.count(None), wrong))
    return wrong != 0 or not results


if __name__ == "__main__":
    sys.exit(main())
