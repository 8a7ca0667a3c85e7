// SPDX-License-Identifier: Apache-2.0
// Staging: page-locked memory that both sides see, for bytes on their way. Small pieces come from
// the queue's ring and go back in the stream's order; the rest, and all of runs that do not end in
// that order, come from blocks of the run's own. Page-locking takes long, and unlocking may wait
// for the whole device, so blocks have a few sizes and are kept for the next who needs one.
#include "base/memory.h"
#include "base/status.h"
#include "drivers/stream/stream.h"

keel_status_t stream_host_alloc(stream_device_t *device, uint64_t size, void **data,
                                uint64_t *address)
{
    KEEL_TRY(device->api->alloc_host(device->vendor, size, data));
    keel_status_t status = device->api->host_address(device->vendor, *data, address);
    if (status) device->api->free_host(device->vendor, *data);
    return status;
}

static void block_destroy(stream_device_t *device, block_t *block)
{
    stream_free(device, true, device->api->free_host, block->data);
    mem_free(block);
}

static void blocks_tidy(stream_device_t *device);

static void blocks_trimmed(void *owner, chore_t *chore)
{
    stream_device_t *device = owner;
    bool many;
    for (block_t *block; (block = blocks_trim(&device->blocks, &many));)
        block_destroy(device, block);
    stream_chore_end(device, false);
    if (many) blocks_tidy(device);
}

// Has some given back when the vendor would not wait; until then they can be used again.
static void blocks_tidy(stream_device_t *device)
{
    chore_t *chore = mem_zalloc(sizeof *chore);
    if (!chore) return;
    *chore = (chore_t){.run = blocks_trimmed, .timed = true};
    stream_chore_add(device, chore);
}

keel_status_t stream_block_acquire(stream_device_t *device, uint64_t size, block_t **got)
{
    *got = blocks_take(&device->blocks, &size);
    if (*got) return NULL;
    block_t *block = mem_zalloc(sizeof *block);
    if (!block) return status_no_memory();
    void *data = NULL;
    block->size = size;
    keel_status_t status = stream_host_alloc(device, size, &data, &block->address);
    block->data = data;
    if (status)
        mem_free(block);
    else
        *got = block;
    return status;
}

void stream_blocks_return(stream_device_t *device, block_t *blocks)
{
    bool ours = stream_device_is_ours(device), many = false;
    while (blocks) {
        block_t *block = blocks;
        blocks = block->next;
        if (!ours || !blocks_keep(&device->blocks, block, &many)) block_destroy(device, block);
        if (many) blocks_tidy(device);
    }
}

void stream_blocks_destroy(stream_device_t *device)
{
    for (block_t *block; (block = blocks_drain(&device->blocks));) block_destroy(device, block);
}

keel_status_t stream_stage(stream_run_t *run, uint64_t size, void **data, uint64_t *address)
{
    stream_queue_t *queue = stream_queue(run->base.queue);
    stream_device_t *device = stream_device(queue->base.device);
    ring_t *ring = &queue->ring;
    uint64_t offset = 0;
    // Most queues never stage anything.
    if (!run->phased && !ring->owned)
        KEEL_TRY(stream_block_acquire(device, RING_SIZE, &ring->owned));
    block_t *block = ring->owned;
    if (!run->phased && ring_take(ring, size, &offset)) {
        run->ring_end = ring->head;
    } else if (!block_cut(block = run->blocks, size, &offset)) {
        KEEL_TRY(stream_block_acquire(device, size, &block));
        block_cut(block, size, &offset);
        block->next = run->blocks;
        run->blocks = block;
    }
    *data = block->data + offset;
    *address = block->address + offset;
    return NULL;
}
