// SPDX-License-Identifier: Apache-2.0
// Buffers. What storage they have:
//
//     unified memory     shared: host and GPU see the same, at addresses of their own
//     a discrete GPU     private, which the host does not see; shared, which lies in memory of the
//                        host; managed, of which both have a copy
//
// Managed storage is told of writes of the host by the byte. What the GPU has written could be
// fetched by synchronizeResource, but that is of a whole buffer, and undoes what the host has
// written and not flushed elsewhere in it. So the range alone is copied.
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "drivers/metal/memory.h"
#include "kit/bind.h"
#include "kit/object.h"
#include "kit/slab.h"

typedef metal_memory_t memory_t;

void metal_residency_make(metal_device_t *device)
{
    const metal_api_t *api = device->api;
    id kind = api->objc_getClass("MTLResidencySetDescriptor"), error = NULL;
    if (kind && mtl_responds(api, device->device, api->selectors.new_residency_set)) {
        id descriptor = mtl_new(api, kind);
        device->residency = mtl_new_residency_set(api, device->device, descriptor, &error);
        mtl_release(api, descriptor);
    }
    if (!device->residency)
        log_say(KEEL_LOG_WARNING, "Metal makes no residency set: each encoder names its memory");
}

void metal_residency_release(metal_device_t *device)
{
    lock_enter(&device->set_lock);
    id set = device->residency;
    device->residency = NULL;
    lock_leave(&device->set_lock);
    mtl_release(device->api, set);
}

// Under the lock: whether another memory has the same buffer.
static bool is_shared(const metal_device_t *device, const memory_t *memory)
{
    const memory_t *m = memory->aliased ? device->memories : NULL;
    while (m && (m == memory || m->buffer != memory->buffer)) m = m->next;
    return m;
}

// Under the lock of the set, which has each buffer once. A change counts when it is committed.
static void residency_change(metal_device_t *device, const memory_t *memory, bool added)
{
    if (!device->residency) return;
    if (added)
        mtl_add_allocation(device->api, device->residency, memory->buffer);
    else
        mtl_remove_allocation(device->api, device->residency, memory->buffer);
    mtl_commit_set(device->api, device->residency);
}

// Memory is in the list no longer than in the set.
static void memory_list(metal_device_t *device, memory_t *memory)
{
    lock_enter(&device->set_lock);
    residency_change(device, memory, true);
    lock_enter(&device->lock);
    memory->next = device->memories;
    memory->link = &device->memories;
    if (memory->next) memory->next->link = &memory->next;
    device->memories = memory;
    lock_leave(&device->lock);
    lock_leave(&device->set_lock);
}

static void memory_unlist(metal_device_t *device, memory_t *memory)
{
    lock_enter(&device->set_lock);
    lock_enter(&device->lock);
    bool shared = is_shared(device, memory);
    *memory->link = memory->next;
    if (memory->next) memory->next->link = memory->link;
    lock_leave(&device->lock);
    if (!shared) residency_change(device, memory, false);
    lock_leave(&device->set_lock);
}

uint32_t metal_shared_bits(const metal_device_t *device)
{
    return device->base.caps.memory_types[device->discrete ? METAL_TYPE_SHARED : 0];
}

static unsigned long options_of(const metal_device_t *device, uint32_t bits)
{
    if (!(bits & KEEL_MEMORY_HOST_VISIBLE)) return METAL_PRIVATE | METAL_UNTRACKED;
    bool managed = device->discrete && bits & KEEL_MEMORY_DEVICE_LOCAL;
    return (managed ? METAL_MANAGED : METAL_SHARED) | METAL_UNTRACKED;
}

static bool is_managed(const memory_t *memory)
{
    const uint32_t host = KEEL_MEMORY_HOST_VISIBLE | KEEL_MEMORY_HOST_COHERENT;
    return (memory->bits & host) == KEEL_MEMORY_HOST_VISIBLE;
}

