// SPDX-License-Identifier: Apache-2.0
// Memory, fills and copies.
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/status.h"
#include "drivers/hip/hip.h"
#include "drivers/hip/releases.h"
#include "kit/mapping.h"

HIP_FORWARDS(alloc_device, hipMalloc, (uint64_t size, uint64_t *address), (void **)address, size)
HIP_RELEASES(free_device, hipFree, what)
HIP_FORWARDS(host_address, hipHostGetDevicePointer, (void *data, uint64_t *address),
             (void **)address, data, 0)
HIP_FORWARDS(alloc_managed, hipMallocManaged, (uint64_t size, uint64_t *address), (void **)address,
             size, hipMemAttachGlobal)
HIP_RELEASES(host_unregister, hipHostUnregister, what)
HIP_FORWARDS(shared_export, hipMemExportToShareableHandle, (uint64_t handle, int *fd), fd,
             hip_pointer(handle), hipMemHandleTypePosixFileDescriptor, 0)
HIP_FORWARDS(shared_reserve, hipMemAddressReserve, (uint64_t size, uint64_t *address),
             (void **)address, size, 0, NULL, 0)
HIP_DISCARDS(shared_release, hipMemRelease, (uint64_t handle), hip_pointer(handle))
HIP_DISCARDS(shared_unmap, hipMemUnmap, (uint64_t address, uint64_t size), hip_pointer(address),
             size)
HIP_DISCARDS(shared_unreserve, hipMemAddressFree, (uint64_t address, uint64_t size),
             hip_pointer(address), size)
HIP_FORWARDS(copy, hipMemcpyAsync, (stream_h stream, const bound_copy_t *c), hip_pointer(c->target),
             hip_pointer(c->source), c->size, hipMemcpyDefault, stream)

// With several GPUs hipHostFree ends the process if another thread registers memory meanwhile: HIP
// gives the addresses back before it forgets them. So the memory is the system's then, registered,
// behind a page that tells its size. That it cannot be locked some releases call a wrong value.
static keel_status_t alloc_registered(stream_vendor_t *v, uint64_t size, void **data)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), all;
    if (__builtin_add_overflow(size, page, &all)) all = SIZE_MAX; // which there is not
    char *start = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        return status_from_errno(KEEL_RESOURCE_EXHAUSTED, errno, "mapping memory of the host");
    *(size_t *)(void *)start = all;
    *data = start + page;
    keel_status_t status = HIP_CALL(v->symbols, hipHostRegister, *data, size,
                                    hipHostRegisterPortable | hipHostRegisterMapped);
    if (status) munmap(start, all);
    return keel_status_code(status) == KEEL_INVALID_ARGUMENT
               ? status_as(status, KEEL_RESOURCE_EXHAUSTED)
               : status;
}

static keel_status_t alloc_host(stream_vendor_t *v, uint64_t size, void **data)
{
    if (v->devices > 1) return alloc_registered(v, size, data);
    return HIP_CALL(v->symbols, hipHostMalloc, data, size,
                    hipHostMallocPortable | hipHostMallocMapped | hipHostMallocCoherent);
}

static void free_host(stream_vendor_t *v, void *what)
{
    if (v->devices > 1) {
        char *start = (char *)what - sysconf(_SC_PAGESIZE);
        host_unregister(v, what);
        munmap(start, *(size_t *)(void *)start);
    } else {
        keel_status_release(HIP_CALL_ANYWHERE(v->symbols, hipHostFree, what));
    }
}

static keel_status_t allocation(stream_vendor_t *v, uint64_t address, uint64_t *start)
{
    hipDeviceptr_t found = NULL;
    size_t size = 0;
    keel_status_t status =
        HIP_CALL(v->symbols, hipMemGetAddressRange, &found, &size, hip_pointer(address));
    *start = (uintptr_t)found;
    // It calls an address that it does not know not found.
    return keel_status_code(status) == KEEL_NOT_FOUND ? status_as(status, KEEL_INVALID_ARGUMENT)
                                                      : status;
}

static bool is_registered(const stream_vendor_t *v, char *byte)
{
    void *address = NULL;
    bool known = v->symbols->hipHostGetDevicePointer(&address, byte, 0) == hipSuccess;
    if (!known) (void)v->symbols->hipGetLastError();
    return known;
}

// Refuses memory that HSA has allocated for others than HIP. For all such memory HIP 5.7 has
// one range, which begins far before, and an address for the device.
static keel_status_t origin_check(stream_vendor_t *v, const char *byte)
{
    hsa_amd_pointer_info_t info = {.size = sizeof info};
    uint64_t start = 0;
    if (!v->symbols->origin || v->symbols->origin(byte, &info, NULL, NULL, NULL)) return NULL;
    if (info.type == HSA_EXT_POINTER_TYPE_UNKNOWN || info.type == HSA_EXT_POINTER_TYPE_LOCKED)
        return NULL;
    keel_status_t status = allocation(v, (uintptr_t)byte, &start);
    bool unknown = keel_status_code(status) == KEEL_INVALID_ARGUMENT;
    if (!unknown && (status || start >= (uintptr_t)info.agentBaseAddress)) return status;
    keel_status_release(status);
    return KEEL_ERROR(KEEL_FAILED_PRECONDITION,
                      "external->handle.host: HSA has allocated the memory at %p, for amdgpu:// or "
                      "for other code of the process, and HIP could not unlock it; take memory of "
                      "the application, or of HIP",
                      (const void *)byte);
}

