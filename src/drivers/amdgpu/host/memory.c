// SPDX-License-Identifier: Apache-2.0
// Buffers: memory of HSA's pools, that of the GPU, which the host does not see, and that of the
// host, which both see at the same address. Memory of the application is locked; the GPU sees it
// at another address.
#include "base/memory.h"
#include "base/status.h"
#include "drivers/amdgpu/host/amdgpu.h"
#include "kit/object.h"

static void buffer_attach(keel_buffer_t *buffer, void *data, uint64_t address)
{
    atomic_store(&buffer->data, data);
    atomic_store(&buffer->address, address);
}

keel_status_t amdgpu_pool_allocate(amdgpu_device_t *device, hsa_amd_memory_pool_t pool,
                                   uint64_t size, KEEL_AMDGPU_DEVICE_PTR void **memory)
{
    const hsa_symbols_t *hsa = device->hsa;
    *memory = NULL;
    KEEL_TRY(HSA_CALL(hsa, hsa_amd_memory_pool_allocate, pool, size, 0, memory));
    keel_status_t status = HSA_CALL(hsa, hsa_amd_agents_allow_access, device->node_count,
                                    device->agents, NULL, (void *)*memory);
    if (status) hsa->hsa_amd_memory_pool_free((void *)*memory);
    return status;
}

// What the driver keeps of a pool for later goes back.
static void memory_trim(amdgpu_device_t *device, hsa_amd_memory_pool_t pool)
{
    if (pool.handle == device->shared.handle) {
        blocks_destroy(&device->blocks);
        amdgpu_chunks_trim(&device->chunks);
    }
    for (uint32_t i = 0; i < device->node_count; i++)
        if (pool.handle == device->nodes[i].local.handle)
            amdgpu_chunks_trim(&device->nodes[i].chunks);
}

// If there is not enough, it is tried again when the driver has no more than it uses.
static keel_status_t memory_make(amdgpu_device_t *device, hsa_amd_memory_pool_t pool, uint64_t size,
                                 KEEL_AMDGPU_DEVICE_PTR void **memory)
{
    keel_status_t status = amdgpu_pool_allocate(device, pool, size, memory);
    if (!status) return NULL;
    keel_status_release(status);
    memory_trim(device, pool);
    return amdgpu_pool_allocate(device, pool, size, memory);
}

keel_status_t amdgpu_local_alloc(amdgpu_device_t *device, uint32_t node, uint64_t size,
                                 uint64_t *address)
{
    KEEL_AMDGPU_DEVICE_PTR void *memory;
    KEEL_TRY(amdgpu_chunks_take(&device->nodes[node].chunks, size, &memory));
    atomic_fetch_add(&device->nodes[node].taken, size);
    *address = (uintptr_t)memory;
    return NULL;
}

void amdgpu_local_free(amdgpu_device_t *device, uint32_t node, uint64_t address, uint64_t size)
{
    amdgpu_chunks_give_back(&device->nodes[node].chunks, (void *)(uintptr_t)address);
    atomic_fetch_sub(&device->nodes[node].taken, size);
}

// HSA aligns to pages; for more than that there must be room to move.
keel_status_t amdgpu_buffer_alloc(keel_buffer_t *buffer)
{
    amdgpu_device_t *device = amdgpu_device(buffer->device);
    amdgpu_node_t *node = &device->nodes[buffer->node];
    bool host = buffer->memory & KEEL_MEMORY_HOST_VISIBLE;
    uint64_t spare = buffer->alignment > AMDGPU_PAGE ? buffer->alignment : 0;
    uint64_t size = (buffer->size ? buffer->size : 1) + spare;
    KEEL_AMDGPU_DEVICE_PTR void *memory;
    KEEL_TRY(amdgpu_lost_cause(device));
    if (host && buffer->usage & KEEL_USAGE_EXPORT)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "HSA exports the GPU's own memory alone");
    buffer->memory = device->base.caps.memory_types[host];
    keel_status_t status = memory_make(device, host ? device->shared : node->local, size, &memory);
    if (status)
        return keel_status_wrap(status, "the device has no %llu bytes for a buffer",
                                (unsigned long long)buffer->size);
    uint64_t start = (uintptr_t)memory;
    uint64_t address = spare ? (start + spare - 1) / spare * spare : start;
    buffer->handle = start;
    buffer->capacity = size;
    if (!host) atomic_fetch_add(&node->taken, size);
    buffer_attach(buffer, host ? (void *)(uintptr_t)address : NULL, address);
    return NULL;
}

void amdgpu_buffer_free(keel_buffer_t *buffer)
{
    amdgpu_device_t *device = amdgpu_device(buffer->device);
    if (!object_is_ours(&buffer->device->object)) return;
    device->hsa->hsa_amd_memory_pool_free((void *)(uintptr_t)buffer->handle);
    if (!(buffer->memory & KEEL_MEMORY_HOST_VISIBLE))
        atomic_fetch_sub(&device->nodes[buffer->node].taken, buffer->capacity);
}

static keel_status_t pointer_ask(const hsa_symbols_t *hsa, const void *memory,
                                 hsa_amd_pointer_info_t *info)
{
    *info = (hsa_amd_pointer_info_t){.size = sizeof *info};
    return HSA_CALL(hsa, hsa_amd_pointer_info, memory, info, NULL, NULL, NULL);
}

