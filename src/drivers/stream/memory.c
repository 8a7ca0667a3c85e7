// SPDX-License-Identifier: Apache-2.0
// Buffers: memory of the device, page-locked memory of the host, managed memory that both touch,
// and what is shared with other processes.
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/status.h"
#include "drivers/stream/stream.h"

enum { NATURAL = 256 }; // what any allocation of a vendor's is aligned to

typedef enum kind_t {
    KIND_DEVICE,
    KIND_HOST,
    KIND_MANAGED,
    KIND_SHARED,
} kind_t;

static kind_t kind_of(const keel_buffer_t *buffer)
{
    if (buffer->usage & KEEL_USAGE_EXPORT) return KIND_SHARED;
    if (!(buffer->memory & KEEL_MEMORY_HOST_VISIBLE)) return KIND_DEVICE;
    return buffer->memory & KEEL_MEMORY_DEVICE_LOCAL ? KIND_MANAGED : KIND_HOST;
}

static void buffer_attach(keel_buffer_t *buffer, void *data, uint64_t address)
{
    atomic_store(&buffer->data, data);
    atomic_store(&buffer->address, address);
}

static keel_status_t alloc_shared(stream_device_t *device, keel_buffer_t *buffer)
{
    if (buffer->memory & KEEL_MEMORY_HOST_VISIBLE)
        return KEEL_ERROR(KEEL_UNSUPPORTED,
                          "memory that the host sees cannot be exported by file descriptor");
    stream_shared_t *shared = mem_zalloc(sizeof *shared);
    if (!shared) return status_no_memory();
    keel_status_t status = device->api->shared_create(device->vendor, buffer->capacity, shared);
    if (status) {
        mem_free(shared);
        return status;
    }
    buffer->capacity = shared->size;
    buffer->handle = (uint64_t)(uintptr_t)shared;
    buffer_attach(buffer, NULL, shared->address);
    return NULL;
}

static keel_status_t alloc_any(stream_device_t *device, keel_buffer_t *buffer)
{
    kind_t kind = kind_of(buffer);
    buffer->capacity = buffer->size ? buffer->size : 1;
    if (kind == KIND_SHARED) return alloc_shared(device, buffer);
    uint64_t align = buffer->alignment, address = 0;
    if (align > NATURAL) buffer->capacity += align;
    void *data = NULL;
    if (kind == KIND_HOST)
        KEEL_TRY(device->api->alloc_host(device->vendor, buffer->capacity, &data, &address));
    else if (kind == KIND_MANAGED)
        KEEL_TRY(device->api->alloc_managed(device->vendor, buffer->capacity, &address));
    else
        KEEL_TRY(device->api->alloc(device->vendor, buffer->capacity, &address));
    buffer->handle = kind == KIND_HOST ? (uint64_t)(uintptr_t)data : address;
    uint64_t gap = align > NATURAL ? -address & (align - 1) : 0;
    char *start = kind == KIND_MANAGED ? (char *)(uintptr_t)address : data;
    buffer_attach(buffer, start ? start + gap : NULL, address + gap);
    return NULL;
}

keel_status_t stream_buffer_alloc(keel_buffer_t *buffer)
{
    stream_device_t *device = stream_device(buffer->device);
    stream_entered_t entered;
    if (!stream_enter(device, &entered)) return stream_device_lost(device);
    keel_status_t status = alloc_any(device, buffer);
    if (keel_status_code(status) == KEEL_RESOURCE_EXHAUSTED) {
        keel_status_release(status);
        stream_pools_empty(device, NULL);
        status = alloc_any(device, buffer);
    }
    stream_leave(&entered);
    if (keel_status_code(status) == KEEL_RESOURCE_EXHAUSTED)
        status = keel_status_wrap(status, "the device has no %llu bytes for a buffer",
                                  (unsigned long long)buffer->size);
    return stream_device_note(device, status);
}

// Memory behind a descriptor belongs to no context, and is given back also when that is lost.
static void shared_free(stream_device_t *device, keel_buffer_t *buffer)
{
    stream_shared_t *shared = (stream_shared_t *)(uintptr_t)buffer->handle;
    if (stream_device_is_ours(device)) device->api->shared_destroy(device->vendor, shared);
    mem_free(shared);
}

