# SPDX-License-Identifier: Apache-2.0
"""hip.py FILE: HIP from Python by ctypes, to be traced. FILE has the kernels of tests/sim/amd."""
import ctypes
import sys

hip = ctypes.CDLL("libamdhip64.so.5")


def check(result):
    assert result == 0, result


COUNT = 1000
host = (ctypes.c_uint32 * COUNT)()
data, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
check(hip.hipMalloc(ctypes.byref(data), ctypes.c_size_t(4 * COUNT)))
check(hip.hipMemcpy(data, host, ctypes.c_size_t(4 * COUNT), 1))
check(hip.hipModuleLoad(ctypes.byref(module), sys.argv[1].encode()))
check(hip.hipModuleGetFunction(ctypes.byref(function), module, b"add_one"))
count = ctypes.c_uint32(COUNT)
arguments = (ctypes.c_void_p * 2)(ctypes.addressof(data), ctypes.addressof(count))
for _ in range(4):
    check(hip.hipModuleLaunchKernel(function, 16, 1, 1, 64, 1, 1, 0, None, arguments, None))
check(hip.hipMemcpy(host, data, ctypes.c_size_t(4 * COUNT), 2))
check(hip.hipFree(data))
print(host[0], host[COUNT - 1])
sys.exit(7)
