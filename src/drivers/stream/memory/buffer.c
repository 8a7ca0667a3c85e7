// SPDX-License-Identifier: Apache-2.0
// Buffers: memory of the device, page-locked memory of the host, managed memory that both touch,
// and what is shared with other processes.
#include "base/memory.h"
#include "base/status.h"
#include "drivers/stream/memory/memory.h"

// The first three in the order of the device's memory types.
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

// Memory that is not the device's alone; `handle` of the buffer.
typedef struct lent_t {
    chore_t chore;
    keel_external_buffer_t external; // of the buffer, when that goes
    stream_shared_t shared;          // by descriptor; size 0: it is not
    bool locked;                     // its pages are
    bool parted;                     // and in several pieces
} lent_t;

static lent_t *lent_of(const keel_buffer_t *buffer)
{
    return (lent_t *)(uintptr_t)buffer->handle;
}

// Memory behind a descriptor belongs to no context, and is given back also when that is lost.
static void lent_end(void *owner, chore_t *chore)
{
    stream_device_t *device = owner;
    lent_t *lent = (lent_t *)chore;
    const keel_external_buffer_t *external = &lent->external;
    bool ours = stream_device_is_ours(device);
    if (ours && lent->shared.size) stream_shared_destroy(device, &lent->shared);
    if (ours && lent->locked) pages_unlock(&device->pages, external->handle.host, external->size);
    stream_chore_end(device, external->release);
    if (!external->release) return;
    nest_t nest; // a thread that closes the device waits for this one
    submission_nest(&nest, &device->base);
    external->release(external->user);
    submission_unnest(&nest);
}

static keel_status_t lent_create(keel_buffer_t *buffer)
{
    lent_t *lent = mem_zalloc(sizeof *lent);
    if (!lent) return status_no_memory();
    lent->chore = (chore_t){.run = lent_end, .timed = true};
    buffer->handle = (uint64_t)(uintptr_t)lent;
    return NULL;
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
    KEEL_TRY(lent_create(buffer));
    stream_shared_t *shared = &lent_of(buffer)->shared;
    keel_status_t status =
        stream_shared_create(device, buffer->capacity, buffer->alignment, shared);
    buffer->capacity = shared->size;
    buffer_attach(buffer, NULL, shared->address);
    if (status) mem_free(lent_of(buffer));
    return status;
}

static keel_status_t alloc_any(stream_device_t *device, keel_buffer_t *buffer)
{
    kind_t kind = kind_of(buffer);
    buffer->capacity = buffer->size ? buffer->size : 1;
    if (kind == KIND_SHARED) return alloc_shared(device, buffer);
    uint64_t align = buffer->alignment, address = 0;
    if (align > STREAM_ALIGNMENT) buffer->capacity += align;
    void *data = NULL;
    if (kind == KIND_HOST)
        KEEL_TRY(stream_host_alloc(device, buffer->capacity, &data, &address));
    else if (kind == KIND_MANAGED)
        KEEL_TRY(device->api->alloc_managed(device->vendor, buffer->capacity, &address));
    else
        KEEL_TRY(device->api->alloc_device(device->vendor, buffer->capacity, &address));
    buffer->handle = kind == KIND_HOST ? (uint64_t)(uintptr_t)data : address;
    uint64_t gap = align > STREAM_ALIGNMENT ? -address & (align - 1) : 0;
    char *start = kind == KIND_MANAGED ? (char *)(uintptr_t)address : data;
    buffer_attach(buffer, start ? start + gap : NULL, address + gap);
    return NULL;
}

typedef struct attempt_t {
    keel_buffer_t *buffer;
    keel_status_t status; // of the last
} attempt_t;

// False if there is no memory for it now.
static bool alloc_attempt(void *user)
{
    attempt_t *attempt = user;
    keel_status_release(attempt->status);
    attempt->status = alloc_any(stream_device(attempt->buffer->device), attempt->buffer);
    return keel_status_code(attempt->status) != KEEL_RESOURCE_EXHAUSTED;
}

// A slab has no references. It is made for work being issued, which must not wait.
static bool is_slab(const keel_buffer_t *buffer)
{
    return !atomic_load(&buffer->object.refs);
}

// A vendor that is asked for more memory than is left may wait for the device. So a slab is not
// asked for while memory that would do is on its way back: it is asked for when that has come.
static bool slab_is_early(stream_device_t *device, const keel_buffer_t *buffer)
{
    const chores_list_t *list = &device->chores.timed;
    if (!is_slab(buffer) || kind_of(buffer) != KIND_DEVICE) return false;
    uint32_t coming = atomic_load(&list->added) - atomic_load(&list->over);
    // What a chore has just given back is there, though the chore is not over.
    if (helper_here() == &device->chores.helper) coming--;
    if (!coming) return false;
    return device->api->memory(device->vendor) < buffer->size;
}

