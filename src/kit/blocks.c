// SPDX-License-Identifier: Apache-2.0
#include "kit/blocks.h"

#include <stddef.h>

#include "base/memory.h"
#include "base/status.h"

enum {
    LEAST = 64 << 10, // each size is twice the one before
    KEPT = 64 << 20,  // bytes that are kept for long
    PIECE_ALIGN = 64,
    PIECE_MOST = RING_SIZE / 8,
};

// Which of the sizes is enough; BLOCKS_SIZES: none.
static uint32_t size_class(uint64_t size)
{
    uint32_t class = 0;
    while (class < BLOCKS_SIZES && size > (uint64_t)LEAST << class) class ++;
    return class;
}

// Under the lock.
static block_t *blocks_pop(blocks_t *blocks, uint32_t class)
{
    block_t *block = blocks->kept[class];
    if (!block) return NULL;
    blocks->kept[class] = block->next;
    blocks->size -= block->size;
    if (blocks->least > blocks->size) blocks->least = blocks->size;
    block->next = NULL;
    block->used = 0;
    return block;
}

static block_t *blocks_pop_largest(blocks_t *blocks)
{
    block_t *block = NULL;
    for (uint32_t class = BLOCKS_SIZES; class > 0 && !block; class --)
        block = blocks_pop(blocks, class - 1);
    return block;
}

// One of at least `*size` bytes; NULL: there is none, and *size is what is to be made.
static block_t *blocks_take(blocks_t *blocks, uint64_t *size)
{
    uint32_t class = size_class(*size);
    if (class == BLOCKS_SIZES) return NULL;
    *size = (uint64_t)LEAST << class;
    lock_enter(&blocks->lock);
    block_t *block = blocks_pop(blocks, class);
    lock_leave(&blocks->lock);
    return block;
}

// The smallest that is kept and has at least `size` bytes; NULL: there is none.
static block_t *blocks_take_larger(blocks_t *blocks, uint64_t size)
{
    block_t *block = NULL;
    lock_enter(&blocks->lock);
    for (uint32_t class = size_class(size); class < BLOCKS_SIZES && !block; class ++)
        block = blocks_pop(blocks, class);
    lock_leave(&blocks->lock);
    return block;
}

// False if none of that size is kept.
static bool blocks_keep(blocks_t *blocks, block_t *block, bool *many)
{
    uint32_t class = size_class(block->size);
    if (class == BLOCKS_SIZES) return false;
    lock_enter(&blocks->lock);
    block->next = blocks->kept[class];
    blocks->kept[class] = block;
    blocks->size += block->size;
    if (blocks->size > KEPT && !blocks->many) *many = blocks->many = true;
    lock_leave(&blocks->lock);
    return true;
}

// One that is to go; NULL: that was the last.
static block_t *blocks_shed(blocks_t *blocks, bool *many)
{
    block_t *block = NULL;
    lock_enter(&blocks->lock);
    if (blocks->least > KEPT) {
        block = blocks_pop_largest(blocks);
        blocks->least -= block->size < blocks->least ? block->size : blocks->least;
    } else {
        blocks->least = blocks->size;
    }
    *many = blocks->many = blocks->size > KEPT;
    lock_leave(&blocks->lock);
    return block;
}

static block_t *blocks_drain(blocks_t *blocks)
{
    lock_enter(&blocks->lock);
    block_t *block = blocks_pop_largest(blocks);
    lock_leave(&blocks->lock);
    return block;
}

static void block_destroy(const blocks_t *blocks, block_t *block)
{
    blocks->ops->destroy(blocks->owner, block->data);
    mem_free(block);
}

keel_status_t blocks_acquire(blocks_t *blocks, uint64_t size, block_t **got)
{
    *got = blocks_take(blocks, &size);
    if (*got) return NULL;
    block_t *block = mem_zalloc(sizeof *block);
    if (!block) return status_no_memory();
    void *data = NULL;
    block->size = size;
    keel_status_t status = blocks->ops->make(blocks->owner, size, &data, &block->address);
    block->data = data;
    if (!status) {
        *got = block;
        return NULL;
    }
    mem_free(block);
    if (keel_status_code(status) == KEEL_RESOURCE_EXHAUSTED)
        *got = blocks_take_larger(blocks, size); // or one that has come back meanwhile
    if (!*got) return status;
    keel_status_release(status);
    return NULL;
}

bool blocks_return(blocks_t *blocks, block_t *list, bool keep)
{
    bool many = false;
    while (list) {
        block_t *block = list;
        list = block->next;
        if (!keep || !blocks_keep(blocks, block, &many)) block_destroy(blocks, block);
    }
    return many;
}

bool blocks_trim(blocks_t *blocks)
{
    bool many;
    for (block_t *block; (block = blocks_shed(blocks, &many));) block_destroy(blocks, block);
    return many;
}

void blocks_destroy(blocks_t *blocks)
{
    for (block_t *block; (block = blocks_drain(blocks));) block_destroy(blocks, block);
}

static uint64_t piece_align(uint64_t at)
{
    return (at + PIECE_ALIGN - 1) & ~(uint64_t)(PIECE_ALIGN - 1);
}

bool block_cut(block_t *block, uint64_t size, uint64_t *offset)
{
    uint64_t start = block ? piece_align(block->used) : 0;
    if (!block || start > block->size || size > block->size - start) return false;
    block->used = start + size;
    *offset = start;
    return true;
}

bool ring_take(ring_t *ring, uint64_t size, uint64_t *offset)
{
    uint64_t head = piece_align(ring->head);
    if (size > PIECE_MOST) return false;
    if (head % RING_SIZE + size > RING_SIZE) head += RING_SIZE - head % RING_SIZE; // in one piece
    // acquire: pairs with ring_return; the bytes are no longer read.
    if (head + size - atomic_load_explicit(&ring->tail, memory_order_acquire) > RING_SIZE)
        return false;
    ring->head = head + size;
    *offset = head % RING_SIZE;
    return true;
}

void ring_return(ring_t *ring, uint64_t head)
{
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    // Two threads may end runs at the same time, in either order. release: pairs with ring_take.
    while (tail < head &&
           !atomic_compare_exchange_weak_explicit(&ring->tail, &tail, head, memory_order_release,
                                                  memory_order_relaxed)) {
    }
}

keel_status_t blocks_piece(blocks_t *blocks, ring_t *ring, block_t **list, uint64_t size,
                           void **data, uint64_t *address)
{
    uint64_t offset = 0;
    if (ring && !ring->owned) KEEL_TRY(blocks_acquire(blocks, RING_SIZE, &ring->owned));
    bool rings = ring && ring_take(ring, size, &offset);
    block_t *block = rings ? ring->owned : *list;
    if (!rings && !block_cut(block, size, &offset)) {
        KEEL_TRY(blocks_acquire(blocks, size, &block));
        block_cut(block, size, &offset);
        block->next = *list;
        *list = block;
    }
    *data = block->data + offset;
    *address = block->address + offset;
    return NULL;
}