static memory_t *memory_make(metal_device_t *device, id made, uint64_t inside, uint64_t size)
{
    memory_t *memory = mem_zalloc(sizeof *memory);
    if (!memory) return NULL;
    memory->buffer = made;
    memory->inside = inside;
    memory->address = mtl_gpu_address(device->api, made) + inside;
    memory->size = size;
    memory->bits = metal_shared_bits(device);
    memory_list(device, memory);
    return memory;
}

static keel_status_t refused(uint64_t size)
{
    return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "Metal makes no buffer of %llu bytes",
                      (unsigned long long)size);
}

keel_status_t metal_memory_add(metal_device_t *device, id made, uint64_t size, memory_t **memory)
{
    if (!made) return refused(size);
    *memory = memory_make(device, made, 0, size);
    if (*memory) return NULL;
    mtl_release(device->api, made);
    return status_no_memory();
}

void metal_memory_remove(metal_device_t *device, memory_t *memory)
{
    if (!memory) return;
    memory_unlist(device, memory);
    mtl_release(device->api, memory->buffer);
    mem_free(memory);
}

id metal_memory_buffer(const memory_t *memory)
{
    return memory->buffer;
}

uint64_t metal_memory_address(const memory_t *memory)
{
    return memory->address;
}

keel_status_t metal_stage(metal_run_t *run, uint64_t size, memory_t **memory)
{
    metal_device_t *device = metal_run_device(run);
    size = metal_round_up(size ? size : 1, METAL_WORD);
    id made = mtl_new_buffer(device->api, device->device, size, METAL_SHARED | METAL_UNTRACKED);
    KEEL_TRY(metal_memory_add(device, made, size, memory));
    (*memory)->also = run->staging;
    run->staging = *memory;
    return NULL;
}

void metal_stages_release(metal_run_t *run)
{
    for (memory_t *memory; (memory = run->staging) != NULL;) {
        run->staging = memory->also;
        metal_memory_remove(metal_run_device(run), memory);
    }
    run->arguments = NULL; // was one of these
}

keel_status_t metal_memory_attach(keel_buffer_t *buffer, id made, uint64_t inside)
{
    metal_device_t *device = metal_device(buffer->device);
    const metal_api_t *api = device->api;
    if (!made) return refused(buffer->size);
    memory_t *memory = memory_make(device, made, inside, buffer->size);
    if (!memory) {
        mtl_release(api, made);
        return status_no_memory();
    }
    memory->bits = buffer->memory;
    char *data = mtl_contents(api, made);
    buffer->handle = (uint64_t)(uintptr_t)memory;
    atomic_store(&buffer->data, data ? data + inside : NULL);
    atomic_store(&buffer->address, memory->address);
    return NULL;
}

static void alias_mark(metal_device_t *device, id buffer)
{
    lock_enter(&device->lock);
    for (memory_t *m = device->memories; m; m = m->next) m->aliased |= m->buffer == buffer;
    lock_leave(&device->lock);
}

// Those that have it and go meanwhile must know before this one has it.
keel_status_t metal_memory_attach_alias(keel_buffer_t *buffer, id made, uint64_t inside)
{
    alias_mark(metal_device(buffer->device), made);
    KEEL_TRY(metal_memory_attach(buffer, made, inside));
    alias_mark(metal_device(buffer->device), made);
    return NULL;
}

// Metal aligns to its pages; for more than that there must be room to move.
keel_status_t metal_buffer_alloc(keel_buffer_t *buffer)
{
    metal_device_t *device = metal_device(buffer->device);
    if (buffer->usage & KEEL_USAGE_EXPORT) return metal_buffer_share(buffer);
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
        memory_unlist(device, metal_memory_of(buffer));
        mtl_release(api, metal_memory_of(buffer)->buffer);
        metal_leave(api, pool);
    } else {
        metal_mapping_end(metal_memory_of(buffer)->mapping); // no message may be sent
    }
    mem_free(metal_memory_of(buffer));
}

// With the lock held: whose address it is; NULL: no memory of the device has all of that.
static memory_t *memory_at(const metal_device_t *device, uint64_t address, uint64_t size)
{
    for (memory_t *m = device->memories; m; m = m->next) {
        if (address < m->address || size > m->size) continue;
        if (address - m->address <= m->size - size) return m;
    }
    return NULL;
}

