// SPDX-License-Identifier: Apache-2.0
// Memory, pools, fills and copies.
#include "base/status.h"
#include "drivers/cuda/cuda.h"

CUDA_FORWARDS(alloc_device, cuMemAlloc, (uint64_t size, uint64_t *address), (CUdeviceptr *)address,
              size)
CUDA_RELEASES(free_device, cuMemFree, (uintptr_t)what)
CUDA_FORWARDS(alloc_host, cuMemHostAlloc, (uint64_t size, void **data), data, size,
              CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP)
CUDA_RELEASES(free_host, cuMemFreeHost, what)
CUDA_FORWARDS(host_address, cuMemHostGetDevicePointer, (void *data, uint64_t *address),
              (CUdeviceptr *)address, data, 0)
CUDA_FORWARDS(alloc_managed, cuMemAllocManaged, (uint64_t size, uint64_t *address),
              (CUdeviceptr *)address, size, CU_MEM_ATTACH_GLOBAL)
CUDA_FORWARDS(allocation, cuPointerGetAttribute, (uint64_t address, uint64_t *start), start,
              CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address)
CUDA_RELEASES(host_unregister, cuMemHostUnregister, what)
CUDA_RELEASES(pool_destroy, cuMemPoolDestroy, what)
CUDA_FORWARDS(pool_alloc, cuMemAllocFromPoolAsync,
              (stream_pool_h pool, stream_h stream, uint64_t size, uint64_t *address),
              (CUdeviceptr *)address, size, pool, stream)
CUDA_FORWARDS(pool_free, cuMemFreeAsync, (stream_h stream, uint64_t address), address, stream)
CUDA_FORWARDS(pool_trim, cuMemPoolTrimTo, (stream_pool_h pool, uint64_t keep), pool, keep)
CUDA_FORWARDS(shared_export, cuMemExportToShareableHandle, (uint64_t handle, int *fd), fd, handle,
              CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)
