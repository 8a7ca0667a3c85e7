#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tensors.py BRIDGE [URI]: tensors go from Keel to PyTorch and back without a copy, by DLPack, and
a kernel that Triton compiled runs unchanged. BRIDGE is tensors.c as a shared object."""
import ctypes
import re
import struct
import sys

try:
    import torch
except ImportError:
    print("skipped: there is no PyTorch here")
    sys.exit(77)

bridge = ctypes.CDLL(sys.argv[1])
uri = sys.argv[2] if len(sys.argv) > 2 else "cuda://0"
bridge.bridge_give.restype = ctypes.c_void_p
bridge.bridge_give.argtypes = [ctypes.c_int64, ctypes.c_int64, ctypes.c_float]
bridge.bridge_take.argtypes = [ctypes.c_void_p, ctypes.c_float]
bridge.bridge_run.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_void_p,
                              ctypes.c_char_p, ctypes.c_uint32]
python = ctypes.pythonapi
python.PyCapsule_New.restype = ctypes.py_object
python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
python.PyCapsule_GetPointer.restype = ctypes.c_void_p
python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
python.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
NEW, USED = b"dltensor", b"used_dltensor"
place = "cuda" if uri.startswith("cuda") else "cpu"


def settle():
    if place == "cuda":
        torch.cuda.synchronize()


def check_out():
    pointer = bridge.bridge_give(300, 700, 2.5)
    assert pointer
    tensor = torch.utils.dlpack.from_dlpack(python.PyCapsule_New(pointer, NEW, None))
    assert tensor.shape == (300, 700) and tensor.dtype == torch.float32, tensor
    assert tensor.device.type == place, tensor.device
    assert bool((tensor == 2.5).all())
    tensor *= 2  # it can be written, too
    settle()
    assert float(tensor.sum()) == 300 * 700 * 5.0


def check_in():
    tensor = torch.arange(64 * 1000, dtype=torch.float32, device=place).reshape(64, 1000)
    settle()
    capsule = torch.utils.dlpack.to_dlpack(tensor)
    pointer = python.PyCapsule_GetPointer(capsule, NEW)
    assert bridge.bridge_take(pointer, 1.25)
    python.PyCapsule_SetName(capsule, USED)
    assert bool((tensor == 1.25).all())


def check_pinned():
    """Memory that PyTorch has page-locked already, of any size."""
    for count in 10, 1000, 100000:
        tensor = torch.zeros(count, dtype=torch.float32).pin_memory()
        capsule = torch.utils.dlpack.to_dlpack(tensor)
        pointer = python.PyCapsule_GetPointer(capsule, NEW)
        assert bridge.bridge_take(pointer, 0.5), count
        python.PyCapsule_SetName(capsule, USED)
        assert bool((tensor == 0.5).all()), count


def block_of(ptx, name, values):
    """The values one after the other, each where its parameter lies; zeros for what follows them."""
    head = re.search(r"\.entry\s+" + re.escape(name) + r"\s*\((.*?)\)", ptx, re.S).group(1)
    block = b""
    for i, kind in enumerate(re.findall(r"\.param\s+\.([usfb]\d+)", head)):
        size = int(kind[1:]) // 8
        block += b"\0" * (-len(block) % size)
        value = values[i] if i < len(values) else 0
        block += struct.pack("<Q" if size == 8 else "<i", value)
    return block


def check_triton():
    import triton
    import triton.language as tl

    @triton.jit
    def add(x, y, out, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = at < n
        tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)

    count = 10007  # no multiple of anything
    x, y = (torch.rand(count, device=place) for _ in range(2))
    out, ours = torch.empty_like(x), torch.zeros_like(x)
    groups = triton.cdiv(count, 1024)
    kernel = add[(groups,)](x, y, out, count, BLOCK=1024)
    settle()
    name = kernel.metadata.name
    block = block_of(kernel.asm["ptx"], name,
                     [x.data_ptr(), y.data_ptr(), ours.data_ptr(), count])
    shape = (ctypes.c_uint32 * 3)(groups, kernel.metadata.num_warps * 32, kernel.metadata.shared)
    cubin = kernel.asm["cubin"]
    assert bridge.bridge_run(cubin, len(cubin), name.encode(), shape, block, len(block))
    assert torch.equal(out, ours)


settle()
assert bridge.bridge_open(uri.encode())
failed = 0
checks = [check_out, check_in] + ([check_pinned, check_triton] if place == "cuda" else [])
for check in checks:
    try:
        check()
        print("passed ", check.__name__)
    except Exception as error:  # whatever it is, the others run
        failed += 1
        print("FAILED ", check.__name__, repr(error)[:300])
bridge.bridge_close()
print(f"{len(checks) - failed} passed, {failed} failed, torch {torch.__version__}")
sys.exit(failed != 0)