static keel_status_t unknown(uint64_t address, uint64_t size)
{
    return KEEL_ERROR(KEEL_NOT_FOUND, "metal:// has no memory of %llu bytes at %#llx",
                      (unsigned long long)size, (unsigned long long)address);
}

keel_status_t metal_place_at(metal_device_t *device, uint64_t address, uint64_t length,
                             metal_place_t *place)
{
    lock_enter(&device->lock);
    const memory_t *m = memory_at(device, address, length);
    if (m)
        *place = (metal_place_t){m->buffer, (unsigned long)(m->inside + (address - m->address)),
                                 (unsigned long)length, NULL};
    lock_leave(&device->lock);
    return m ? NULL : unknown(address, length);
}

keel_status_t metal_import_address(keel_buffer_t *buffer)
{
    metal_device_t *device = metal_device(buffer->device);
    uint64_t address = buffer->external.handle.device, inside = 0;
    id found = NULL;
    lock_enter(&device->lock);
    memory_t *m = memory_at(device, address, buffer->size);
    if (m) {
        found = mtl_retain(device->api, m->buffer);
        buffer->memory = m->bits;
        inside = m->inside + (address - m->address);
    }
    lock_leave(&device->lock);
    if (!found) return unknown(address, buffer->size);
    return metal_memory_attach_alias(buffer, found, inside);
}

const keel_buffer_t *metal_memory_owner(const keel_buffer_t *root)
{
    while (root->lender) root = root->lender->root;
    return root->slab ? &((const slab_t *)root->slab)->memory : root;
}

// Where a part of a buffer lies in one of Metal's. False: it is the same memory for both sides.
static bool managed_find(const keel_buffer_t *buffer, uint64_t offset, const memory_t **memory,
                         metal_range_t *range)
{
    const keel_buffer_t *owner = metal_memory_owner(buffer->root);
    *memory = metal_memory_of(owner);
    uint64_t at = atomic_load(&buffer->root->address) - atomic_load(&owner->address);
    range->location = (unsigned long)((*memory)->inside + at + buffer->offset + offset);
    return is_managed(*memory) && range->length;
}

keel_status_t metal_buffer_flush(keel_buffer_t *buffer, uint64_t offset, uint64_t length)
{
    const metal_api_t *api = metal_device(buffer->device)->api;
    const memory_t *memory;
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

static keel_status_t invalidate(metal_device_t *device, const memory_t *memory, metal_range_t range)
{
    const metal_api_t *api = device->api;
    unsigned long first = range.location / METAL_WORD * METAL_WORD;
    unsigned long size =
        (unsigned long)metal_round_up(range.location + range.length, METAL_WORD) - first;
    id seen = mtl_new_buffer(api, device->device, size, METAL_SHARED | METAL_UNTRACKED);
    if (!seen) return refused(size);
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
    const memory_t *memory;
    metal_range_t range = {0, (unsigned long)length};
    if (!managed_find(buffer, offset, &memory, &range)) return NULL;
    void *pool = metal_enter(device->api);
    keel_status_t status = invalidate(device, memory, range);
    metal_leave(device->api, pool);
    return status;
}

keel_status_t metal_place(const keel_ref_t *ref, const keel_cmd_execute_t *execute,
                          metal_place_t *place)
{
    bound_t bound;
    const keel_ref_t *table = execute ? execute->bindings : NULL;
    KEEL_TRY(bind_now(table, ref, &bound));
    const keel_buffer_t *buffer = ref->buffer ? ref->buffer : table[ref->slot].buffer;
    const keel_buffer_t *owner = metal_memory_owner(buffer->root);
    const memory_t *memory = metal_memory_of(owner);
    // relaxed: as bind_find reads it.
    uint64_t at = bound.address - atomic_load_explicit(&owner->address, memory_order_relaxed);
    char *data = atomic_load_explicit(&owner->data, memory_order_relaxed);
    *place = (metal_place_t){memory->buffer, (unsigned long)(memory->inside + at),
                             (unsigned long)bound.length,
                             data && !is_managed(memory) ? data + at : NULL};
    return NULL;
}
