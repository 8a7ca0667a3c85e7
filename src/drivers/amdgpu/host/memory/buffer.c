// SPDX-License-Identifier: Apache-2.0
// Buffers: memory of HSA's pools, that of the GPU, which the host does not see, and that of the
// host, which both see at the same address; and imports.
#include "base/status.h"
#include "drivers/amdgpu/host/memory/memory.h"
#include "kit/object.h"

static void buffer_attach(keel_buffer_t *buffer, void *data, uint64_t address)
{
    atomic_store(&buffer->data, data);
    atomic_store(&buffer->address, address);
}

// If there is not enough, it is tried again when the driver has no more than it uses.
static keel_status_t memory_make(amdgpu_device_t *device, hsa_amd_memory_pool_t pool, uint64_t size,
                                 KEEL_AMDGPU_DEVICE_PTR void **memory)
{
    keel_status_t status = amdgpu_pool_allocate(device, pool, size, memory);
    if (!status) return NULL;
    keel_status_release(status);
    amdgpu_memory_trim(device, pool);
    return amdgpu_pool_allocate(device, pool, size, memory);
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
    KEEL_TRY(amdgpu_pointer_ask(device->hsa, (void *)(uintptr_t)address, &info));
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
