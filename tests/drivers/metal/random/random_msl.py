#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""random_msl.py KEEL_CC RUNNER LIBRARY FOLDER --seeds=FIRST-LAST: random kernels in C, which
`keel cc` compiles for the host and for Metal, give the same bits on both.

RUNNER is run.c of this folder, LIBRARY the software Metal. Kernels that differ are kept in FOLDER,
with the command that shows it. Only what is exact is used: integers of all widths without undefined
behaviour, and of floats and doubles what IEEE 754 rounds in one way. Of a number that is none only
that is compared."""
import os
import platform
import random
import subprocess
import sys

INTEGERS = ["%sint%d_t" % (sign, bits) for bits in (8, 16, 32, 64) for sign in ("", "u")]
INCLUDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../../include")

PROLOGUE = """// SPDX-License-Identifier: Apache-2.0
#include <keel/kernel.h>

static int32_t div_i32(int32_t a, int32_t b) { return b == 0 || b == -1 ? a : a / b; }
static int64_t div_i64(int64_t a, int64_t b) { return b == 0 || b == -1 ? a : a / b; }
static int32_t rem_i32(int32_t a, int32_t b) { return b == 0 || b == -1 ? a : a % b; }
static int64_t rem_i64(int64_t a, int64_t b) { return b == 0 || b == -1 ? a : a % b; }
static int32_t whole_float(float x) { return x > -1e9f && x < 1e9f ? (int32_t)x : 77; }
static int64_t whole_double(double x) { return x > -1e18 && x < 1e18 ? (int64_t)x : 77; }
static uint64_t bits_float(float x) { return x != x ? 0x7fc00000 : keel_bits_of(x); }
static uint64_t bits_double(double x) { return x != x ? 0x7ff8000000000000 : keel_bits_of(x); }

