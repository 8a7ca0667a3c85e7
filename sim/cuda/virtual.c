// SPDX-License-Identifier: Apache-2.0
// The virtual memory API: a handle is a file in memory, which is mapped at reserved addresses.
#include "cuda/arena.h"
#include "cuda/call.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { GRANULARITY = 2 << 20 };

typedef struct memory_t {
    struct memory_t *next;
    uint64_t size;
    device_t *device;
    CUmemAllocationHandleType shareable;
    unsigned references; // handles and mappings
    int fd;
} memory_t;

typedef struct reservation_t {
    struct reservation_t *next;
    uint64_t address, size;
} reservation_t;

typedef struct mapping_t {
    struct mapping_t *next;
    uint64_t address, size;
    memory_t *memory; // retained
} mapping_t;

static memory_t *memories;
static reservation_t *reservations;
static mapping_t *mappings;

static memory_t *memory_of(CUmemGenericAllocationHandle handle)
{
    for (memory_t *memory = memories; memory; memory = memory->next) {
        if ((uintptr_t)memory == handle) return memory;
    }
    return NULL;
}

static void memory_release(memory_t *memory)
{
    if (--memory->references) return;
    memory_t **link = &memories;
    while (*link != memory) link = &(*link)->next;
    *link = memory->next;
    close(memory->fd);
    memory->device->used -= memory->size;
    free(memory);
}

