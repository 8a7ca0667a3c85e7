// SPDX-License-Identifier: Apache-2.0
// Buffers: their memory, and what the host writes and reads. What storage they have:
//
//     unified memory     shared: host and GPU see the same, at addresses of their own
//     a discrete GPU     private, which the host does not see; shared, which lies in memory of the
//                        host; managed, of which both have a copy
//
// Managed storage is told of writes of the host by the byte. What the GPU has written could be
// fetched by synchronizeResource, but that is of a whole buffer, and undoes what the host has
// written and not flushed elsewhere in it. So the range alone is copied.
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/shared_memory.h"
#include "base/status.h"
#include "drivers/metal/memory/pieces.h"
#include "kit/object.h"

static unsigned long options_of(const metal_device_t *device, uint32_t bits)
{
    if (!(bits & KEEL_MEMORY_HOST_VISIBLE)) return METAL_PRIVATE | METAL_UNTRACKED;
    bool managed = device->discrete && bits & KEEL_MEMORY_DEVICE_LOCAL;
    return (managed ? METAL_MANAGED : METAL_SHARED) | METAL_UNTRACKED;
}

// What is to be exported lies in a file without a name.
static keel_status_t share(keel_buffer_t *buffer)
{
    const metal_api_t *api = metal_device(buffer->device)->api;
    uint64_t spare = buffer->alignment > METAL_ALIGNED ? buffer->alignment : 0;
    uint64_t size = metal_round_up((buffer->size ? buffer->size : 1) + spare, METAL_PAGE);
    metal_mapping_t file = {.owns = true}, *mapping = NULL;
    KEEL_TRY(shared_memory_create(size, &file.fd));
    keel_status_t status = metal_mapping_make(file, size, PROT_READ | PROT_WRITE, 0, &mapping);
    if (status) {
        close(file.fd);
        return status;
    }
    void *pool = metal_enter(api);
    status = metal_mapping_attach(buffer, mapping, size, spare);
    metal_leave(api, pool);
    buffer->capacity = size;
    return status;
}

// Metal aligns to its pages; for more than that there must be room to move.
keel_status_t metal_buffer_alloc(keel_buffer_t *buffer)
{
    metal_device_t *device = metal_device(buffer->device);
    if (buffer->usage & KEEL_USAGE_EXPORT) return share(buffer);
    uint64_t spare = buffer->alignment > METAL_ALIGNED ? buffer->alignment : 0;
    uint64_t size = metal_round_up((buffer->size ? buffer->size : 1) + spare, METAL_WORD);
    void *pool = metal_enter(device->api);
    id made = mtl_new_buffer(device->api, device->device, size, options_of(device, buffer->memory));
    uint64_t address = spare ? mtl_gpu_address(device->api, made) : 0;
    uint64_t inside = spare ? metal_round_up(address, spare) - address : 0;
    keel_status_t status = metal_memory_attach(buffer, made, inside);
    metal_leave(device->api, pool);
    buffer->capacity = size;
    return status;
}

void metal_buffer_free(keel_buffer_t *buffer)
{
    metal_device_t *device = metal_device(buffer->device);
    const metal_api_t *api = device->api;
    if (object_is_ours(&buffer->object)) {
        void *pool = metal_enter(api);
        metal_memory_remove(device, metal_memory_of(buffer));
        metal_leave(api, pool);
    } else {
        metal_mapping_end(metal_memory_of(buffer)->mapping); // no message may be sent
        mem_free(metal_memory_of(buffer));
    }
}

// Where a part of a buffer lies in one of Metal's. False: it is the same memory for both sides.
static bool managed_find(const keel_buffer_t *buffer, uint64_t offset,
                         const metal_memory_t **memory, metal_range_t *range)
{
    const keel_buffer_t *owner = metal_memory_owner(buffer->root);
    *memory = metal_memory_of(owner);
    uint64_t at = atomic_load(&buffer->root->address) - atomic_load(&owner->address);
    range->location = (unsigned long)((*memory)->inside + at + buffer->offset + offset);
    return metal_memory_is_managed(*memory) && range->length;
}

keel_status_t metal_buffer_flush(keel_buffer_t *buffer, uint64_t offset, uint64_t length)
{
    const metal_api_t *api = metal_device(buffer->device)->api;
    const metal_memory_t *memory;
    metal_range_t range = {0, (unsigned long)length};
    if (!managed_find(buffer, offset, &memory, &range)) return NULL;
    void *pool = metal_enter(api);
    mtl_did_modify(api, memory->buffer, range);
    metal_leave(api, pool);
    return NULL;
}

// Copies what the GPU has to `seen`, by a queue of its own: nothing else holds it up.
static keel_status_t range_fetch(metal_device_t *device, id from, metal_range_t range, id seen)
{
    const metal_api_t *api = device->api;
    id command = mtl_command_buffer(api, device->fetches);
    lock_enter(&device->fetch_turn);
    id blit = mtl_blit_encoder(api, command);
    lock_leave(&device->fetch_turn);
    if (!blit) return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "Metal has no command buffer left");
    mtl_copy_buffer(api, blit, from, range.location, seen, 0, range.length);
    mtl_end_encoding(api, blit);
    lock_enter(&device->fetch_turn);
    mtl_commit(api, command);
    lock_leave(&device->fetch_turn);
    mtl_wait(api, command);
    if (mtl_status(api, command) != METAL_COMMAND_BUFFER_ERROR) return NULL;
    return KEEL_ERROR(KEEL_ABORTED, "the GPU gave up: %s",
                      metal_text(api, mtl_error(api, command)));
}

static keel_status_t invalidate(metal_device_t *device, const metal_memory_t *memory,
                                metal_range_t range)
{
    const metal_api_t *api = device->api;
    unsigned long first = range.location / METAL_WORD * METAL_WORD;
    unsigned long size =
        (unsigned long)metal_round_up(range.location + range.length, METAL_WORD) - first;
    id seen = mtl_new_buffer(api, device->device, size, METAL_SHARED | METAL_UNTRACKED);
    if (!seen) return metal_memory_refused(size);
    keel_status_t status = range_fetch(device, memory->buffer, (metal_range_t){first, size}, seen);
    if (!status)
        memcpy((char *)mtl_contents(api, memory->buffer) + range.location,
               (char *)mtl_contents(api, seen) + (range.location - first), range.length);
    mtl_release(api, seen);
    return status;
}

keel_status_t metal_buffer_invalidate(keel_buffer_t *buffer, uint64_t offset, uint64_t length)
{
    metal_device_t *device = metal_device(buffer->device);
    const metal_memory_t *memory;
    metal_range_t range = {0, (unsigned long)length};
    if (!managed_find(buffer, offset, &memory, &range)) return NULL;
    void *pool = metal_enter(device->api);
    keel_status_t status = invalidate(device, memory, range);
    metal_leave(device->api, pool);
    return status;
}
