// SPDX-License-Identifier: Apache-2.0
#include "hip.h"

// Of the flags of host memory CUDA has these, with the same values: portable and mapped.
enum { HOST_FLAGS = 3 };

HIP(hipMalloc, void **address, size_t size)
{
    FORWARD(cuMemAlloc_v2((uint64_t *)address, size));
}

HIP(hipFree, void *address)
{
    FORWARD(cuMemFree_v2(address_of(address)));
}

HIP(hipHostMalloc, void **data, size_t size, unsigned flags)
{
    FORWARD(cuMemHostAlloc(data, size, flags & HOST_FLAGS));
}

HIP(hipHostFree, void *data)
{
    FORWARD(cuMemFreeHost(data));
}

HIP(hipHostGetDevicePointer, void **address, void *data, unsigned flags)
{
    FORWARD(cuMemHostGetDevicePointer_v2((uint64_t *)address, data, flags));
}

// HIP takes memory that cannot be written as well.
HIP(hipHostRegister, void *data, size_t size, unsigned flags)
{
    enum { READ_ONLY = 8 };
    int error = here();
    if (!error) error = cuMemHostRegister_v2(data, size, flags & HOST_FLAGS);
    if (error == CUDA_ERROR_INVALID_VALUE)
        error = cuMemHostRegister_v2(data, size, (flags & HOST_FLAGS) | READ_ONLY);
    return done(error);
}

HIP(hipHostUnregister, void *data)
{
    FORWARD(cuMemHostUnregister(data));
}

HIP(hipMallocManaged, void **address, size_t size, unsigned flags)
{
    FORWARD(cuMemAllocManaged((uint64_t *)address, size, flags));
}

// By the attributes, which host memory has, too.
HIP(hipMemGetAddressRange, void **start, size_t *size, void *address)
{
    int error = here();
    if (!error)
        error = cuPointerGetAttribute(start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                      address_of(address));
    if (!error)
        error = cuPointerGetAttribute(size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, address_of(address));
    return done(error);
}

HIP(hipMemGetInfo, size_t *available, size_t *total)
{
    FORWARD(cuMemGetInfo_v2(available, total));
}

HIP(hipMemGetAllocationGranularity, size_t *bytes, const void *properties, int option)
{
    FORWARD(cuMemGetAllocationGranularity(bytes, properties, option));
}

HIP(hipMemCreate, void **handle, size_t size, const void *properties, unsigned long long flags)
{
    FORWARD(cuMemCreate((uint64_t *)handle, size, properties, flags));
}

HIP(hipMemRelease, void *handle)
{
    FORWARD(cuMemRelease(address_of(handle)));
}

HIP(hipMemExportToShareableHandle, void *descriptor, void *handle, int type,
    unsigned long long flags)
{
    FORWARD(cuMemExportToShareableHandle(descriptor, address_of(handle), type, flags));
}

// Before HIP 7.1 it takes a pointer to the descriptor, from then on the descriptor, as CUDA.
HIP(hipMemImportFromShareableHandle, void **handle, void *descriptor, int type)
{
    void *value = hip_major() < 7 ? (void *)(intptr_t)*(const int *)descriptor : descriptor;
    FORWARD(cuMemImportFromShareableHandle((uint64_t *)handle, value, type));
}

// HIP pays no heed to the alignment.
HIP(hipMemAddressReserve, void **address, size_t size, size_t alignment, void *near,
    unsigned long long flags)
{
    FORWARD(cuMemAddressReserve((uint64_t *)address, size, 0, address_of(near), flags));
}

HIP(hipMemAddressFree, void *address, size_t size)
{
    FORWARD(cuMemAddressFree(address_of(address), size));
}

HIP(hipMemMap, void *address, size_t size, size_t offset, void *handle, unsigned long long flags)
{
    FORWARD(cuMemMap(address_of(address), size, offset, address_of(handle), flags));
}

HIP(hipMemUnmap, void *address, size_t size)
{
    FORWARD(cuMemUnmap(address_of(address), size));
}

// What HIP refuses is as good as unmapped.
HIP(hipMemSetAccess, void *address, size_t size, const void *access, size_t count)
{
    int error = here();
    if (!error) error = cuMemSetAccess(address_of(address), size, access, count);
    if (error) (void)cuMemUnmap(address_of(address), size);
    return done(error);
}

// Pools, for those who compare: the driver uses none. Attributes have CUDA's numbers.
HIP(hipDeviceGetDefaultMemPool, void **pool, int device)
{
    FORWARD(cuDeviceGetDefaultMemPool(pool, device));
}

HIP(hipMemPoolSetAttribute, void *pool, int attribute, void *value)
{
    FORWARD(cuMemPoolSetAttribute(pool, attribute, value));
}

HIP(hipMallocAsync, void **address, size_t size, void *stream)
{
    FORWARD(cuMemAllocAsync((uint64_t *)address, size, stream));
}

HIP(hipFreeAsync, void *address, void *stream)
{
    FORWARD(cuMemFreeAsync(address_of(address), stream));
}

HIP(hipMemcpyAsync, void *target, const void *source, size_t size, int kind, void *stream)
{
    FORWARD_PLAINLY(cuMemcpyAsync(address_of(target), address_of(source), size, stream));
}

HIP(hipMemcpyPeerAsync, void *target, int to, const void *source, int from, size_t size,
    void *stream)
{
    void *target_context = NULL, *source_context = NULL;
    int error = context_of(to, &target_context);
    if (!error) error = context_of(from, &source_context);
    if (error) return done(error);
    FORWARD(cuMemcpyPeerAsync(address_of(target), target_context, address_of(source),
                              source_context, size, stream));
}

HIP(hipMemsetD8Async, void *target, unsigned char value, size_t count, void *stream)
{
    FORWARD_PLAINLY(cuMemsetD8Async(address_of(target), value, count, stream));
}

HIP(hipMemsetD16Async, void *target, unsigned short value, size_t count, void *stream)
{
    FORWARD_PLAINLY(cuMemsetD16Async(address_of(target), value, count, stream));
}

HIP(hipMemsetD32Async, void *target, int value, size_t count, void *stream)
{
    FORWARD_PLAINLY(cuMemsetD32Async(address_of(target), (unsigned)value, count, stream));
}
