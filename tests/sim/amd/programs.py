# SPDX-License-Identifier: Apache-2.0
"""What the makers of random programs share: the same C for the host and for the software GPU, and a
sweep over seeds."""
import itertools
import os
import random
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TARGETS = [(target, level) for level in "0123s" for target in ("gfx900", "gfx942", "gfx906", "gfx90a", "gfx908")]

# Programs of csmith with --float assign pointers to numbers of other types, an error for gcc 14,
# even with -w.
MIXED = "-Wno-incompatible-pointer-types"


def run(command, seconds):
    """The output of a command; None when it takes too long."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return None
    return done.stdout.strip() if done.returncode == 0 else "%s: %s%s" % (
        command[0], done.stdout.strip(), done.stderr.strip()[-800:])


def host(path, include, level="1", seconds=2):
    """What the program path.c prints on the host, None when it does not end, or its compiler."""
    made = run([os.environ.get("CC", "cc"), "-std=gnu11", "-O" + level, "-w", MIXED,
                "-ffp-contract=off"] + include + [path + ".c", "-o", path, "-lm"], 60)
    if made:
        raise SystemExit(made)
    return run([path], seconds) if made is not None else None


def host_agrees(path, include, want):
    """Whether the host gives the same at every level of optimisation. A program that does not has
    undefined behaviour of its own, and no GPU can be held to it."""
    return all(host(path, include, level) == want for level in "023")


def device(runner, path, include, target, level, options=()):
    """What the program prints on the software GPU, None when the compiler takes too long, and its
    code object."""
    code = os.path.join(os.path.dirname(path), "%s-O%s-%s.hsaco" % (target, level, os.path.basename(path)))
    made = run(["clang-19", "-std=gnu11", "-target", "amdgcn-amd-amdhsa", "-mcpu=" + target, "-O" + level,
                "-mcode-object-version=4", "-nogpulib", "-ffreestanding", "-ffp-contract=off", "-w"] +
               list(options) + include + ["-c", path + ".c", "-o", code + ".o"], 120)
    if made is None:
        return None, code
    made = made or run(["ld.lld-19", "-shared", code + ".o", "-o", code], 60)
    return made or run([runner, code], 60) or "no end", code


def forget(files):
    for file in files:
        if os.path.exists(file):
            os.unlink(file)


def sweep(check):
    """Calls check(runner, folder, seed, configurations) for the seeds that the command line names,
    and gives the list of what it returned."""
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
    return results
