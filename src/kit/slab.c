// SPDX-License-Identifier: Apache-2.0
#include "kit/slab.h"

#include "base/memory.h"
#include "base/status.h"
#include "kit/device.h"

static void slab_destroy(slab_t *slab)
{
    if (slab->blocks)
        block_pool_finish(&slab->map.block_pool);
    else
        tlsf_finish(&slab->map.tlsf);
    keel_device_t *device = slab->memory.device;
    device->ops->buffer_free(&slab->memory);
    atomic_fetch_sub(&device->used, slab->memory.capacity);
    mem_free(slab);
}

void slabs_destroy(slab_t *slabs)
{
    while (slabs) {
        slab_t *slab = slabs;
        slabs = slab->next;
        slab_destroy(slab);
    }
}

static keel_status_t slab_init_map(slab_t *slab, uint64_t block_size)
{
    if (block_size) {
        slab->blocks = true;
        return block_pool_init(&slab->map.block_pool, slab->memory.size, block_size)
                   ? NULL
                   : status_no_memory();
    }
    tlsf_options_t options = {.capacity = slab->memory.size, .granule = SLAB_GRANULE};
    return tlsf_init(&slab->map.tlsf, &options) == TLSF_OK ? NULL : status_no_memory();
}

keel_status_t slab_create(const keel_pool_t *pool, uint64_t size, uint64_t align, slab_t **made)
{
    slab_t *slab = mem_zalloc(sizeof *slab);
    if (!slab) return status_no_memory();
    const keel_pool_options_t *options = &pool->options;
    keel_buffer_t *memory = &slab->memory;
    memory->device = pool->device;
    memory->root = memory;
    memory->size = size;
    memory->memory = options->memory;
    memory->usage = options->usage;
    memory->access = KEEL_ACCESS_ALL;
    memory->node = options->node;
    memory->alignment = align > SLAB_ALIGN ? align : SLAB_ALIGN; // within, offsets are aligned
    keel_status_t status = memory->device->ops->buffer_alloc(memory);
    if (status) {
        mem_free(slab);
        return status;
    }
    uint64_t used = atomic_fetch_add(&memory->device->used, memory->capacity) + memory->capacity;
    device_peak(memory->device, used);
    status = slab_init_map(slab, options->block_size);
    if (status) {
        slab_destroy(slab);
        return status;
    }
    *made = slab;
    return NULL;
}

bool slab_cut(slab_t *slab, keel_buffer_t *buffer, uint64_t size)
{
    uint64_t offset;
    if (buffer->alignment > slab->memory.alignment) return false;
    if (slab->blocks) {
        if (!block_pool_acquire(&slab->map.block_pool, &offset)) return false;
        buffer->handle = offset;
    } else {
        tlsf_block_t block;
        if (tlsf_alloc(&slab->map.tlsf, size, buffer->alignment, &block) != TLSF_OK) return false;
        buffer->handle = (uint64_t)(uintptr_t)block.record;
        offset = block.offset;
    }
    char *data = atomic_load(&slab->memory.data);
    buffer->slab = slab;
    memory_attach(buffer, data ? data + offset : NULL, atomic_load(&slab->memory.address) + offset);
    slab->used += size;
    return true;
}

void slab_take_back(slab_t *slab, const keel_pool_piece_t *piece)
{
    if (slab->blocks)
        block_pool_return(&slab->map.block_pool, piece->handle);
    else
        tlsf_free(&slab->map.tlsf, (tlsf_record_t *)(uintptr_t)piece->handle);
    slab->used -= piece->capacity;
}
