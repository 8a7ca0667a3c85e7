#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""text_check.py PROGRAM OBJDUMP FILE...: compares what text_test prints for each file with what
LLVM's disassembler does. Both begin each instruction at the same address and write it alike, but
for what is known not to be (NORMAL)."""
import os
import re
import subprocess
import sys

# Not the same on purpose: LLVM names patterns of lanes and the targets of branches.
NORMAL = [(r" offset:swizzle\(.*\)", ""), (r"(ds_swizzle\S+ v\d+, v\d+) offset:\S+", r"\1"),
          (r"^(s_c?branch\w*|s_call_b64 \S+,) .*", r"\1"), (r" bound_ctrl:\d", " bound_ctrl")]


def normal(text):
    text = re.sub(r"\s+", " ", text.strip())
    for pattern, new in NORMAL:
        text = re.sub(pattern, new, text)
    return text


def theirs(objdump, path):
    target = os.path.basename(path).split("-")[0]
    out = subprocess.run([objdump, "-d", "--mcpu=" + target, path], capture_output=True, text=True,
                         check=True).stdout
    for line in out.splitlines():
        found = re.match(r"\s+(\S.*?)\s*// 0*([0-9A-F]+):", line)
        if found:
            yield int(found.group(2), 16), normal(found.group(1))


def ours(program, path):
    out = subprocess.run([program, path], capture_output=True, text=True, check=True).stdout
    return {int(at, 16): normal(text) for at, text in (line.split(" ", 1) for line in
                                                       out.splitlines())}


def main():
    program, objdump, files = sys.argv[1], sys.argv[2], sys.argv[3:]
    count, wrong = 0, {}
    for path in files:
        mine = ours(program, path)
        for at, text in theirs(objdump, path):
            if text.startswith((".long", "buffer_load_format")):  # not modelled
                continue
            count += 1
            if mine.get(at) != text:
                wrong.setdefault(text.split()[0], (text, mine.get(at)))
    for text, mine in wrong.values():
        print("LLVM: %s\nsim:  %s" % (text, mine))
    print("%d instructions, %d names wrong" % (count, len(wrong)))
    return bool(wrong) or not count


if __name__ == "__main__":
    sys.exit(main())
