#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kernels.py TARGET FOLDER: compiles the kernels below by Triton, without a GPU, into FOLDER.

Each becomes a bare code object NAME.hsaco. FOLDER/list has a line for each: its name, the work-items
of a group, and the bytes of workgroup memory that a dispatch is to ask for. Behind the parameters
that are written here Triton adds its own: addresses of scratch memory, which these do not use.
"""
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


# As many groups as there are: each takes every so manieth block.
@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    for block in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        at = block * BLOCK + tl.arange(0, BLOCK)
        inside = at < n
        sum = tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside)
        tl.store(out + at, sum, mask=inside)


# A group for each row.
@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0) * columns
    values = tl.load(x + row + at, mask=at < columns, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(out + row + at, powers / tl.sum(powers, 0), mask=at < columns)


# A group for each square of the result; rows and columns of all three are `n`, a multiple of it.
@triton.jit
def matmul(a, b, out, n, SIDE: tl.constexpr):
    rows = (tl.program_id(0) * SIDE + tl.arange(0, SIDE))[:, None]
    columns = (tl.program_id(1) * SIDE + tl.arange(0, SIDE))[None, :]
    sum = tl.zeros((SIDE, SIDE), dtype=tl.float32)
    for k in range(0, n, SIDE):
        down = k + tl.arange(0, SIDE)
        left = tl.load(a + rows * n + down[None, :])
        right = tl.load(b + down[:, None] * n + columns)
        sum += tl.dot(left, right)
    tl.store(out + rows * n + columns, sum)


KERNELS = [
    (add, {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}, {"BLOCK": 256}),
    (softmax, {"x": "*fp32", "out": "*fp32", "columns": "i32"}, {"BLOCK": 128}),
    (matmul, {"a": "*fp16", "b": "*fp16", "out": "*fp32", "n": "i32"}, {"SIDE": 32}),
]


def main(target, folder):
    wave = 32 if target.startswith(("gfx10", "gfx11", "gfx12")) else 64
    with open(f"{folder}/list", "w") as list:
        for kernel, types, constants in KERNELS:
            types = types | dict.fromkeys(constants, "constexpr")
            source = ASTSource(fn=kernel, signature=types, constexprs=constants)
            made = triton.compile(source, target=GPUTarget("hip", target, wave))
            with open(f"{folder}/{made.metadata.name}.hsaco", "wb") as file:
                file.write(made.asm["hsaco"])
            items = made.metadata.num_warps * wave
            print(made.metadata.name, items, made.metadata.shared, file=list)


main(*sys.argv[1:])