"""


def bits(kind):
    return int(kind.strip("uint_"))


def wide(kind):
    """An unsigned type in which nothing overflows."""
    return "uint64_t" if bits(kind) == 64 else "uint32_t"


class Kernel:
    """Makes the text of one kernel, by its seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.doubles = seed % 4 == 0 # they are slow
        self.floats = ["float", "double"] if self.doubles else ["float"]
        self.variables = {} # name: type
        self.loops = 0
        self.lines = []

    def pick(self, *choices):
        return self.random.choice(choices)

    def constant(self, kind):
        if kind in self.floats:
            value = self.pick("0.0", "1.0", "1.5", "0.1", "3e5", "1e-30", "7e20", "16777217.0")
            return value + ("f" if kind == "float" else "")
        value = self.pick(0, 1, 2, 7, 255, 0x8000, 0x7fffffff, self.random.getrandbits(32),
                          self.random.getrandbits(64))
        return "(%s)%dull" % (kind, value)

    def leaf(self, kind):
        names = sorted(name for name, its in self.variables.items() if its == kind)
        if names and self.random.random() < 0.75:
            return self.pick(*names)
        return self.constant(kind)

    def condition(self, depth):
        kind = self.pick(*(INTEGERS + self.floats))
        return "(%s %s %s)" % (self.expression(kind, depth), self.pick("<", "<=", "==", "!=", ">"),
                               self.expression(kind, depth))

    def of_float(self, kind, depth):
        a = self.expression(kind, depth)
        what = self.random.randrange(9)
        if what < 4:
            return "(%s %s %s)" % (a, "+-*/"[what], self.expression(kind, depth))
        if what == 4:
            return "(%s)%s" % (kind, self.expression(self.pick(*INTEGERS), depth))
        if what == 5:
            return "keel_fma(%s, %s, %s)" % (a, self.leaf(kind), self.leaf(kind))
        if what == 6:
            return "keel_%s(%s)" % (self.pick("sqrt", "floor", "ceil", "trunc", "rint", "abs"), a)
        if what == 7 and self.doubles:
            return "(%s)%s" % (kind, self.expression(self.pick(*self.floats), depth))
        return "(%s ? %s : -%s)" % (self.condition(depth), a, self.leaf(kind))

    def divided(self, kind, depth):
        a, b = self.expression(kind, depth), self.expression(kind, depth)
        if kind[0] == "u":
            return "(%s)(%s %s (%s | 1))" % (kind, a, self.pick("/", "%"), b)
        return "(%s)%s_i%d(%s, %s)" % (kind, self.pick("div", "rem"), max(bits(kind), 32), a, b)

    def of_integer(self, kind, depth):
        what, a = self.random.randrange(9), self.expression(kind, depth)
        unsigned = wide(kind)
        if what < 3:
            b = self.expression(kind, depth)
            return "(%s)((%s)%s %s (%s)%s)" % (kind, unsigned, a,
                                               self.pick("+", "-", "*", "&", "|", "^"), unsigned, b)
        if what == 3:
            return self.divided(kind, depth)
        if what == 4:
            by = "(%s & %d)" % (self.expression("uint32_t", depth), bits(kind) - 1)
            left = self.random.random() < 0.5
            return "(%s)(%s << %s)" % (kind, "(%s)%s" % (unsigned, a), by) if left else \
                "(%s)(%s >> %s)" % (kind, a, by)
        if what == 5:
            return "(%s)%s" % (kind, self.expression(self.pick(*INTEGERS), depth))
        if what == 6:
            from_kind = self.pick(*self.floats)
            return "(%s)whole_%s(%s)" % (kind, from_kind, self.expression(from_kind, depth))
        if what == 7:
            call = self.pick("popcount(%s)", "clz(%s)", "ctz(%s)", "reverse(%s)", "rotate(%s, 11)",
                             "mulhi(%s, (U)0x9e3779b97f4a7c15)")
            return "(%s)keel_%s" % (kind, call.replace("U", unsigned) % ("(%s)%s" % (unsigned, a)))
        return "(%s ? %s : %s)" % (self.condition(depth), a, self.leaf(kind))

    def expression(self, kind, depth):
        if depth == 0 or self.random.random() < 0.15:
            return self.leaf(kind)
        return (self.of_float if kind in self.floats else self.of_integer)(kind, depth - 1)

    def say(self, indent, text):
        self.lines.append("    " * indent + text)

    def assign(self, indent):
        name = self.pick(*sorted(self.variables))
        self.say(indent, "%s = %s;" % (name, self.expression(self.variables[name], 3)))

    def branch(self, indent, depth):
        self.say(indent, "if %s {" % self.condition(2))
        self.block(indent + 1, depth)
        if self.random.random() < 0.5:
            self.say(indent, "} else {")
            self.block(indent + 1, depth)
        self.say(indent, "}")

    def loop(self, indent, depth):
        count = "n%d" % self.loops
        self.loops += 1
        self.say(indent, "for (uint32_t %s = 0; %s < %d; %s++) {" % (
            count, count, self.random.randrange(1, 6), count))
        self.block(indent + 1, depth)
        if self.random.random() < 0.5:
            self.say(indent + 1, "if %s %s;" % (self.condition(1), self.pick("break", "continue")))
        self.block(indent + 1, depth)
        self.say(indent, "}")

    def choice(self, indent, depth):
        self.say(indent, "switch (%s %% 4) {" % self.expression("uint32_t", 1))
        for case in range(3):
            self.say(indent, "case %d:" % case)
            self.block(indent + 1, depth)
            if self.random.random() < 0.7:
                self.say(indent + 1, "break;")
        self.say(indent, "default: break;")
        self.say(indent, "}")

    def array(self, indent):
        self.say(indent, "shelf[%s %% 8] = %s;" % (self.expression("uint32_t", 1),
                                                   self.expression("uint64_t", 2)))
        name = self.pick(*sorted(self.variables))
        if self.variables[name] in INTEGERS:
            self.say(indent, "%s ^= (%s)shelf[%s %% 8];" % (name, self.variables[name],
                                                             self.expression("uint32_t", 1)))

    def block(self, indent, depth):
        for _ in range(self.random.randrange(1, 4)):
            what = self.random.randrange(8) if depth else 0
            if what < 3:
                self.assign(indent)
            elif what == 3:
                self.array(indent)
            elif what == 4:
                self.choice(indent, depth - 1)
            elif what == 5:
                self.loop(indent, depth - 1)
            else:
                self.branch(indent, depth - 1)

    def region(self, first):
        """What each item does: its own numbers, and in the second region those of another."""
        self.variables = {}
        self.say(1, "KEEL_ITEMS {")
        self.say(2, "uint32_t i = (uint32_t)keel_global_id(0), at = (uint32_t)keel_local_id(0);")
        self.say(2, "uint64_t shelf[8] = {i, 1, 2, 3, at};")
        kinds = [self.pick(*INTEGERS) for _ in range(4)] + INTEGERS[-4:] + self.floats * 2
        for index, kind in enumerate(kinds):
            self.variables["v%d" % index] = kind
            start = "in[i * 2 + %d]" % (index % 2) if first else "part[(at + %d) %% 32]" % index
            cast = "keel_float_of((uint32_t)%s)" % start if kind == "float" else "(%s)%s" % (kind, start)
            self.say(2, "%s v%d = %s;" % (kind, index, cast))
        for _ in range(3):
            self.block(2, 2)
        integers = [n for n in sorted(self.variables) if self.variables[n] in INTEGERS]
        folded = " ^ ".join("((uint64_t)%s * %dull)" % (n, 2 * k + 1) for k, n in enumerate(integers))
        floats = [n for n in sorted(self.variables) if self.variables[n] in self.floats]
        told = " + ".join("bits_%s(%s)" % (self.variables[n], n) for n in floats)
        if first:
            self.say(2, "out[i * 4] = %s;" % folded)
            self.say(2, "out[i * 4 + 1] = %s;" % told)
            self.say(2, "part[at] = out[i * 4] ^ shelf[at % 8];")
        else:
            self.say(2, "out[i * 4 + 2] = %s;" % folded)
            self.say(2, "out[i * 4 + 3] = (%s) ^ shelf[at %% 8];" % told)
        self.say(1, "}")

    def text(self):
        self.region(True)
        self.say(1, "KEEL_BARRIER();")
        self.region(False)
        return PROLOGUE + "KEEL_KERNEL(mix, KEEL_GROUP(32), KEEL_IN(uint32_t, in), " \
            "KEEL_OUT(uint64_t, out),\n            KEEL_LOCAL(uint64_t, part, 32))\n{\n" + \
            "\n".join(self.lines) + "\n}\n"


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, (done.stdout + done.stderr).strip()


