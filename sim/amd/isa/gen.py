#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints opcodes.def: the opcode numbers of GFX9, as llvm-mc knows them.

    gen.py > opcodes.def     makes the table anew
    gen.py --check FILE      ends with 1 and a difference when FILE is not what would be made

Every number of every encoding is disassembled for every target. An encoding may need several
attempts, because some instructions want operands that others refuse.
"""
import difflib
import re
import subprocess
import sys

TARGETS = ["gfx900", "gfx906", "gfx908", "gfx90a", "gfx942"]
V = 256  # the first vector register, where an operand may also be scalar
LITERAL = 0x3F9D70A4  # tried first: what wants a literal would take the next line for it


def vop3(sdst, src0, src1, src2):
    return lambda op: [0xD0000000 | op << 16 | sdst << 8 | 4, src0 | src1 << 9 | src2 << 18]


# Encoding, number of opcodes, attempts: from an opcode to the words of an instruction.
ENCODINGS = [
    ("SOP2", 95, [lambda op: [0x80000000 | op << 23 | 4 << 16 | 8 << 8 | 6]]),
    ("SOPK", 28, [lambda op: [0xB0000000 | op << 23 | 5, LITERAL],
                  lambda op: [0xB0000000 | op << 23 | 4 << 16 | 5],
                  lambda op: [0xB0000000 | op << 23 | 5]]),
    ("SOP1", 256, [lambda op: [0xBE800006 | op << 8 | 4 << 16],
                   lambda op: [0xBE800000 | op << 8 | 4 << 16],
                   lambda op: [0xBE800006 | op << 8]]),
    ("SOPC", 128, [lambda op: [0xBF000806 | op << 16]]),
    ("SOPP", 128, [lambda op: [0xBF800001 | op << 16], lambda op: [0xBF800000 | op << 16]]),
    ("SMEM", 256, [lambda op: [0xC0020202 | op << 18, 0x10],
                   lambda op: [0xC0000200 | op << 18, 0],
                   lambda op: [0xC0000000 | op << 18, 0]]),
    ("VOP2", 62, [lambda op: [op << 25 | 4 << 17 | 6 << 9 | V + 8, LITERAL],
                  lambda op: [op << 25 | 4 << 17 | 6 << 9 | V + 8]]),
    ("VOP1", 256, [lambda op: [0x7E000000 | 6 << 17 | op << 9 | V + 8],
                   lambda op: [0x7E000000 | op << 9]]),
    ("VOPC", 256, [lambda op: [0x7C000000 | op << 17 | 6 << 9 | V + 8]]),
    ("VOP3", 896, [vop3(0, V + 8, V + 12, V + 16), vop3(0, V + 8, V + 12, 0),
                   vop3(10, V + 8, V + 12, V + 16), vop3(10, V + 8, V + 12, 10),
                   vop3(10, V + 8, V + 12, 0), vop3(0, V + 8, 4, 0), vop3(0, V + 8, V + 12, 10),
                   vop3(0, V + 8, 0, 0), lambda op: [0xD0000000 | op << 16, 0]]),
    ("VOP3P", 128, [lambda op: [0xD3804004 | op << 16,
                                 V + 8 | V + 12 << 9 | V + 16 << 18 | 3 << 27],
                    lambda op: [0xD3800004 | op << 16, V + 8 | V + 12 << 9 | 3 << 27],
                    lambda op: [0xD3800004 | op << 16, V + 8 | V + 12 << 9 | V + 16 << 18],
                    lambda op: [0xD3800004 | op << 16, V + 8],
                    lambda op: [0xD3804004 | op << 16, V + 8 | 3 << 27]]),
    ("DS", 256, [(lambda last: lambda op: [0xD8000000 | op << 17, last])(last)
                 for last in (0x0A080604, 0x00080604, 0x00000604, 0x0A000604, 0x0A000004,
                              0x0A000000, 0x00000004, 0x00000600, 0)] +
                [lambda op: [0xD8010000 | op << 17, 0x0A000004],
                 lambda op: [0xD8010000 | op << 17, 0x00000004],
                 lambda op: [0xD8010000 | op << 17, 0]]),
    ("FLAT", 128, [lambda op: [0xDC000000 | op << 18, 0x0A000604],
                   lambda op: [0xDC000000 | op << 18, 0x0A000004],
                   lambda op: [0xDC000000 | op << 18, 0x00000604],
                   lambda op: [0xDC010000 | op << 18, 0x0A000604]]),
    ("GLOBAL", 128, [lambda op: [0xDC008000 | op << 18, 0x0A7F0604],
                     lambda op: [0xDC008000 | op << 18, 0x0A7F0004],
                     lambda op: [0xDC008000 | op << 18, 0x007F0604]]),
    ("SCRATCH", 128, [lambda op: [0xDC004000 | op << 18, 0x0A7F0004],
                      lambda op: [0xDC004000 | op << 18, 0x007F0604]]),
    ("MUBUF", 128, [lambda op: [0xE0001000 | op << 18, 0x08010604],
                    lambda op: [0xE0000000 | op << 18, 0],
                    lambda op: [0xE0010000 | op << 18, 0x08010000]]),
    # What belongs to graphics has names, so that it can be reported.
    ("MTBUF", 16, [lambda op: [0xE8081000 | op << 15, 0x08010604]]),
    ("MIMG", 128, [lambda op: [0xF0000F00 | op << 18, 0x00430804],
                   lambda op: [0xF0000100 | op << 18, 0x00430804],
                   lambda op: [0xF0000F00 | op << 18, 0x00030804],
                   lambda op: [0xF0000100 | op << 18, 0x00030804]]),
    ("VINTRP", 4, [lambda op: [0xD4000000 | op << 16 | 4 << 18 | 6]]),
    ("EXP", 1, [lambda op: [0xC400000F, 0x03020100]]),
]


def disassemble(target, instructions):
    """The text of each list of words, or None where it is no single valid instruction. A mark with
    a number, `s_movk_i32 exec_hi, N`, stands on a line before each, to know which of them a line of
    output belongs to. After an invalid word llvm-mc goes on with the next one, but warns."""
    lines = []
    for number, words in enumerate(instructions):
        for group in ([0xB07F0000 | number], words):
            data = b"".join(word.to_bytes(4, "little") for word in group)
            lines.append(" ".join("0x%02x" % byte for byte in data))
    run = subprocess.run(["llvm-mc-19", "-arch=amdgcn", "-mcpu=" + target, "-disassemble"],
                         input="\n".join(lines), capture_output=True, text=True)
    bad = {int(line) // 2 - 1 for line in re.findall(r"<stdin>:(\d+):\d+: warning", run.stderr)}
    found, number = {}, None
    for line in run.stdout.splitlines():
        text = line.strip()
        mark = re.match(r"s_movk_i32 exec_hi, (\S+)$", text)
        if mark:
            number = int(mark.group(1), 0) & 0xFFFF
        elif text and not text.startswith("."):
            found.setdefault(number, []).append(text)
    return [found[n][0] if n not in bad and len(found.get(n, [])) == 1 else None
            for n in range(len(instructions))]


def opcodes(target, encoding):
    _, count, attempts = encoding
    names = {}
    for attempt in attempts:
        open_ops = [op for op in range(count) if op not in names]
        texts = disassemble(target, [attempt(op) for op in open_ops])
        for op, text in zip(open_ops, texts):
            if text:
                names[op] = re.sub(r"_e(32|64)(_dpp)?$", "", text.split()[0])
    return names


def table():
    lines = ["// Made by gen.py from llvm-mc-19: encoding, number, name, targets."]
    for encoding in ENCODINGS:
        per_target = [opcodes(target, encoding) for target in TARGETS]
        rows = {}
        for bit, names in enumerate(per_target):
            for op, name in names.items():
                rows[op, name] = rows.get((op, name), 0) | 1 << bit
        for (op, name), mask in sorted(rows.items()):
            lines.append("OPCODE(%s, %d, %s, 0x%x)" % (encoding[0], op, name, mask))
    return "\n".join(lines) + "\n"


def main():
    made = table()
    if sys.argv[1:2] != ["--check"]:
        sys.stdout.write(made)
        return 0
    with open(sys.argv[2]) as file:
        kept = file.read()
    sys.stdout.writelines(difflib.unified_diff(kept.splitlines(True), made.splitlines(True),
                                               sys.argv[2], "llvm-mc-19"))
    return kept != made


if __name__ == "__main__":
    sys.exit(main())
