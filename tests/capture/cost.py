# SPDX-License-Identifier: Apache-2.0
"""cost.py KEEL LOOP KERNELS: the instructions that tracing adds to a launch of HIP and its kernel, on
the thread that launches, as callgrind counts them on the software GPU. Those of libkeeltrace.so and
of what it calls in the C library are at most 400. To these come those of ROCR, whose intercept
queues pass the packets on, and those that wake the library's thread if it sleeps: how often it does
depends on the machine."""
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

MOST = 400
LAUNCHES = 512
SKIPPED = 77
OURS = "libkeeltrace.so"
WAKES = "collect_ask"


def skip(why):
    print(why)
    sys.exit(SKIPPED)


def run(out, tracer):
    # Fair: on a quiet machine a thread that polls can otherwise keep the others from running.
    valgrind = ["valgrind", "--tool=callgrind", "--fair-sched=try", "--instr-atstart=no",
                "--collect-atstart=no", "--callgrind-out-file=" + out]
    done = subprocess.run([sys.argv[1], "sim", "--gpus=gfx90a", "--", *tracer, *valgrind,
                           *sys.argv[2:], str(LAUNCHES)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    if "debuginfo reader" in done.stdout:
        skip("Debian 12's valgrind does not read what clang 19 writes")
    if done.returncode != 0:
        sys.exit(done.stdout)


class Profile:
    """What callgrind wrote: instructions by the library that they are in, those that a library
    spends in others which it calls, and those that wake the thread."""

    def __init__(self, path):
        self.own = collections.Counter()
        self.called = collections.Counter()
        self.names = {}
        self.wakes = 0
        library = callee = function = None
        is_call = False
        with open(path, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                key, _, value = line.rstrip().partition("=")
                if key == "ob":
                    library = self.name(key, value)
                elif key == "cob":
                    callee = self.name("ob", value)
                elif key in ("fn", "cfn"):
                    function = self.name("fn", value)
                elif key == "calls":
                    is_call = True
                elif re.match(r"[0-9+*-]", line):
                    count = int(line.split()[1])
                    if is_call:
                        self.called[library, callee or library] += count
                        self.wakes += count if function.startswith(WAKES) else 0
                        is_call, callee = False, None
                    else:
                        self.own[library] += count

    def name(self, kind, value):
        """A name is written once, with a number that stands for it."""
        number, _, text = value.partition(" ")
        if text:
            self.names[kind, number] = os.path.basename(text)
        return self.names[kind, number]

    def ours(self):
        """Those of the library, and of what it calls in that of C."""
        helped = [n for (where, to), n in self.called.items()
                  if where == OURS and re.match(r"libc\.|ld-|libpthread", to)]
        return self.own[OURS] + sum(helped) - self.wakes


def main():
    if not shutil.which("valgrind") or not os.path.exists("/usr/include/valgrind/callgrind.h"):
        skip("valgrind is not installed")
    with tempfile.TemporaryDirectory() as folder:
        plain, traced = folder + "/plain", folder + "/traced"
        run(plain, [])
        run(traced, [sys.argv[1], "trace", "-m", "hip", "-o", folder + "/trace.db", "--"])
        before, after = Profile(plain), Profile(traced)
    ours = after.ours() // LAUNCHES
    added = (sum(after.own.values()) - sum(before.own.values())) // LAUNCHES
    print(f"instructions added to a launch: {ours} of the tracer's, {after.wakes // LAUNCHES} to wake "
          f"its thread, {added} with those of ROCR's")
    if ours > MOST or ours < MOST // 8 or before.own[OURS]:
        sys.exit(f"more than {MOST}, or not counted")


main()
