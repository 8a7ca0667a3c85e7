// SPDX-License-Identifier: Apache-2.0
// Memory of a device. Each piece is a buffer of Metal's, or a part of one. All are in a list, in
// which addresses are looked up, and in the residency set where there is one.
#include "base/memory.h"
#include "base/log.h"
#include "base/status.h"
#include "drivers/metal/memory/pieces.h"
#include "kit/bind.h"
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

keel_status_t metal_memory_refused(uint64_t size)
{
    return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "Metal makes no buffer of %llu bytes",
                      (unsigned long long)size);
}

keel_status_t metal_memory_add(metal_device_t *device, id made, uint64_t size, memory_t **memory)
{
    if (!made) return metal_memory_refused(size);
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

keel_status_t metal_memory_attach(keel_buffer_t *buffer, id made, uint64_t inside)
{
    metal_device_t *device = metal_device(buffer->device);
    const metal_api_t *api = device->api;
    if (!made) return metal_memory_refused(buffer->size);
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

keel_status_t metal_memory_attach_address(keel_buffer_t *buffer)
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
                             data && !metal_memory_is_managed(memory) ? data + at : NULL};
    return NULL;
}