void stream_buffer_free(keel_buffer_t *buffer)
{
    stream_device_t *device = stream_device(buffer->device);
    kind_t kind = kind_of(buffer);
    stream_entered_t entered;
    if (kind == KIND_SHARED) {
        shared_free(device, buffer);
    } else if (stream_enter(device, &entered)) {
        if (kind == KIND_HOST)
            device->api->free_host(device->vendor, (void *)(uintptr_t)buffer->handle);
        else
            device->api->free(device->vendor, buffer->handle);
        stream_leave(&entered);
    }
}

// Memory of the application is page-locked while somebody imports it. A page can be locked only
// once in a process, and imports may share pages, so the ranges are kept here for all devices.
typedef struct locked_t {
    struct locked_t *next;
    uintptr_t start, end;
    uint64_t offset; // device address less host address
    uint32_t users;
} locked_t;

static lock_t locked_lock;
static locked_t *locked_list;

static keel_status_t host_lock(stream_device_t *device, uintptr_t start, uintptr_t end,
                               locked_t **made)
{
    locked_t *locked = mem_zalloc(sizeof *locked);
    if (!locked) return status_no_memory();
    uint64_t address = 0;
    keel_status_t status =
        device->api->host_register(device->vendor, (void *)start, end - start, &address);
    if (status) {
        mem_free(locked);
        return status;
    }
    *locked = (locked_t){.start = start, .end = end, .offset = address - start};
    *made = locked;
    return NULL;
}

// Locks the gaps of a range and counts a user of all of it. Under the lock.
static keel_status_t range_lock(stream_device_t *device, uintptr_t start, uintptr_t end)
{
    for (uintptr_t at = start; at < end;) {
        uintptr_t stop = end;
        locked_t *here = NULL;
        for (locked_t *l = locked_list; l; l = l->next) {
            if (l->start <= at && at < l->end) here = l;
            if (l->start > at && l->start < stop) stop = l->start;
        }
        if (!here) {
            KEEL_TRY(host_lock(device, at, stop, &here));
            here->next = locked_list;
            locked_list = here;
        }
        at = here->end;
    }
    return NULL;
}

static void range_count(uintptr_t start, uintptr_t end, int change)
{
    for (locked_t *l = locked_list; l; l = l->next)
        if (l->start < end && start < l->end) l->users += (uint32_t)change;
}

// Without the vendor, whose context is gone, the pages are as well.
static void range_clean(stream_device_t *device, bool vendor)
{
    for (locked_t **at = &locked_list; *at;) {
        locked_t *l = *at;
        if (l->users) {
            at = &l->next;
            continue;
        }
        *at = l->next;
        if (vendor) device->api->host_unregister(device->vendor, (void *)l->start);
        mem_free(l);
    }
}

static void pages_of(const keel_buffer_t *buffer, uintptr_t *start, uintptr_t *end)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t data = (uintptr_t)buffer->external.handle.host;
    *start = data & ~(page - 1);
    *end = (data + buffer->external.size + page - 1) & ~(page - 1);
}

static keel_status_t import_host(stream_device_t *device, keel_buffer_t *buffer)
{
    void *data = buffer->external.handle.host;
    uintptr_t start, end;
    pages_of(buffer, &start, &end);
    buffer->memory = KEEL_MEMORY_DEVICE_VISIBLE | KEEL_MEMORY_HOST_VISIBLE |
                     KEEL_MEMORY_HOST_COHERENT | KEEL_MEMORY_HOST_CACHED;
    if (!buffer->external.size) {
        buffer_attach(buffer, data ? data : buffer, (uint64_t)(uintptr_t)buffer);
        return NULL;
    }
    lock_enter(&locked_lock);
    keel_status_t status = range_lock(device, start, end);
    uint64_t offset = 0;
    if (!status) {
        range_count(start, end, 1);
        for (locked_t *l = locked_list; l; l = l->next)
            if (l->start <= start && start < l->end) offset = l->offset;
    } else {
        range_clean(device, true);
    }
    lock_leave(&locked_lock);
    if (!status) buffer_attach(buffer, data, (uint64_t)(uintptr_t)data + offset);
    return status;
}

