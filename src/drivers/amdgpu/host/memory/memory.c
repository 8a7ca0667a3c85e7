// SPDX-License-Identifier: Apache-2.0
// Memory for the driver itself: of the host, for what is on its way between host and GPU, and of
// each GPU's own. Both are cut from chunks.
#include "drivers/amdgpu/host/memory/memory.h"

#include "base/status.h"

void amdgpu_memory_trim(amdgpu_device_t *device, hsa_amd_memory_pool_t pool)
{
    if (pool.handle == device->shared.handle) {
        blocks_destroy(&device->blocks);
        amdgpu_chunks_trim(&device->chunks);
    }
    for (uint32_t i = 0; i < device->node_count; i++)
        if (pool.handle == device->nodes[i].local.handle)
            amdgpu_chunks_trim(&device->nodes[i].chunks);
}

// Memory for bytes on their way, which both see at one address.
static keel_status_t block_make(void *owner, uint64_t size, void **data, uint64_t *address)
{
    amdgpu_device_t *device = owner;
    keel_status_t status = amdgpu_chunks_take(&device->chunks, size, data);
    if (amdgpu_is_no_memory(status)) {
        keel_status_release(status);
        amdgpu_memory_trim(device, device->shared); // also blocks of other sizes
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

static const blocks_ops_t blocks_ops = {block_make, block_destroy};

// What shares memory of the host is cut from blocks once more; programs have blocks for themselves.
static void chunks_start(amdgpu_device_t *device)
{
    enum { KIB = 1 << 10 };
    amdgpu_chunks_init(&device->chunks, device, device->shared, 64 * KIB, 512 * KIB);
    for (uint32_t i = 0; i < device->node_count; i++)
        amdgpu_chunks_init(&device->nodes[i].chunks, device, device->nodes[i].local, 4 * KIB,
                           64 * KIB);
}

keel_status_t amdgpu_memory_start(amdgpu_device_t *device)
{
    KEEL_TRY(amdgpu_agent_shared(device->hsa, device->cpu, &device->shared));
    device->blocks = (blocks_t){.ops = &blocks_ops, .owner = device};
    chunks_start(device);
    return NULL;
}

void amdgpu_memory_close(amdgpu_device_t *device)
{
    blocks_destroy(&device->blocks);
    amdgpu_chunks_close(&device->chunks);
    for (uint32_t i = 0; i < device->node_count; i++) amdgpu_chunks_close(&device->nodes[i].chunks);
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
