// SPDX-License-Identifier: Apache-2.0
#include "cuda/arena.h"
#include "cuda/call.h"
#include "cuda/engine.h"
#include "cuda/pool.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static CUresult device_alloc(CUcontext context, CUdeviceptr *out, size_t size)
{
    device_t *device = context->device;
    if (!out || size == 0) return CUDA_ERROR_INVALID_VALUE;
    if (size > settings()->memory - device->used) return CUDA_ERROR_OUT_OF_MEMORY;
    range_t *range = arena_alloc(RANGE_DEVICE, size, device, context);
    if (!range) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = range->base;
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t size)
{
    CALL(CALL_CONTEXT | CALL_UNSAFE);
    return device_alloc(call.context, out, size);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *out, size_t *out_pitch, size_t width, size_t height,
                            unsigned int element)
{
    CALL(CALL_CONTEXT);
    if (!out_pitch || width == 0 || height == 0) return CUDA_ERROR_INVALID_VALUE;
    if (element != 4 && element != 8 && element != 16) return CUDA_ERROR_INVALID_VALUE;
    size_t pitch = (width + 511) / 512 * 512;
    if (pitch < width || height > SIZE_MAX / pitch) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult error = device_alloc(call.context, out, pitch * height);
    if (error == CUDA_SUCCESS) *out_pitch = pitch;
    return error;
}

// CUDA says that it may wait for work that uses freed
// memory, and a card does; a program may not rely on that.
static bool is_busy(uint64_t address)
{
    const range_t *range = arena_find_base(address);
    return range && arena_is_busy(range);
}

CUresult cuMemFree_v2(CUdeviceptr address)
{
    CALL(CALL_CONTEXT | CALL_RELEASE);
    if (address == 0) return call.late;
    if (is_busy(address)) return CUDA_ERROR_INVALID_VALUE;
    context_settle(call.context);
    range_t *range = arena_find_base(address);
    if (!range || range->state != RANGE_LIVE || range->ending) {
        arena_check(address, 1, WHEN_RUN, call_name());
        return CUDA_ERROR_INVALID_VALUE;
    }
    switch (range->kind) {
    case RANGE_POOL: pool_end(address, call.context->legacy, 0); break;
    case RANGE_DEVICE:
    case RANGE_MANAGED: arena_free(range); break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return call.late;
}

CUresult cuMemGetInfo_v2(size_t *out_free, size_t *out_total)
{
    CALL(CALL_CONTEXT);
    if (!out_free || !out_total) return CUDA_ERROR_INVALID_VALUE;
    *out_total = settings()->memory;
    *out_free = settings()->memory - call.context->device->used;
    return CUDA_SUCCESS;
}

static CUresult host_alloc(CUcontext context, void **out, size_t size, unsigned flags)
{
    unsigned known =
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    if (!out || size == 0 || flags & ~known) return CUDA_ERROR_INVALID_VALUE;
    range_t *range = arena_alloc(RANGE_HOST, size, context->device, context);
    if (!range) return CUDA_ERROR_OUT_OF_MEMORY;
    // With unified addresses all pinned memory is mapped.
    range->flags = flags | CU_MEMHOSTALLOC_DEVICEMAP;
    *out = (void *)(uintptr_t)range->base;
    return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void **out, size_t size, unsigned int flags)
{
    CALL(CALL_CONTEXT | CALL_UNSAFE);
    return host_alloc(call.context, out, size, flags);
}

CUresult cuMemAllocHost_v2(void **out, size_t size)
{
    CALL(CALL_CONTEXT);
    return host_alloc(call.context, out, size, 0);
}

CUresult cuMemFreeHost(void *pointer)
{
    CALL(CALL_CONTEXT | CALL_RELEASE);
    if (is_busy((uintptr_t)pointer)) return CUDA_ERROR_INVALID_VALUE;
    context_settle(call.context);
    range_t *range = arena_find_base((uintptr_t)pointer);
    if (!range || range->kind != RANGE_HOST) return CUDA_ERROR_INVALID_VALUE;
    arena_free(range);
    return call.late;
}

static range_t *host_range(const void *pointer)
{
    range_t *range = arena_find((uintptr_t)pointer);
    return range && (range->kind == RANGE_HOST || range->kind == RANGE_REGISTERED) ? range : NULL;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *pointer, unsigned int flags)
{
    CALL(CALL_CONTEXT);
    if (!out || flags || !host_range(pointer)) return CUDA_ERROR_INVALID_VALUE;
    *out = (uintptr_t)pointer;
    return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned int *out, void *pointer)
{
    CALL(CALL_CONTEXT);
    range_t *range = host_range(pointer);
    if (!out || !range) return CUDA_ERROR_INVALID_VALUE;
    *out = range->flags;
    return CUDA_SUCCESS;
}

// Whether all of it is mapped memory of the process, and may be written if that is asked.
static bool is_mapped(const void *pointer, size_t size, bool written)
{
    uintptr_t at = (uintptr_t)pointer, end = at + size, from, to;
    char line[512], rights[5];
    if (end < at) return false;
    FILE *maps = fopen("/proc/self/maps", "re"); // in the order of addresses
    while (maps && at < end && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, rights) != 3) continue;
        bool fits = rights[0] == 'r' && (rights[1] == 'w' || !written);
        if (from <= at && at < to && fits) at = to;
    }
    if (maps) fclose(maps);
    return at >= end;
}