static keel_status_t import_fd(stream_device_t *device, keel_buffer_t *buffer)
{
    const keel_external_t *external = &buffer->external;
    if (external->offset % (uint64_t)sysconf(_SC_PAGESIZE))
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT,
                          "external->offset is %llu, no multiple of the page size",
                          (unsigned long long)external->offset);
    if (external->offset > device->limits.memory)
        return KEEL_ERROR(KEEL_OUT_OF_RANGE, "external->offset is %llu; the device has %llu bytes",
                          (unsigned long long)external->offset,
                          (unsigned long long)device->limits.memory);
    stream_shared_t *shared = mem_zalloc(sizeof *shared);
    if (!shared) return status_no_memory();
    keel_status_t status = device->api->shared_import(device->vendor, external->handle.fd,
                                                      external->offset + external->size, shared);
    if (status) {
        mem_free(shared);
        return status;
    }
    buffer->memory = device->base.caps.memory_types[0];
    buffer->handle = (uint64_t)(uintptr_t)shared;
    buffer_attach(buffer, NULL, shared->address + external->offset);
    return NULL;
}

keel_status_t stream_buffer_import(keel_buffer_t *buffer)
{
    stream_device_t *device = stream_device(buffer->device);
    if (buffer->external.kind == KEEL_EXTERNAL_DEVICE) {
        uint64_t address = buffer->external.handle.device;
        buffer->memory = device->base.caps.memory_types[0];
        buffer_attach(buffer, NULL, address ? address : NATURAL); // nothing at all has an address
        return NULL;
    }
    if (buffer->external.kind == KEEL_EXTERNAL_FD && !device->limits.has_shared)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "the device imports no file descriptors");
    stream_entered_t entered;
    if (!stream_enter(device, &entered)) return stream_device_lost(device);
    keel_status_t status = buffer->external.kind == KEEL_EXTERNAL_HOST ? import_host(device, buffer)
                                                                       : import_fd(device, buffer);
    stream_leave(&entered);
    return stream_device_note(device, status);
}

void stream_buffer_forget(keel_buffer_t *buffer)
{
    stream_device_t *device = stream_device(buffer->device);
    bool nothing = atomic_load(&buffer->address) == (uint64_t)(uintptr_t)buffer;
    if (buffer->external.kind == KEEL_EXTERNAL_FD) shared_free(device, buffer);
    if (buffer->external.kind != KEEL_EXTERNAL_HOST || nothing || !stream_device_is_ours(device))
        return;
    stream_entered_t entered;
    uintptr_t start, end;
    bool vendor = stream_enter(device, &entered);
    pages_of(buffer, &start, &end);
    lock_enter(&locked_lock);
    range_count(start, end, -1);
    range_clean(device, vendor);
    lock_leave(&locked_lock);
    if (vendor) stream_leave(&entered);
}

keel_status_t stream_buffer_export(keel_buffer_t *buffer, keel_external_t *external)
{
    stream_device_t *device = stream_device(buffer->device);
    const keel_buffer_t *root = buffer->root;
    stream_entered_t entered;
    if (kind_of(root) != KIND_SHARED || root->external.size)
        return KEEL_ERROR(KEEL_FAILED_PRECONDITION, "the buffer's memory has no file descriptor");
    if (buffer->offset % (uint64_t)sysconf(_SC_PAGESIZE))
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT,
                          "the subspan begins at %llu, no multiple of the page size",
                          (unsigned long long)buffer->offset);
    external->offset = buffer->offset;
    if (!stream_enter(device, &entered)) return stream_device_lost(device);
    keel_status_t status = device->api->shared_export(
        device->vendor, (const stream_shared_t *)(uintptr_t)root->handle, &external->handle.fd);
    stream_leave(&entered);
    return stream_device_note(device, status);
}