// All agents may use it then: another device of this driver asks for it no more.
static keel_status_t pages_register(const pages_user_t *user, void *data, uint64_t size,
                                    bool written, bool *already)
{
    const hsa_symbols_t *hsa = user->driver;
    hsa_amd_pointer_info_t info;
    void *address;
    (void)written;
    KEEL_TRY(pointer_ask(hsa, data, &info));
    *already = info.type != HSA_EXT_POINTER_TYPE_UNKNOWN;
    if (*already) return NULL;
    keel_status_t status = HSA_CALL(hsa, hsa_amd_memory_lock, data, size, NULL, 0, &address);
    // HSA has no word for memory that is not there.
    return keel_status_code(status) == KEEL_INTERNAL ? status_as(status, KEEL_INVALID_ARGUMENT)
                                                     : status;
}

static keel_status_t pages_address(const pages_user_t *user, void *data, uint64_t *address)
{
    hsa_amd_pointer_info_t info;
    KEEL_TRY(pointer_ask(user->driver, data, &info));
    if (info.type == HSA_EXT_POINTER_TYPE_UNKNOWN)
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "the memory at %p is not locked", data);
    *address = (uint64_t)(uintptr_t)info.agentBaseAddress +
               (uint64_t)((char *)data - (char *)info.hostBaseAddress);
    return NULL;
}

static void pages_unregister(const pages_user_t *user, void *data)
{
    ((const hsa_symbols_t *)user->driver)->hsa_amd_memory_unlock(data);
}

static void vendor_close(const pages_user_t *user)
{
    (void)user; // HSA keeps no device open
}

const pages_ops_t amdgpu_pages_ops = {pages_register, pages_address, pages_unregister,
                                      vendor_close};

// An import of nothing has an address of its own all the same.
static keel_status_t import_host(amdgpu_device_t *device, keel_buffer_t *buffer)
{
    void *data = buffer->external.handle.host;
    uint64_t address = (uintptr_t)buffer;
    buffer->memory = device->base.caps.memory_types[1];
    if (buffer->external.size)
        KEEL_TRY(pages_lock(&device->pages, data, buffer->external.size,
                            buffer->access & KEEL_ACCESS_WRITE, &address));
    buffer_attach(buffer, data ? data : buffer, address);
    return NULL;
}

// Whose address it is: all of the span must be of one allocation.
static keel_status_t import_address(amdgpu_device_t *device, keel_buffer_t *buffer)
{
    uint64_t address = buffer->external.handle.device, size = buffer->external.size;
    hsa_amd_pointer_info_t info;
    buffer->memory = device->base.caps.memory_types[0];
    if (!size) {
        buffer_attach(buffer, NULL, address ? address : AMDGPU_ALIGNMENT);
        return NULL;
    }
    KEEL_TRY(pointer_ask(device->hsa, (void *)(uintptr_t)address, &info));
    if (info.type == HSA_EXT_POINTER_TYPE_UNKNOWN)
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT,
                          "external->handle.device is 0x%llx: no memory of HSA's is there; take an "
                          "address that it gave, of memory that is not freed",
                          (unsigned long long)address);
    uint64_t inside = address - (uint64_t)(uintptr_t)info.agentBaseAddress;
    if (inside > info.sizeInBytes || size > info.sizeInBytes - inside)
        return KEEL_ERROR(KEEL_OUT_OF_RANGE,
                          "external->size is %llu bytes, which from external->handle.device 0x%llx "
                          "on reach beyond the memory that starts at %p; all must be of one "
                          "allocation",
                          (unsigned long long)size, (unsigned long long)address,
                          info.agentBaseAddress);
    buffer_attach(buffer, NULL, address);
    return NULL;
}

keel_status_t amdgpu_buffer_import(keel_buffer_t *buffer)
{
    amdgpu_device_t *device = amdgpu_device(buffer->device);
    KEEL_TRY(amdgpu_lost_cause(device));
    switch (buffer->external.kind) {
    case KEEL_EXTERNAL_HOST: return import_host(device, buffer);
    case KEEL_EXTERNAL_DEVICE: return import_address(device, buffer);
    case KEEL_EXTERNAL_FD: return amdgpu_import_descriptor(buffer);
    case KEEL_EXTERNAL_NATIVE: break; // the library refuses it
    }
    return NULL;
}

void amdgpu_buffer_forget(keel_buffer_t *buffer)
{
    const keel_external_buffer_t *external = &buffer->external;
    amdgpu_device_t *device = amdgpu_device(buffer->device);
    bool ours = object_is_ours(&buffer->device->object);
    if (ours && external->kind == KEEL_EXTERNAL_FD) amdgpu_descriptor_forget(buffer);
    if (ours && external->kind == KEEL_EXTERNAL_HOST && external->size)
        pages_unlock(&device->pages, external->handle.host, external->size);
    if (external->release) external->release(external->user);
}

// Memory for bytes on their way, which both see at one address.
static keel_status_t block_make(void *owner, uint64_t size, void **data, uint64_t *address)
{
    amdgpu_device_t *device = owner;
    keel_status_t status = amdgpu_chunks_take(&device->chunks, size, data);
    if (amdgpu_is_no_memory(status)) {
        keel_status_release(status);
        memory_trim(device, device->shared); // also blocks of other sizes
        status = amdgpu_chunks_take(&device->chunks, size, data);
    }
    KEEL_TRY(status);
    *address = (uint64_t)(uintptr_t)*data;
    return NULL;
}

static void block_destroy(void *owner, void *data)
{
    amdgpu_chunks_give_back(&((amdgpu_device_t *)owner)->chunks, data);
}

const blocks_ops_t amdgpu_blocks_ops = {block_make, block_destroy};
