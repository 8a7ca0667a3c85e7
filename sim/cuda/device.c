// SPDX-License-Identifier: Apache-2.0
#include "cuda/arena.h"
#include "cuda/call.h"
#include "cuda/fault.h"
#include "cuda/limits.h"
#include "cuda/pool.h"
#include "cuda/tool.h"
#include "cuda/variant.h"

#include <stdio.h>
#include <string.h>

state_t state = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

device_t *device_of(CUdevice ordinal)
{
    if (ordinal < 0 || (unsigned)ordinal >= state.device_count) return NULL;
    return &state.devices[ordinal];
}

CUresult cuInit(unsigned int flags)
{
    CALL(CALL_BEFORE_INIT);
    const settings_t *set = settings();
    if (flags || !set->valid) return CUDA_ERROR_INVALID_VALUE;
    if (state.initialised) return CUDA_SUCCESS;
    if (set->devices == 0) return CUDA_ERROR_NO_DEVICE;
    if (!arena_init(set->memory * set->devices)) return CUDA_ERROR_OUT_OF_MEMORY;
    fault_init();
    for (unsigned i = 0; i < set->devices; i++) {
        state.devices[i].ordinal = (int)i;
        if (!pool_create_default(&state.devices[i])) return CUDA_ERROR_OUT_OF_MEMORY;
    }
    state.device_count = set->devices;
    state.initialised = true;
    tool_inject();
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *out)
{
    CALL(CALL_BEFORE_INIT);
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = settings()->version;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *out)
{
    CALL(CALL_PLAIN);
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = (int)state.device_count;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *out, int ordinal)
{
    CALL(CALL_PLAIN);
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    if (!device_of(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
    *out = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *out, int length, CUdevice ordinal)
{
    CALL(CALL_PLAIN);
    if (!device_of(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
    if (!out || length <= 0) return CUDA_ERROR_INVALID_VALUE;
    snprintf(out, (size_t)length, "Software GPU %d", ordinal);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *out, CUdevice ordinal)
{
    CALL(CALL_PLAIN);
    if (!device_of(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    memcpy(out->bytes, "software gpu   \0", 16);
    out->bytes[15] = (char)ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *out, CUdevice ordinal)
{
    CALL(CALL_PLAIN);
    if (!device_of(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = settings()->memory;
    return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice ordinal)
{
    CALL(CALL_PLAIN);
    if (!device_of(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
    if (!major || !minor) return CUDA_ERROR_INVALID_VALUE;
    *major = *minor = 0;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *out, int length, CUdevice ordinal)
{
    CALL(CALL_PLAIN);
    if (!device_of(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
    if (!out || length < 13) return CUDA_ERROR_INVALID_VALUE;
    snprintf(out, (size_t)length, "0000:%02X:00.0", (unsigned)ordinal + 1);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *out, const char *text)
{
    CALL(CALL_PLAIN);
    unsigned domain = 0, bus = 0, device = 0, function = 0;
    if (!out || !text) return CUDA_ERROR_INVALID_VALUE;
    if (sscanf(text, "%x:%x:%x.%x", &domain, &bus, &device, &function) < 3) {
        domain = 0;
        if (sscanf(text, "%x:%x.%x", &bus, &device, &function) < 2) return CUDA_ERROR_INVALID_VALUE;
    }
    if (domain || device || function || bus == 0 || !device_of((int)bus - 1)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *out = (int)bus - 1;
    return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int *out, CUdevice device, CUdevice peer)
{
    CALL(CALL_PLAIN);
    if (!device_of(device) || !device_of(peer)) return CUDA_ERROR_INVALID_DEVICE;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = device != peer;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int *out, CUdevice_P2PAttribute attribute, CUdevice from,
                                 CUdevice to)
{
    CALL(CALL_PLAIN);
    if (!device_of(from) || !device_of(to) || from == to) return CUDA_ERROR_INVALID_DEVICE;
    if (!out || attribute < 1 || attribute > 4) return CUDA_ERROR_INVALID_VALUE;
    *out = attribute == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED ||
           attribute == CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED;
    return CUDA_SUCCESS;
}

static const struct {
    CUdevice_attribute attribute;
    int value;
} attributes[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, LIMIT_THREADS},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, LIMIT_BLOCK_X},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, LIMIT_BLOCK_Y},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, LIMIT_BLOCK_Z},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, LIMIT_GRID_X},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, LIMIT_GRID_Y},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, LIMIT_GRID_Z},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, LIMIT_SHARED},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 1}, // kernels are code for the processor
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 0x7fffffff},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1000000},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, LIMIT_PROCESSORS},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1000000},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 128},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 1 << 20},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 228 * 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, LIMIT_SHARED_OPTIN},
    {CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES, 0},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, 1},
};

CUresult cuDeviceGetAttribute(int *out, CUdevice_attribute attribute, CUdevice ordinal)
{
    CALL(CALL_PLAIN);
    if (!device_of(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
    if (!out || attribute <= 0 || attribute >= CU_DEVICE_ATTRIBUTE_MAX) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID ? ordinal + 1 : 0;
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        if (attributes[i].attribute == attribute) *out = attributes[i].value;
    }
    if (attribute_is_missing(attribute)) *out = 0;
    return CUDA_SUCCESS;
}
