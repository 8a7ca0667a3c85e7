// SPDX-License-Identifier: Apache-2.0
// Staging: page-locked memory that both sides see, for bytes on their way. Small pieces come from
// the queue's ring and go back in the stream's order; the rest, and all of runs that do not end in
// that order, has blocks of its own.
#include "base/memory.h"
#include "base/status.h"
#include "drivers/stream/stream.h"

enum {
    RING_SIZE = 1 << 20,
    RING_PIECE = RING_SIZE / 8, // at most
    PIECE_ALIGN = 64,
};

keel_status_t stream_host_alloc(stream_device_t *device, uint64_t size, void **data,
                                uint64_t *address)
{
    KEEL_TRY(device->api->alloc_host(device->vendor, size, data));
    keel_status_t status = device->api->host_address(device->vendor, *data, address);
    if (status) device->api->free_host(device->vendor, *data);
    return status;
}

static keel_status_t block_init(stream_device_t *device, uint64_t size, stream_block_t *block)
{
    void *data = NULL;
    KEEL_TRY(stream_host_alloc(device, size, &data, &block->address));
    block->data = data;
    block->size = size;
    return NULL;
}

keel_status_t stream_block_create(stream_device_t *device, uint64_t size, stream_block_t **made)
{
    stream_block_t *block = mem_zalloc(sizeof *block);
    if (!block) return status_no_memory();
    keel_status_t status = block_init(device, size ? size : 1, block);
    if (status)
        mem_free(block);
    else
        *made = block;
    return status;
}

void stream_blocks_destroy(stream_device_t *device, stream_block_t *blocks)
{
    stream_entered_t entered;
    if (!blocks) return;
    bool vendor = stream_enter(device, &entered);
    while (blocks) {
        stream_block_t *block = blocks;
        blocks = block->next;
        if (vendor) device->api->free_host(device->vendor, block->data);
        mem_free(block);
    }
    if (vendor) stream_leave(&entered);
}

keel_status_t stream_ring_init(stream_device_t *device, stream_ring_t *ring)
{
    return block_init(device, RING_SIZE, &ring->block);
}

void stream_ring_finish(stream_device_t *device, stream_ring_t *ring)
{
    if (ring->block.data) device->api->free_host(device->vendor, ring->block.data);
}

// False if there is no room.
static bool ring_take(stream_ring_t *ring, uint64_t size, uint64_t *offset)
{
    uint64_t head = (ring->head + PIECE_ALIGN - 1) & ~(uint64_t)(PIECE_ALIGN - 1);
    if (head % RING_SIZE + size > RING_SIZE) head += RING_SIZE - head % RING_SIZE; // in one piece
    // acquire: pairs with stream_ring_return; nobody looks at the bytes any more.
    if (head + size - atomic_load_explicit(&ring->tail, memory_order_acquire) > RING_SIZE)
        return false;
    ring->head = head + size;
    *offset = head % RING_SIZE;
    return true;
}

void stream_ring_return(stream_ring_t *ring, uint64_t end)
{
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    // Two threads may end runs at the same time, in either order. release: pairs with ring_take.
    while (tail < end && !atomic_compare_exchange_weak_explicit(
                             &ring->tail, &tail, end, memory_order_release, memory_order_relaxed)) {
    }
}

keel_status_t stream_stage(stream_run_t *run, uint64_t size, void **data, uint64_t *address)
{
    stream_queue_t *queue = stream_queue(run->base.queue);
    uint64_t offset = 0;
    if (!run->phased && size <= RING_PIECE && ring_take(&queue->ring, size, &offset)) {
        run->ring_end = queue->ring.head;
        *data = queue->ring.block.data + offset;
        *address = queue->ring.block.address + offset;
        return NULL;
    }
    stream_block_t *block = NULL;
    KEEL_TRY(stream_block_create(stream_device(queue->base.device), size, &block));
    block->next = run->blocks;
    run->blocks = block;
    *data = block->data;
    *address = block->address;
    return NULL;
}