// There was no memory. An alloca that needs a slab waits for what is on its way back by itself.
static void alloc_starved(stream_device_t *device, attempt_t *attempt)
{
    bool waits = !is_slab(attempt->buffer);
    if (waits) chores_wait_until(&device->chores, alloc_attempt, attempt);
    if (keel_status_code(attempt->status) != KEEL_RESOURCE_EXHAUSTED) return;
    stream_pools_empty(device);
    if (alloc_attempt(attempt) || !waits) return;
    chores_wait_until(&device->chores, alloc_attempt, attempt); // for slabs of pools
    if (keel_status_code(attempt->status) == KEEL_RESOURCE_EXHAUSTED) alloc_attempt(attempt);
}

keel_status_t stream_buffer_alloc(keel_buffer_t *buffer)
{
    stream_device_t *device = stream_device(buffer->device);
    attempt_t attempt = {.buffer = buffer};
    stream_entered_t entered;
    if (!stream_enter(device, &entered)) return stream_device_lost(device);
    if (slab_is_early(device, buffer)) {
        attempt.status = KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "memory is still to come back");
    } else if (!alloc_attempt(&attempt)) {
        alloc_starved(device, &attempt);
    }
    stream_leave(&entered);
    keel_status_t status = attempt.status;
    if (keel_status_code(status) == KEEL_RESOURCE_EXHAUSTED)
        status = keel_status_wrap(status, "the device has no %llu bytes for a buffer",
                                  (unsigned long long)buffer->size);
    return stream_device_note(device, status);
}

void stream_buffer_free(keel_buffer_t *buffer)
{
    stream_device_t *device = stream_device(buffer->device);
    kind_t kind = kind_of(buffer);
    stream_entered_t entered;
    if (stream_enter(device, &entered)) {
        stream_peak_note(device, 0);
        stream_leave(&entered);
    }
    if (kind == KIND_SHARED)
        stream_chore_add(device, &lent_of(buffer)->chore);
    else
        stream_free(device, true,
                    kind == KIND_HOST ? device->api->free_host : device->api->free_device,
                    (void *)(uintptr_t)buffer->handle);
}

static keel_status_t pages_register(const pages_user_t *user, void *data, uint64_t size,
                                    bool written, uint64_t *address, bool *already)
{
    const stream_api_t *api = user->driver;
    KEEL_TRY(api->host_register(user->vendor, data, size, written, already));
    if (*already) return NULL;
    keel_status_t status = api->host_address(user->vendor, data, address);
    if (status) api->host_unregister(user->vendor, data);
    return status;
}

static keel_status_t pages_address(const pages_user_t *user, void *data, uint64_t *address)
{
    return ((const stream_api_t *)user->driver)->host_address(user->vendor, data, address);
}

static void pages_unregister(const pages_user_t *user, void *data)
{
    const stream_api_t *api = user->driver;
    stream_before_t before;
    api->enter(user->vendor, &before);
    api->host_unregister(user->vendor, data);
    api->leave(&before);
}

static void vendor_close(const pages_user_t *user)
{
    ((const stream_api_t *)user->driver)->close_device(user->vendor);
}

const pages_ops_t stream_pages_ops = {pages_register, pages_address, pages_unregister,
                                      vendor_close};

static keel_status_t import_host(stream_device_t *device, keel_buffer_t *buffer)
{
    void *data = buffer->external.handle.host;
    uint64_t address;
    buffer->memory = device->base.caps.memory_types[KIND_HOST];
    if (!buffer->external.size) {
        buffer_attach(buffer, data ? data : buffer, (uint64_t)(uintptr_t)buffer);
        return NULL;
    }
    keel_status_t status = pages_lock(&device->pages, data, buffer->external.size,
                                      buffer->access & KEEL_ACCESS_WRITE, &address);
    if (!status) {
        buffer_attach(buffer, data, address);
        lent_of(buffer)->locked = true;
        lent_of(buffer)->parted =
            pages_stretch(&device->pages, data, buffer->external.size) < buffer->external.size;
    }
    return status;
}

bool stream_buffer_is_parted(const keel_buffer_t *root)
{
    return root->external.size && lent_of(root)->parted;
}