// HIP locks memory twice without a word, and the first call that unlocks it unlocks it for all: so
// the adaptor looks first. Memory of HSA's own it locks, too, and ends the process when it unlocks
// that, for it has one address for host and GPU. It has no way to lock for reading alone: memory
// that cannot be written is locked where the kernel can (SVM), else refused. Then, and where no
// memory is, old releases say that there is none left.
static keel_status_t host_register(stream_vendor_t *v, void *data, uint64_t size, bool written,
                                   bool *already)
{
    KEEL_TRY(origin_check(v, data));
    KEEL_TRY(origin_check(v, (char *)data + size - 1));
    *already = is_registered(v, data) || is_registered(v, (char *)data + size - 1);
    if (*already) return NULL;
    hipError_t result =
        v->symbols->hipHostRegister(data, size, hipHostRegisterPortable | hipHostRegisterMapped);
    if (result == hipErrorOutOfMemory && !mapping_is_writable(data, size))
        result = hipErrorInvalidValue;
    return hip_status(v->symbols, result, "hipHostRegister");
}

static hipMemLocation here(const stream_vendor_t *v)
{
    return (hipMemLocation){hipMemLocationTypeDevice, v->device};
}

static hipMemAllocationProp shared_properties(const stream_vendor_t *v)
{
    return (hipMemAllocationProp){.location = here(v),
                                  .type = hipMemAllocationTypePinned,
                                  .requestedHandleType = hipMemHandleTypePosixFileDescriptor};
}

static keel_status_t shared_granularity(stream_vendor_t *v, uint64_t *bytes)
{
    const hipMemAllocationProp properties = shared_properties(v);
    size_t granularity = 0;
    keel_status_t status = HIP_CALL(v->symbols, hipMemGetAllocationGranularity, &granularity,
                                    &properties, hipMemAllocationGranularityMinimum);
    *bytes = granularity;
    return status;
}

static keel_status_t shared_create(stream_vendor_t *v, uint64_t size, uint64_t *handle)
{
    const hipMemAllocationProp properties = shared_properties(v);
    return HIP_CALL(v->symbols, hipMemCreate, (hipMemGenericAllocationHandle_t *)handle, size,
                    &properties, 0);
}

static keel_status_t shared_import(stream_vendor_t *v, int fd, uint64_t *handle)
{
    void *descriptor = v->symbols->release->descriptors_by_value ? hip_pointer((unsigned)fd) : &fd;
    return HIP_CALL(v->symbols, hipMemImportFromShareableHandle,
                    (hipMemGenericAllocationHandle_t *)handle, descriptor,
                    hipMemHandleTypePosixFileDescriptor);
}

// Copies between devices need that both see the memory, and the engine of either may make them. A
// device that cannot see it is left out.
static void shared_show(const stream_vendor_t *v, void *start, uint64_t size)
{
    for (int i = 0; i < v->devices; i++) {
        const hipMemAccessDesc access = {{hipMemLocationTypeDevice, i},
                                         hipMemAccessFlagsProtReadWrite};
        if (i != v->device && v->symbols->hipMemSetAccess(start, size, &access, 1) != hipSuccess)
            (void)v->symbols->hipGetLastError();
    }
}

// More than there is can be mapped and not accessed. A release that does not survive unmapping that
// needs no more than that the addresses are given back.
static keel_status_t shared_map(stream_vendor_t *v, uint64_t address, uint64_t size,
                                uint64_t handle)
{
    hipMemAccessDesc access = {here(v), hipMemAccessFlagsProtReadWrite};
    void *start = hip_pointer(address);
    KEEL_TRY(HIP_CALL(v->symbols, hipMemMap, start, size, 0, hip_pointer(handle), 0));
    keel_status_t status = HIP_CALL(v->symbols, hipMemSetAccess, start, size, &access, 1);
    bool refused = keel_status_code(status) == KEEL_INVALID_ARGUMENT;
    if (!status) shared_show(v, start, size);
    if (status && !(refused && v->symbols->release->refused_stays)) shared_unmap(v, address, size);
    return status;
}

// Devices of one library that reach each other's memory: between others HIP's copies go through the
// host, and the thread that submits them waits.
static bool peers(const stream_vendor_t *v, const stream_vendor_t *other)
{
    if (v->symbols != other->symbols) return false;
    if (v->device == other->device) return true;
    return other->device < HIP_PEERS && v->peers >> other->device & 1;
}

static keel_status_t copy_peer(stream_vendor_t *v, stream_h stream, const bound_copy_t *c,
                               stream_vendor_t *to, stream_vendor_t *from)
{
    return HIP_CALL(v->symbols, hipMemcpyPeerAsync, hip_pointer(c->target), to->device,
                    hip_pointer(c->source), from->device, c->size, stream);
}

static keel_status_t fill(stream_vendor_t *v, stream_h stream, const bound_fill_t *f)
{
    void *target = hip_pointer(f->target);
    if (f->size == 4)
        return HIP_CALL(v->symbols, hipMemsetD32Async, target, (int)f->pattern, f->count, stream);
    if (f->size == 2)
        return HIP_CALL(v->symbols, hipMemsetD16Async, target, (unsigned short)f->pattern, f->count,
                        stream);
    return HIP_CALL(v->symbols, hipMemsetD8Async, target, (unsigned char)f->pattern, f->count,
                    stream);
}

void hip_fill_memory(stream_api_t *api)
{
    STREAM_MEMORY_SLOTS(STREAM_FILL)
    STREAM_MANAGED_SLOTS(STREAM_FILL)
    STREAM_PEER_SLOTS(STREAM_FILL)
    STREAM_SHARED_SLOTS(STREAM_FILL)
}
