// SPDX-License-Identifier: Apache-2.0
#include "kit/blocks.h"

#include <stddef.h>

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

block_t *blocks_take(blocks_t *blocks, uint64_t *size)
{
    uint32_t class = size_class(*size);
    if (class == BLOCKS_SIZES) return NULL;
    *size = (uint64_t)LEAST << class;
    lock_enter(&blocks->lock);
    block_t *block = blocks_pop(blocks, class);
    lock_leave(&blocks->lock);
    return block;
}

bool blocks_keep(blocks_t *blocks, block_t *block, bool *many)
{
    uint32_t class = size_class(block->size);
    *many = false;
    if (class == BLOCKS_SIZES) return false;
    lock_enter(&blocks->lock);
    block->next = blocks->kept[class];
    blocks->kept[class] = block;
    blocks->size += block->size;
    if (blocks->size > KEPT && !blocks->many) *many = blocks->many = true;
    lock_leave(&blocks->lock);
    return true;
}

block_t *blocks_trim(blocks_t *blocks, bool *many)
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

block_t *blocks_drain(blocks_t *blocks)
{
    lock_enter(&blocks->lock);
    block_t *block = blocks_pop_largest(blocks);
    lock_leave(&blocks->lock);
    return block;
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
    // acquire: pairs with ring_return; nobody looks at the bytes any more.
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