def check(tools, folder, seed):
    """Whether a seed's kernel gives the same everywhere."""
    keel_cc, runner, library = tools
    source = os.path.join(folder, "random-%d.c" % seed)
    container = source[:-2] + ".keel"
    with open(source, "w") as file:
        file.write(Kernel(seed).text())
    compiled = [keel_cc, source, "-o", container, "--target=%s-linux,msl" % platform.machine(), "-I" + INCLUDE,
                "-O%d" % (seed % 3), "-ffp-contract=off", "-Wno-unused-function",
                "-Wno-tautological-compare", "-Wno-literal-range"]
    runs = [runner, container, "cpu://", "metal://0?lib=" + library]
    for command in (compiled, runs):
        status, said = run(command)
        if status:
            print("%s: %s\n    %s" % (os.path.basename(source), said[-2000:], " ".join(command)))
            return False
    os.unlink(source)
    os.unlink(container)
    return True


def main():
    tools, folder = [os.path.abspath(path) for path in sys.argv[1:4]], os.path.abspath(sys.argv[4])
    first, last = map(int, sys.argv[5][len("--seeds="):].split("-"))
    os.makedirs(folder, exist_ok=True)
    results = [check(tools, folder, seed) for seed in range(first, last + 1)]
    print("%d passed, %d failed" % (results.count(True), results.count(False)))
    return not all(results)


if __name__ == "__main__":
    sys.exit(main())
