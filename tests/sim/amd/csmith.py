#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""csmith.py RUNNER FOLDER (--seeds=FIRST-LAST | --seconds=N): random C programs, made by csmith, give
the same checksum on the host and on the software GPU.

Each seed is compiled for two of the targets and levels, in turn. RUNNER is csmith_test. Programs
that differ are kept in FOLDER, with the command that shows it. Programs that do not end on the host,
or whose checksum depends on the host's level of optimisation, are counted and left out."""
import os
import subprocess
import sys

sys.dont_write_bytecode = True # nothing is left beside the source
import programs

INCLUDE = ["-I", os.path.join(programs.HERE, "kernels/csmith"), "-I", "/usr/include/csmith"]
# No packed structs and no volatile pointers: what compilers may see differently is left out.
CSMITH = ["csmith", "--no-argc", "--no-packed-struct", "--max-funcs", "6", "--max-block-size", "4"]
ENDLESS, UNDEFINED = "without end", "undefined"

# In large functions at -O0, clang-19 keeps scalars in the lanes of vector registers of which it then
# saves only the active lanes. What goes wrong there, and not where scalars are kept in memory, is
# not our doing.
SPILLS = ["-mllvm", "-amdgpu-spill-sgpr-to-vgpr=0"]


def make(seed, path):
    """Makes the source of a seed."""
    options = ["--float"] if seed % 3 == 0 else []
    # It leaves a file of its own in the folder where it runs.
    subprocess.run(CSMITH + options + ["--seed", str(seed), "-o", path + ".c"], check=True,
                   cwd=os.path.dirname(path), stdout=subprocess.DEVNULL)


def compare(runner, path, want, target, level):
    """Whether a configuration gives what it should, and its code object."""
    got, code = programs.device(runner, path, INCLUDE, target, level)
    if got in (None, want):
        return True, code
    name = "%s, %s -O%s" % (os.path.basename(path), target, level)
    if level == "0" and programs.device(runner, path, INCLUDE, target, level, SPILLS)[0] == want:
        print("%s: clang lost lanes of a register" % name)
        return True, code
    print("%s: %s, not %s\n    %s %s" % (name, got, want, runner, code))
    return False, code


def check(runner, folder, seed, configurations):
    """The number of configurations that differ, or why the program is of no use."""
    path = os.path.join(folder, "csmith-%d" % seed)
    make(seed, path)
    want = programs.host(path, INCLUDE)
    files, wrong = [path, path + ".c"], 0
    for target, level in configurations if want else []:
        good, code = compare(runner, path, want, target, level)
        files += [code, code + ".o"]
        wrong += not good
    if wrong and not programs.host_agrees(path, INCLUDE, want):
        print("csmith-%d: the host's own results differ; it is left out" % seed)
        wrong = UNDEFINED
    if wrong in (0, UNDEFINED):
        programs.forget(files)
    return wrong if want else ENDLESS


def main():
    results = programs.sweep(check)
    wrong = sum(result for result in results if isinstance(result, int))
    print("csmith: %d programs, %d of them without end on the host, %d undefined, %d wrong" % (
        len(results), results.count(ENDLESS), results.count(UNDEFINED), wrong))
    return wrong != 0 or not results


if __name__ == "__main__":
    sys.exit(main())