// Takes the descriptor, whatever happens.
static CUresult memory_add(CUmemGenericAllocationHandle *out, uint64_t size, device_t *device,
                           int fd)
{
    memory_t *memory = calloc(1, sizeof *memory);
    if (!memory || fd < 0 || size > settings()->memory - device->used) {
        free(memory);
        if (fd >= 0) close(fd);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *memory = (memory_t){memories, size, device, CU_MEM_HANDLE_TYPE_NONE, 1, fd};
    memories = memory;
    device->used += size;
    *out = (uintptr_t)memory;
    return CUDA_SUCCESS;
}

static bool prop_valid(const CUmemAllocationProp *prop)
{
    return prop && prop->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
           prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
           !(prop->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

CUresult cuMemGetAllocationGranularity(size_t *out, const CUmemAllocationProp *prop,
                                       CUmemAllocationGranularity_flags option)
{
    CALL(CALL_PLAIN);
    if (!out || !prop_valid(prop)) return CUDA_ERROR_INVALID_VALUE;
    if (!device_of(prop->location.id)) return CUDA_ERROR_INVALID_DEVICE;
    *out = GRANULARITY;
    return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t size,
                     const CUmemAllocationProp *prop, unsigned long long flags)
{
    CALL(CALL_PLAIN);
    if (!out || !prop_valid(prop) || flags) return CUDA_ERROR_INVALID_VALUE;
    if (size == 0 || size % GRANULARITY) return CUDA_ERROR_INVALID_VALUE;
    device_t *device = device_of(prop->location.id);
    if (!device) return CUDA_ERROR_INVALID_DEVICE;
    if (size > settings()->memory - device->used) return CUDA_ERROR_OUT_OF_MEMORY;
    int fd = memfd_create("device memory handle", MFD_CLOEXEC);
    if (fd >= 0 && ftruncate(fd, (off_t)size) != 0) {
        close(fd);
        fd = -1;
    }
    CUresult error = memory_add(out, size, device, fd);
    if (error == CUDA_SUCCESS) memory_of(*out)->shareable = prop->requestedHandleTypes;
    return error;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    CALL(CALL_RELEASE);
    memory_t *memory = memory_of(handle);
    if (!memory) return CUDA_ERROR_INVALID_VALUE;
    memory_release(memory);
    return call.late;
}

// The file behind a descriptor once more. What is exported is a path (O_PATH), which names the
// memory but cannot be mapped or read: neither can a card's descriptors.
static int file_reopen(int fd, int how)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, how | O_CLOEXEC);
}

CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags)
{
    CALL(CALL_PLAIN);
    memory_t *memory = memory_of(handle);
    if (!out || !memory || flags) return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || memory->shareable != type) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    int fd = file_reopen(memory->fd, O_PATH);
    if (fd < 0) return CUDA_ERROR_OPERATING_SYSTEM;
    *(int *)out = fd;
    return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *handle,
                                        CUmemAllocationHandleType type)
{
    CALL(CALL_CONTEXT);
    struct stat info;
    if (!out || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
    int fd = (int)(uintptr_t)handle;
    if (fstat(fd, &info) != 0 || info.st_size <= 0 || info.st_size % GRANULARITY) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    int own = file_reopen(fd, O_RDWR);
    CUresult error = memory_add(out, (uint64_t)info.st_size, call.context->device, own);
    if (error == CUDA_SUCCESS) memory_of(*out)->shareable = type;
    return error;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *out,
                                                CUmemGenericAllocationHandle handle)
{
    CALL(CALL_PLAIN);
    memory_t *memory = memory_of(handle);
    if (!out || !memory) return CUDA_ERROR_INVALID_VALUE;
    *out = (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = memory->shareable,
        .location = {CU_MEM_LOCATION_TYPE_DEVICE, memory->device->ordinal},
    };
    return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *out, size_t size, size_t align, CUdeviceptr hint,
                             unsigned long long flags)
{
    CALL(CALL_PLAIN);
    if (!out || flags || size == 0 || size % GRANULARITY || align & (align - 1)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    reservation_t *reservation = calloc(1, sizeof *reservation);
    uint64_t address = arena_reserve(size, align > GRANULARITY ? align : GRANULARITY);
    if (!reservation || !address) {
        free(reservation);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *reservation = (reservation_t){reservations, address, size};
    reservations = reservation;
    *out = address;
    return CUDA_SUCCESS;
}

// The link to the mapping that has an address, or to NULL at the end of the list.
static mapping_t **mapping_at(uint64_t address)
{
    mapping_t **link = &mappings;
    while (*link && address - (*link)->address >= (*link)->size) link = &(*link)->next;
    return link;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t size)
{
    CALL(CALL_RELEASE);
    reservation_t **link = &reservations;
    while (*link && (*link)->address != address) link = &(*link)->next;
    if (!*link || (*link)->size != size) return CUDA_ERROR_INVALID_VALUE;
    for (mapping_t *mapping = mappings; mapping; mapping = mapping->next) {
        if (mapping->address - address < size) return CUDA_ERROR_INVALID_VALUE;
    }
    reservation_t *reservation = *link;
    *link = reservation->next;
    free(reservation);
    return call.late;
}

static const reservation_t *reservation_of(uint64_t address, uint64_t size)
{
    const reservation_t *r = reservations;
    for (; r; r = r->next) {
        uint64_t offset = address - r->address;
        if (offset < r->size && size <= r->size - offset) break;
    }
    return r;
}

CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    CALL(CALL_PLAIN);
    memory_t *memory = memory_of(handle);
    if (!memory || flags || offset || size == 0 || size % GRANULARITY || address % GRANULARITY) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const reservation_t *reservation = reservation_of(address, size);
    if (!reservation) return CUDA_ERROR_INVALID_VALUE;
    if (size > memory->size) return CUDA_ERROR_NOT_SUPPORTED; // as seen on an H200
    for (mapping_t *other = mappings; other; other = other->next) {
        if (other->address - address < size || address - other->address < other->size) {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    mapping_t *mapping = calloc(1, sizeof *mapping);
    if (!mapping) return CUDA_ERROR_OUT_OF_MEMORY;
    bool mapped = arena_map(address, size, memory->fd, 0);
    range_t *range = mapped ? arena_track(address, size, memory->device) : NULL;
    if (!range) {
        free(mapping);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    range->whole = reservation->address;
    range->whole_size = reservation->size;
    memory->references++;
    *mapping = (mapping_t){mappings, address, size, memory};
    mappings = mapping;
    return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t size)
{
    CALL(CALL_RELEASE);
    mapping_t **link = mapping_at(address);
    mapping_t *mapping = *link;
    if (!mapping || mapping->address != address || mapping->size != size) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (arena_is_busy(arena_find_base(address))) return CUDA_ERROR_INVALID_VALUE;
    arena_free(arena_find_base(address));
    arena_map(address, size, -1, 0);
    *link = mapping->next;
    memory_release(mapping->memory);
    free(mapping);
    return call.late;
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc *access,
                        size_t count)
{
    CALL(CALL_PLAIN);
    if (!access || count == 0) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
        if (!device_of(access[i].location.id)) return CUDA_ERROR_INVALID_DEVICE;
    }
    for (uint64_t at = address, end = address + size; at < end;) {
        mapping_t *mapping = *mapping_at(at);
        if (!mapping || mapping->address != at || mapping->size > end - at) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        range_t *range = arena_find_base(at);
        range->flags = access[0].flags;
        range->writable = access[0].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        arena_begin(range);
        at += mapping->size;
    }
    return CUDA_SUCCESS;
}

CUresult cuMemGetAccess(unsigned long long *out, const CUmemLocation *location, CUdeviceptr address)
{
    CALL(CALL_PLAIN);
    range_t *range = arena_find(address);
    if (!out || !location || !range || range->kind != RANGE_VIRTUAL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = range->flags;
    return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *out, void *address)
{
    CALL(CALL_PLAIN);
    mapping_t *mapping = *mapping_at((uintptr_t)address);
    if (!out || !mapping) return CUDA_ERROR_INVALID_VALUE;
    mapping->memory->references++;
    *out = (uintptr_t)mapping->memory;
    return CUDA_SUCCESS;
}