static keel_status_t import_fd(stream_device_t *device, keel_buffer_t *buffer)
{
    const keel_external_buffer_t *external = &buffer->external;
    if (external->offset > device->limits.memory)
        return KEEL_ERROR(KEEL_OUT_OF_RANGE, "external->offset is %llu; the device has %llu bytes",
                          (unsigned long long)external->offset,
                          (unsigned long long)device->limits.memory);
    stream_shared_t *shared = &lent_of(buffer)->shared;
    KEEL_TRY(stream_shared_import(device, external->handle.fd, external->offset + external->size,
                                  shared));
    buffer->memory = device->base.caps.memory_types[KIND_DEVICE];
    buffer_attach(buffer, NULL, shared->address + external->offset);
    return NULL;
}

// That all of the span is memory of one allocation.
static keel_status_t address_check(stream_device_t *device, const keel_external_buffer_t *external)
{
    unsigned long long address = external->handle.device, size = external->size;
    uint64_t first = 0, last = 0;
    if (!size) return NULL;
    keel_status_t status = device->api->allocation(device->vendor, address, &first);
    if (keel_status_code(status) == KEEL_INVALID_ARGUMENT)
        return keel_status_wrap(status,
                                "external->handle.device is 0x%llx, and external->size %llu bytes: "
                                "no memory of the device's library is there; take an address that "
                                "it gave, of memory that is not freed",
                                address, size);
    KEEL_TRY(status);
    status = device->api->allocation(device->vendor, address + size - 1, &last);
    if (status ? keel_status_code(status) != KEEL_INVALID_ARGUMENT : last == first) return status;
    keel_status_release(status);
    return KEEL_ERROR(
        KEEL_OUT_OF_RANGE,
        "external->size is %llu bytes, which from external->handle.device 0x%llx on "
        "reach beyond the memory that starts at 0x%llx; all must be of one allocation",
        size, address, (unsigned long long)first);
}

static keel_status_t import_address(stream_device_t *device, keel_buffer_t *buffer)
{
    KEEL_TRY(address_check(device, &buffer->external));
    uint64_t address = buffer->external.handle.device;
    if (!address) address = STREAM_ALIGNMENT; // nothing at all has one
    bool managed = stream_device_has(device, STREAM_MANAGED) && kind_of(buffer) == KIND_MANAGED;
    buffer->memory = device->base.caps.memory_types[managed ? KIND_MANAGED : KIND_DEVICE];
    buffer_attach(buffer, managed ? (void *)(uintptr_t)address : NULL, address);
    return NULL;
}

keel_status_t stream_buffer_import(keel_buffer_t *buffer)
{
    stream_device_t *device = stream_device(buffer->device);
    keel_external_kind_t kind = buffer->external.kind;
    if (kind == KEEL_EXTERNAL_FD && !stream_device_has(device, STREAM_SHARED))
        return KEEL_ERROR(KEEL_UNSUPPORTED, "the device imports no file descriptors");
    stream_entered_t entered;
    KEEL_TRY(lent_create(buffer));
    keel_status_t status;
    if (!stream_enter(device, &entered)) {
        status = stream_device_lost(device);
    } else {
        status = kind == KEEL_EXTERNAL_HOST     ? import_host(device, buffer)
                 : kind == KEEL_EXTERNAL_DEVICE ? import_address(device, buffer)
                                                : import_fd(device, buffer);
        stream_leave(&entered);
    }
    if (status) mem_free(lent_of(buffer));
    return stream_device_note(device, status);
}

void stream_buffer_forget(keel_buffer_t *buffer)
{
    stream_device_t *device = stream_device(buffer->device);
    lent_t *lent = lent_of(buffer);
    lent->external = buffer->external;
    lent->chore.timed = lent->locked || lent->shared.size;
    if (lent->external.release || !lent->locked) {
        stream_chore_add(device, &lent->chore);
        return;
    }
    reclaim_begin(&device->reclaim);
    lent_end(device, &lent->chore); // it is its owner's as soon as the caller knows
    mem_free(lent);
}

keel_status_t stream_buffer_export(keel_buffer_t *buffer, keel_external_buffer_t *external)
{
    stream_device_t *device = stream_device(buffer->device);
    const keel_buffer_t *root = buffer->root;
    stream_entered_t entered;
    if (!stream_enter(device, &entered)) return stream_device_lost(device);
    keel_status_t status = device->api->shared_export(device->vendor, lent_of(root)->shared.handle,
                                                      &external->handle.fd);
    stream_leave(&entered);
    return stream_device_note(device, status);
}
