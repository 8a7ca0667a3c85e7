// SPDX-License-Identifier: Apache-2.0
// A pool of equal blocks over the offsets [0, capacity).
//
// Only arithmetic: the memory managed is never touched, one bit of host memory per block says
// whether it is free. Above these bits lie levels of summaries, each 64 times smaller, so the free
// block with the lowest offset is found by reading one word per level: two levels serve 4096
// blocks, four serve 16 million. Low offsets first keeps the top of the range untouched.
//
// Threads: there is no lock inside; the caller serialises all calls on one pool.
#ifndef KEEL_SRC_MEMORY_BLOCK_H_
#define KEEL_SRC_MEMORY_BLOCK_H_

#include <stdbool.h>
#include <stdint.h>

#include <keel/base.h>

enum { BLOCK_POOL_LEVELS = 11 }; // 64^11 passes 2^64

// Embedded by its owner. The fields are private to block.c.
typedef struct block_pool_t {
    uint64_t block_size;
    uint64_t count;
    uint64_t used;
    unsigned depth;                      // levels in use
    uint64_t *levels[BLOCK_POOL_LEVELS]; // [0]: bit set = block free; above: word below not zero
    uint64_t *words;                     // owned: the memory of all levels
} block_pool_t;

// Divides `capacity` into blocks of `block_size` bytes, which is not zero; a remainder at the end
// stays unused. False when the host has no memory for the bits: then nothing is held, and
// block_pool_finish is allowed but not needed.
bool block_pool_init(block_pool_t *pool, uint64_t capacity, uint64_t block_size) KEEL_MUST_USE;

// Releases the bits. Blocks still acquired are forgotten.
void block_pool_finish(block_pool_t *pool);

// Takes the free block with the lowest offset. False, and *out_offset zero, when all are taken.
bool block_pool_acquire(block_pool_t *pool, uint64_t *out_offset) KEEL_MUST_USE;

// Gives back a block by its offset. An offset that is no block's start, and a block that is already
// free, are programming errors.
void block_pool_return(block_pool_t *pool, uint64_t offset);

// How many blocks the pool has, and how many of them are taken.
uint64_t block_pool_count(const block_pool_t *pool);
uint64_t block_pool_used(const block_pool_t *pool);

#endif