CUDA_FORWARDS(shared_import, cuMemImportFromShareableHandle, (int fd, uint64_t *handle),
              (CUmemGenericAllocationHandle *)handle, (void *)(intptr_t)fd,
              CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
CUDA_FORWARDS(shared_reserve, cuMemAddressReserve, (uint64_t size, uint64_t *address),
              (CUdeviceptr *)address, size, 0, 0, 0)
CUDA_DISCARDS(shared_release, cuMemRelease, (uint64_t handle), handle)
CUDA_DISCARDS(shared_unmap, cuMemUnmap, (uint64_t address, uint64_t size), address, size)
CUDA_DISCARDS(shared_unreserve, cuMemAddressFree, (uint64_t address, uint64_t size), address, size)
CUDA_FORWARDS(copy, cuMemcpyAsync, (stream_h stream, const bound_copy_t *c), c->target, c->source,
              c->size, stream)

// Devices of one library. One that another library has opened is none of its own.
static bool peers(const stream_vendor_t *v, const stream_vendor_t *other)
{
    return v->symbols == other->symbols;
}

// Lets copies go from GPU to GPU, if the machine has such a way. If not, the vendor takes another.
static void peer_meet(stream_vendor_t *v, const stream_vendor_t *other)
{
    // relaxed: to do it twice does no harm.
    if (atomic_load_explicit(&v->met, memory_order_relaxed) == other->context) return;
    if (v->device != other->device)
        (void)CUDA_RESULT(v->symbols, cuCtxEnablePeerAccess, other->context, 0);
    atomic_store_explicit(&v->met, other->context, memory_order_relaxed);
}

static keel_status_t copy_peer(stream_vendor_t *v, stream_h stream, const bound_copy_t *c,
                               stream_vendor_t *to, stream_vendor_t *from)
{
    peer_meet(v, to == v ? from : to);
    return CUDA_CALL(v->symbols, cuMemcpyPeerAsync, c->target, to->context, c->source,
                     from->context, c->size, stream);
}

static keel_status_t host_register(stream_vendor_t *v, void *data, uint64_t size, bool written,
                                   bool *already)
{
    CUresult result = CUDA_RESULT(v->symbols, cuMemHostRegister, data, size,
                                  CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                                      (written ? 0 : CU_MEMHOSTREGISTER_READ_ONLY));
    *already = result == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    return *already ? NULL : cuda_status(v->symbols, result, "cuMemHostRegister");
}

static CUmemAllocationProp shared_properties(const stream_vendor_t *v)
{
    return (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = {CU_MEM_LOCATION_TYPE_DEVICE, v->device},
    };
}

static keel_status_t shared_granularity(stream_vendor_t *v, uint64_t *bytes)
{
    CUmemAllocationProp properties = shared_properties(v);
    size_t granularity = 1;
    keel_status_t status = CUDA_CALL(v->symbols, cuMemGetAllocationGranularity, &granularity,
                                     &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    *bytes = granularity;
    return status;
}

static keel_status_t shared_create(stream_vendor_t *v, uint64_t size, uint64_t *handle)
{
    CUmemAllocationProp properties = shared_properties(v);
    CUmemGenericAllocationHandle made = 0;
    keel_status_t status = CUDA_CALL(v->symbols, cuMemCreate, &made, size, &properties, 0);
    *handle = made;
    return status;
}

static keel_status_t shared_map(stream_vendor_t *v, uint64_t address, uint64_t size,
                                uint64_t handle)
{
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, v->device},
                              CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    KEEL_TRY(CUDA_CALL(v->symbols, cuMemMap, address, size, 0, handle, 0));
    keel_status_t status = CUDA_CALL(v->symbols, cuMemSetAccess, address, size, &access, 1);
    if (status) shared_unmap(v, address, size);
    return status;
}

static keel_status_t pool_configure(stream_vendor_t *v, CUmemoryPool pool, uint64_t threshold)
{
    int off = 0; // reuse must not make one stream wait for another behind our back
    KEEL_TRY(CUDA_CALL(v->symbols, cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                       &threshold));
    return CUDA_CALL(v->symbols, cuMemPoolSetAttribute, pool,
                     CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &off);
}

static keel_status_t pool_create(stream_vendor_t *v, uint64_t threshold, stream_pool_h *pool)
{
    CUmemPoolProps properties = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {CU_MEM_LOCATION_TYPE_DEVICE, v->device},
    };
    CUmemoryPool made = NULL;
    KEEL_TRY(CUDA_CALL(v->symbols, cuMemPoolCreate, &made, &properties));
    keel_status_t status = pool_configure(v, made, threshold);
    if (status) keel_status_release(CUDA_CALL(v->symbols, cuMemPoolDestroy, made));
    *pool = status ? NULL : made;
    return status;
}

static uint64_t pool_reserved(stream_vendor_t *v, stream_pool_h pool)
{
    uint64_t bytes = 0;
    keel_status_release(CUDA_CALL(v->symbols, cuMemPoolGetAttribute, pool,
                                  CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes));
    return bytes;
}

static keel_status_t fill(stream_vendor_t *v, stream_h stream, const bound_fill_t *f)
{
    if (f->size == 4)
        return CUDA_CALL(v->symbols, cuMemsetD32Async, f->target, f->pattern, f->count, stream);
    if (f->size == 2)
        return CUDA_CALL(v->symbols, cuMemsetD16Async, f->target, (unsigned short)f->pattern,
                         f->count, stream);
    return CUDA_CALL(v->symbols, cuMemsetD8Async, f->target, (unsigned char)f->pattern, f->count,
                     stream);
}

void cuda_fill_memory(stream_api_t *api)
{
    STREAM_MEMORY_SLOTS(STREAM_FILL)
    STREAM_MANAGED_SLOTS(STREAM_FILL)
    STREAM_PEER_SLOTS(STREAM_FILL)
    STREAM_POOL_SLOTS(STREAM_FILL)
    STREAM_SHARED_SLOTS(STREAM_FILL)
}
