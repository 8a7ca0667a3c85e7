// SPDX-License-Identifier: Apache-2.0
// Buffers. All storage is shared: host and GPU see the same memory, at addresses of their own.
#include "base/memory.h"
#include "base/status.h"
#include "drivers/metal/metal.h"
#include "kit/bind.h"
#include "kit/object.h"
#include "kit/slab.h"

// What keel_buffer_t.handle points to.
typedef struct metal_memory_t {
    struct metal_memory_t *next, **link; // of the device
    id buffer;                           // retained
    uint64_t inside;                     // where the memory begins in it
    uint64_t address, size;              // of the memory, for the device
} memory_t;

static memory_t *memory_of(const keel_buffer_t *buffer)
{
    return (memory_t *)(uintptr_t)buffer->handle;
}

static void memory_list(metal_device_t *device, memory_t *memory)
{
    lock_enter(&device->lock);
    memory->next = device->memories;
    memory->link = &device->memories;
    if (memory->next) memory->next->link = &memory->next;
    device->memories = memory;
    lock_leave(&device->lock);
}

static void memory_unlist(metal_device_t *device, memory_t *memory)
{
    lock_enter(&device->lock);
    *memory->link = memory->next;
    if (memory->next) memory->next->link = memory->link;
    lock_leave(&device->lock);
}

static uint64_t round_up(uint64_t value, uint64_t to)
{
    return (value + to - 1) / to * to;
}

static memory_t *memory_make(metal_device_t *device, id made, uint64_t inside, uint64_t size)
{
    memory_t *memory = mem_zalloc(sizeof *memory);
    if (!memory) return NULL;
    memory->buffer = made;
    memory->inside = inside;
    memory->address = mtl_gpu_address(device->api, made) + inside;
    memory->size = size;
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

// Takes over `made`, which is nil if Metal has refused it.
static keel_status_t attach(keel_buffer_t *buffer, id made, uint64_t inside)
{
    metal_device_t *device = metal_device(buffer->device);
    const metal_api_t *api = device->api;
    if (!made) return refused(buffer->size);
    memory_t *memory = memory_make(device, made, inside, buffer->size);
    if (!memory) {
        mtl_release(api, made);
        return status_no_memory();
    }
    buffer->handle = (uint64_t)(uintptr_t)memory;
    atomic_store(&buffer->data, (char *)mtl_contents(api, made) + inside);
    atomic_store(&buffer->address, memory->address);
    return NULL;
}

// Metal aligns to its pages; for more than that there must be room to move.
keel_status_t metal_buffer_alloc(keel_buffer_t *buffer)
{
    metal_device_t *device = metal_device(buffer->device);
    uint64_t spare = buffer->alignment > METAL_ALIGNED ? buffer->alignment : 0;
    uint64_t size = (buffer->size ? buffer->size : 1) + spare;
    void *pool = metal_enter(device->api);
    id made = mtl_new_buffer(device->api, device->device, size, METAL_SHARED | METAL_UNTRACKED);
    uint64_t address = spare ? mtl_gpu_address(device->api, made) : 0;
    uint64_t inside = spare ? round_up(address, spare) - address : 0;
    keel_status_t status = attach(buffer, made, inside);
    metal_leave(device->api, pool);
    buffer->capacity = size;
    return status;
}

static void release(keel_buffer_t *buffer)
{
    metal_device_t *device = metal_device(buffer->device);
    const metal_api_t *api = device->api;
    if (object_is_ours(&buffer->object)) {
        memory_unlist(device, memory_of(buffer));
        void *pool = metal_enter(api);
        mtl_release(api, memory_of(buffer)->buffer);
        metal_leave(api, pool);
    }
    mem_free(memory_of(buffer));
}

void metal_buffer_free(keel_buffer_t *buffer)
{
    release(buffer);
}

// Memory of this device, by its address: the same buffer of Metal's.
static keel_status_t import_address(keel_buffer_t *buffer)
{
    metal_device_t *device = metal_device(buffer->device);
    uint64_t address = buffer->external.handle.device, inside = 0;
    id found = NULL;
    lock_enter(&device->lock);
    for (const memory_t *m = device->memories; m && !found; m = m->next) {
        if (address < m->address || buffer->size > m->size) continue;
        if (address - m->address > m->size - buffer->size) continue;
        found = mtl_retain(device->api, m->buffer);
        inside = m->inside + (address - m->address);
    }
    lock_leave(&device->lock);
    if (found) return attach(buffer, found, inside);
    return KEEL_ERROR(KEEL_NOT_FOUND, "metal:// has no memory of %llu bytes at %#llx",
                      (unsigned long long)buffer->size, (unsigned long long)address);
}

// Metal takes whole pages: those that the memory lies in.
static keel_status_t import_host(keel_buffer_t *buffer)
{
    metal_device_t *device = metal_device(buffer->device);
    uint64_t host = (uintptr_t)buffer->external.handle.host, inside = host % METAL_PAGE;
    uint64_t size = round_up(inside + buffer->size, METAL_PAGE);
    void *pool = metal_enter(device->api);
    id made = mtl_new_wrapped(device->api, device->device, (void *)(uintptr_t)(host - inside), size,
                              METAL_SHARED | METAL_UNTRACKED, NULL);
    keel_status_t status = attach(buffer, made, inside);
    metal_leave(device->api, pool);
    return status;
}

keel_status_t metal_buffer_import(keel_buffer_t *buffer)
{
    buffer->memory = buffer->device->caps.memory_types[0];
    switch (buffer->external.kind) {
    case KEEL_EXTERNAL_HOST: return import_host(buffer);
    case KEEL_EXTERNAL_DEVICE: return import_address(buffer);
    default: return KEEL_ERROR(KEEL_UNSUPPORTED, "metal:// imports no file descriptors");
    }
}

void metal_buffer_forget(keel_buffer_t *buffer)
{
    release(buffer);
    if (buffer->external.release) buffer->external.release(buffer->external.user);
}

// The buffer that a root has its memory of: itself, a slab of its pool, or one that lends it.
static const keel_buffer_t *owner_of(const keel_buffer_t *root)
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
    const keel_buffer_t *owner = owner_of(buffer->root);
    const memory_t *memory = memory_of(owner);
    // relaxed: as bind_find reads it.
    uint64_t at = bound.address - atomic_load_explicit(&owner->address, memory_order_relaxed);
    char *data = atomic_load_explicit(&owner->data, memory_order_relaxed);
    *place = (metal_place_t){memory->buffer, (unsigned long)(memory->inside + at),
                             (unsigned long)bound.length, data + at};
    return NULL;
}