CUresult cuMemHostRegister_v2(void *pointer, size_t size, unsigned int flags)
{
    CALL(CALL_CONTEXT | CALL_UNSAFE);
    unsigned known =
        CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY;
    if (flags & CU_MEMHOSTREGISTER_IOMEMORY) return CUDA_ERROR_NOT_SUPPORTED;
    if (!pointer || size == 0 || flags & ~known) return CUDA_ERROR_INVALID_VALUE;
    bool written = !(flags & CU_MEMHOSTREGISTER_READ_ONLY);
    if (!is_mapped(pointer, size, written)) return CUDA_ERROR_INVALID_VALUE;
    if (arena_overlaps((uintptr_t)pointer, size)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    range_t *range = arena_adopt(RANGE_REGISTERED, (uintptr_t)pointer, size, call.context);
    if (!range) return CUDA_ERROR_OUT_OF_MEMORY;
    range->flags = flags | CU_MEMHOSTREGISTER_DEVICEMAP;
    return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void *pointer)
{
    CALL(CALL_CONTEXT | CALL_RELEASE);
    if (is_busy((uintptr_t)pointer)) return CUDA_ERROR_INVALID_VALUE;
    context_settle(call.context);
    range_t *range = arena_find_base((uintptr_t)pointer);
    if (!range || range->kind != RANGE_REGISTERED) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    arena_free(range);
    return call.late;
}

CUresult cuMemAllocManaged(CUdeviceptr *out, size_t size, unsigned int flags)
{
    CALL(CALL_CONTEXT | CALL_UNSAFE);
    if (!out || size == 0) return CUDA_ERROR_INVALID_VALUE;
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    range_t *range = arena_alloc(RANGE_MANAGED, size, call.context->device, call.context);
    if (!range) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = range->base;
    return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *out_base, size_t *out_size, CUdeviceptr address)
{
    CALL(CALL_CONTEXT);
    const range_t *range = arena_find(address);
    if (!range) return CUDA_ERROR_NOT_FOUND;
    if (out_base) *out_base = range->base;
    if (out_size) *out_size = range->size;
    return CUDA_SUCCESS;
}

// Where managed memory lies does not matter here; what is asked must still make sense.
static CUresult managed_check(CUdeviceptr address, size_t size)
{
    const range_t *range = arena_find(address);
    if (size == 0 || !range || range->kind != RANGE_MANAGED) return CUDA_ERROR_INVALID_VALUE;
    return size <= range->size - (address - range->base) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t size, CUdevice device, CUstream stream)
{
    CALL(CALL_CONTEXT);
    if (device != -1 && !device_of(device)) return CUDA_ERROR_INVALID_DEVICE;
    if (!stream_of(call.context, stream)) return CUDA_ERROR_INVALID_HANDLE;
    return managed_check(address, size);
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, size_t size, CUmemLocation location,
                               unsigned int flags, CUstream stream)
{
    CALL(CALL_CONTEXT);
    if (location.type == CU_MEM_LOCATION_TYPE_DEVICE && !device_of(location.id)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    if (!stream_of(call.context, stream)) return CUDA_ERROR_INVALID_HANDLE;
    return managed_check(address, size);
}

static CUresult advice_check(CUdeviceptr address, size_t size, CUmem_advise advice)
{
    if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return managed_check(address, size);
}

CUresult cuMemAdvise(CUdeviceptr address, size_t size, CUmem_advise advice, CUdevice device)
{
    CALL(CALL_CONTEXT);
    return advice_check(address, size, advice);
}

CUresult cuMemAdvise_v2(CUdeviceptr address, size_t size, CUmem_advise advice,
                        CUmemLocation location)
{
    CALL(CALL_CONTEXT);
    return advice_check(address, size, advice);
}

static bool is_host(const range_t *range)
{
    return range->kind == RANGE_HOST || range->kind == RANGE_REGISTERED;
}

static bool host_may_touch(const range_t *range)
{
    return is_host(range) || range->kind == RANGE_MANAGED;
}

static CUresult attribute_get(void *out, CUpointer_attribute attribute, uint64_t address)
{
    const range_t *range = arena_find(address);
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_POINTER_ATTRIBUTE_MAPPED) {
        *(unsigned char *)out = range != NULL;
        return CUDA_SUCCESS;
    }
    if (!range) return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: *(CUcontext *)out = range->context; break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)out = is_host(range) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(CUdeviceptr *)out = address; break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!host_may_touch(range)) return CUDA_ERROR_INVALID_VALUE;
        *(void **)out = (void *)(uintptr_t)address;
        break;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: *(unsigned *)out = 0; break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: *(unsigned long long *)out = range->id; break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(unsigned *)out = range->kind == RANGE_MANAGED; break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)out = range->device ? range->device->ordinal : CU_DEVICE_INVALID;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *(CUdeviceptr *)out = range->whole; break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *(size_t *)out = range->whole_size; break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: *(CUmemoryPool *)out = range->pool; break;
    default: return CUDA_ERROR_NOT_SUPPORTED;
    }
    return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void *out, CUpointer_attribute attribute, CUdeviceptr address)
{
    CALL(CALL_CONTEXT);
    return attribute_get(out, attribute, address);
}

// An address that is not CUDA's is no error here: its attributes are zero.
CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes, void **out,
                                CUdeviceptr address)
{
    CALL(CALL_CONTEXT);
    if (count && (!attributes || !out)) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        if (!out[i]) return CUDA_ERROR_INVALID_VALUE;
        bool known = arena_find(address) != NULL;
        if (known && attribute_get(out[i], attributes[i], address) == CUDA_SUCCESS) continue;
        bool wide = attributes[i] != CU_POINTER_ATTRIBUTE_MEMORY_TYPE &&
                    attributes[i] != CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL &&
                    attributes[i] != CU_POINTER_ATTRIBUTE_IS_MANAGED &&
                    attributes[i] != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS &&
                    attributes[i] != CU_POINTER_ATTRIBUTE_MAPPED;
        memset(out[i], 0, wide ? 8 : attributes[i] == CU_POINTER_ATTRIBUTE_MAPPED ? 1 : 4);
        if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
            *(int *)out[i] = CU_DEVICE_INVALID;
    }
    return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
                               CUdeviceptr address)
{
    CALL(CALL_CONTEXT);
    if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !arena_find(address)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}
