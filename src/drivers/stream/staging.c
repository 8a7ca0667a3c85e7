// SPDX-License-Identifier: Apache-2.0
// Staging: page-locked memory that both sides see, for bytes on their way. Small pieces come from
// the queue's ring and go back in the stream's order; the rest, and all of runs that do not end in
// that order, has blocks of its own. Page-locking takes long, and unlocking may wait for the whole
// device, so blocks have a few sizes and are kept for the next who needs one.
#include "base/memory.h"
#include "base/status.h"
#include "drivers/stream/stream.h"

enum {
    RING_SIZE = 1 << 20,
    RING_PIECE = RING_SIZE / 8, // at most
    PIECE_ALIGN = 64,
    BLOCK_LEAST = 64 << 10, // each size is twice the one before
    BLOCKS_KEPT = 64 << 20, // bytes
};

keel_status_t stream_host_alloc(stream_device_t *device, uint64_t size, void **data,
                                uint64_t *address)
{
    KEEL_TRY(device->api->alloc_host(device->vendor, size, data));
    keel_status_t status = device->api->host_address(device->vendor, *data, address);
    if (status) device->api->free_host(device->vendor, *data);
    return status;
}

// Which of the sizes is enough; STREAM_BLOCKS: none.
static uint32_t block_class(uint64_t size)
{
    uint32_t class = 0;
    while (class < STREAM_BLOCKS && size > (uint64_t)BLOCK_LEAST << class) class ++;
    return class;
}

static stream_block_t *block_reuse(stream_device_t *device, uint32_t class)
{
    lock_enter(&device->block_lock);
    stream_block_t *block = device->blocks[class];
    if (block) {
        device->blocks[class] = block->next;
        device->blocks_size -= block->size;
        block->next = NULL;
    }
    lock_leave(&device->block_lock);
    return block;
}

static bool block_keep(stream_device_t *device, stream_block_t *block)
{
    uint32_t class = block_class(block->size);
    if (class == STREAM_BLOCKS) return false;
    lock_enter(&device->block_lock);
    bool fits = device->blocks_size + block->size <= BLOCKS_KEPT;
    if (fits) {
        block->next = device->blocks[class];
        device->blocks[class] = block;
        device->blocks_size += block->size;
    }
    lock_leave(&device->block_lock);
    return fits;
}

static void block_destroy(stream_device_t *device, void *what, bool vendor)
{
    stream_block_t *block = what;
    if (vendor) device->api->free_host(device->vendor, block->data);
    mem_free(block);
}

keel_status_t stream_block_acquire(stream_device_t *device, uint64_t size, stream_block_t **got)
{
    uint32_t class = block_class(size);
    bool common = class < STREAM_BLOCKS;
    *got = common ? block_reuse(device, class) : NULL;
    if (*got) return NULL;
    stream_block_t *block = mem_zalloc(sizeof *block);
    if (!block) return status_no_memory();
    void *data = NULL;
    block->size = common ? (uint64_t)BLOCK_LEAST << class : size;
    keel_status_t status = stream_host_alloc(device, block->size, &data, &block->address);
    block->data = data;
    if (status)
        mem_free(block);
    else
        *got = block;
    return status;
}

void stream_blocks_return(stream_device_t *device, stream_block_t *blocks)
{
    bool ours = stream_device_is_ours(device);
    while (blocks) {
        stream_block_t *block = blocks;
        blocks = block->next;
        if (!ours || !block_keep(device, block)) stream_free_later(device, block_destroy, block);
    }
}

void stream_blocks_destroy(stream_device_t *device)
{
    for (int i = 0; i < STREAM_BLOCKS; i++) {
        for (stream_block_t *block; (block = device->blocks[i]);) {
            device->blocks[i] = block->next;
            stream_free(device, block_destroy, block);
        }
    }
}

// Most queues never stage anything, and page-locked memory is dear to make.
static keel_status_t ring_open(stream_device_t *device, stream_ring_t *ring)
{
    if (ring->owned) return NULL;
    KEEL_TRY(stream_block_acquire(device, RING_SIZE, &ring->owned));
    ring->block = *ring->owned;
    return NULL;
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
    stream_device_t *device = stream_device(queue->base.device);
    bool small = !run->phased && size <= RING_PIECE;
    uint64_t offset = 0;
    if (small) KEEL_TRY(ring_open(device, &queue->ring));
    if (small && ring_take(&queue->ring, size, &offset)) {
        run->ring_end = queue->ring.head;
        *data = queue->ring.block.data + offset;
        *address = queue->ring.block.address + offset;
        return NULL;
    }
    stream_block_t *block = NULL;
    KEEL_TRY(stream_block_acquire(device, size, &block));
    block->next = run->blocks;
    run->blocks = block;
    *data = block->data;
    *address = block->address;
    return NULL;
}
