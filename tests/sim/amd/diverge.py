#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""diverge.py RUNNER FOLDER (--seeds=FIRST-LAST | --seconds=N): random kernels whose lanes go different
ways give the same results on the host and on the software GPU.

Each seed is a file of four kernels: nested ifs, loops, switches, calls and returns that depend on the
item, on its group, or on nothing that differs between lanes; around them private, group and global
memory. It is compiled for two of the targets and levels, in turn. For the second one the compiler
branches around no part that it could run with all lanes off instead. RUNNER is diverge_test, which
runs every kernel several times. Files that differ are kept in FOLDER, with the command that shows
it."""
import os
import random
import sys

sys.dont_write_bytecode = True # nothing is left beside the source
import programs

INCLUDE = ["-I", os.path.join(programs.HERE, "kernels")]
NO_BRANCHES = ["-mllvm", "-amdgpu-skip-threshold=1000"]
VARIABLES = ["a", "b", "c", "d"]
UNIFORM = ["group", "in[3]", "in[group & 63]"]


class Maker:
    """Writes C without undefined behaviour, at random."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines, self.indent, self.loops, self.names = [], 0, [], 0
        self.in_function = False

    def pick(self, *choices):
        return self.random.choice(choices)

    def put(self, line):
        self.lines.append("    " * self.indent + line)

    def leaf(self):
        kind = self.random.randrange(10)
        if kind < 5:
            return self.pick(*VARIABLES)
        if kind == 5:
            return self.pick("id", "lane", *self.loops)
        if kind == 6:
            return "%uu" % self.random.getrandbits(self.pick(3, 8, 32))
        if kind == 7:
            return "in[(%s) & 255]" % self.pick(*VARIABLES)
        if kind == 8:
            return self.pick(*UNIFORM)
        return self.place()

    def place(self):
        """Memory of the item's own."""
        if self.random.random() < 0.5:
            return "own[(%s) & 7]" % self.pick(*VARIABLES)
        return "shared[(%s) & 3][lane]" % self.pick(*VARIABLES)

    def expression(self, depth=2):
        if depth == 0:
            return self.leaf()
        x, y = self.expression(depth - 1), self.expression(depth - 1)
        form = self.pick("(%s + %s)", "(%s - %s)", "(%s * %s)", "(%s & %s)", "(%s | %s)", "(%s ^ %s)",
                         "(%s << (%s & 31))", "(%s >> (%s & 31))", "(%s / (%s | 1))", "(%s %% (%s | 1))",
                         "(uint32_t)((int32_t)%s >> (%s & 31))", "(uint32_t)((uint64_t)%s * %s >> 32)",
                         "(uint32_t)(((uint64_t)%s << 32 | %s) >> 13)",
                         "(__builtin_popcount(%s) + %s)",
                         "float_bits((float)(%s & 0xffff) * (float)(%s & 0xff))",
                         "((%s & 0xffff) < (%s & 0xffff) ? a : b)")
        return form % (x, y)

    def same(self):
        """A condition that is the same in all lanes, mostly false, which the compiler cannot know."""
        return "in[id >> 20] %s in[%d]" % (self.pick("==", "==", "!="), self.random.randrange(1, 20))

    def condition(self):
        if self.random.random() < 0.2:
            return "%s & %u" % (self.pick(*UNIFORM), self.pick(1, 2, 4))
        if self.random.random() < 0.15:
            return self.same()
        x, y = self.expression(1), self.expression(1)
        return self.pick("%s & 1 && %s & 2", "%s & 1 || %s & 4", "%s < %s", "(int32_t)%s > (int32_t)%s",
                         "(%s & 7) == (%s & 7)", "(float)(%s & 255) < (float)(%s & 255)",
                         "(%s & 63) == (%s & 63)") % (x, y)

    def change(self):
        target = self.pick(*VARIABLES) if self.random.random() < 0.6 else self.place()
        self.put("%s %s %s;" % (target, self.pick("=", "+=", "^=", "-="), self.expression()))

    def block(self, budget):
        self.indent += 1
        for _ in range(self.random.randrange(1, 4)):
            self.statement(budget)
        self.indent -= 1

    def branch(self, budget):
        self.put("if (%s) {" % self.condition())
        self.block(budget - 1)
        if self.random.random() < 0.4:
            self.put("} else {")
            self.block(budget - 1)
        self.put("}")

    def choice(self, budget):
        self.put("switch (%s & 3) {" % self.expression(1))
        for case in range(self.random.randrange(2, 4)):
            self.put("case %d:" % case)
            self.block(budget - 1)
            if self.random.random() < 0.7:
                self.put("    break;")
        self.put("default:")
        self.block(budget - 1)
        self.put("}")

    def loop(self, budget):
        self.names += 1
        counter, limit = "i%d" % self.names, "n%d" % self.names
        amount = self.pick(self.expression(1), self.pick(*UNIFORM))
        self.put("for (uint32_t %s = 0, %s = (%s) & 7; %s < %s; %s++) {" % (
            counter, limit, amount, counter, limit, counter))
        self.loops.append(counter)
        self.block(budget - 1)
        if self.random.random() < 0.5:
            self.put("    if (%s) %s;" % (self.condition(), self.pick("break", "continue")))
            self.block(budget - 1)
        self.loops.pop()
        self.put("}")

    def leave(self):
        if self.in_function:
            self.put("if (%s) return %s;" % (self.condition(), self.expression(1)))
        else:
            self.put("a += function(own, in, %s, %s, group, lane);" % (self.expression(1), self.expression(1)))

    def statement(self, budget):
        kind = self.random.randrange(14)
        if budget <= 0 or kind < 5:
            self.change()
        elif kind < 8:
            self.branch(budget)
        elif kind == 8:
            self.choice(budget)
        elif kind == 9 and len(self.loops) < 3:
            self.loop(budget)
        elif kind == 10:
            self.leave()
        elif kind == 11 and not self.in_function:
            self.put("if (%s) out[%s & 3] = %s;" % (self.condition(), self.leaf(), self.expression()))
        elif kind == 12 and not self.in_function:
            self.put("if (%s) __atomic_fetch_add(&sums[%s & 7], %s, __ATOMIC_RELAXED);" % (
                self.condition(), self.leaf(), self.expression(1)))
        else: # too short to branch around
            self.put("if (%s) %s ^= %s;" % (self.condition(), self.pick(*VARIABLES), self.expression(1)))

    def function(self):
        self.in_function = True
        self.put("static __attribute__((noinline)) uint32_t function(uint32_t *own, const uint32_t *in,")
        self.put("    uint32_t a, uint32_t b, uint32_t group, uint32_t lane)")
        self.put("{")
        self.put("    uint32_t c = a ^ lane, d = b + group, id = lane;")
        self.block(2)
        self.leave()
        self.block(1)
        self.put("    return a + b + c + d;")
        self.put("}")
        self.in_function = False

    def body(self, number):
        self.put("BODY(%d)" % number)
        self.put("{")
        # Too much to be done for nothing, and without memory: it runs, also with all lanes off.
        self.put("    uint32_t c = id, d = group;")
        self.put("    if (%s) c = (c * %uu ^ id) %% (lane | 1) + (lane ^ c * id);" % (
            self.same(), self.random.getrandbits(8)))
        self.put("    uint32_t own[8] = {id, lane, 3, 4, 5, 6, 7, 8}, a = in[id & 255], b = in[lane & 15];")
        self.put("    for (uint32_t k = 0; k < PLAN_OWN; k++) shared[k][lane] = k + lane;")
        for _ in range(2):
            self.block(3)
        self.put("    out[0] ^= a + 3 * b;")
        self.put("    out[1] ^= c + 5 * d;")
        self.put("    for (uint32_t k = 0; k < 8; k++) out[2] += own[k];")
        self.put("    for (uint32_t k = 0; k < PLAN_OWN; k++) out[3] ^= shared[k][lane];")
        self.put("}")

    def source(self):
        self.put('#include "diverge.h"')
        self.function()
        for number in range(4):
            self.body(number)
        return "\n".join(self.lines) + "\n"


def check(runner, folder, seed, configurations):
    """The number of configurations that differ; None when a compiler takes too long."""
    path = os.path.join(folder, "diverge-%d" % seed)
    with open(path + ".c", "w") as file:
        file.write(Maker(seed).source())
    want = programs.host(path, INCLUDE, seconds=60) # they all end
    files, wrong = [path, path + ".c"], 0
    for (target, level), options in zip(configurations if want else [], ([], NO_BRANCHES)):
        got, code = programs.device(runner, path, INCLUDE, target, level, options)
        files += [code, code + ".o"]
        if got in (None, want):
            continue
        wrong += 1
        print("seed %d, %s -O%s: differs from the host\n    %s; %s %s" % (seed, target, level, path, runner,
                                                                        code))
    if not wrong:
        programs.forget(files)
    return wrong if want else None


def main():
    results = programs.sweep(check)
    wrong = sum(result or 0 for result in results)
    print("diverge: %d files of kernels, %d of them too much for the compiler, %d wrong" % (
        len(results), results.count(None), wrong))
    return wrong != 0 or not results or results.count(None) == len(results)


if __name__ == "__main__":
    sys.exit(main())
