// SPDX-License-Identifier: Apache-2.0
#include "memory/block.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/memory.h"

enum { WORD_BITS = 64 };

static uint64_t words_for(uint64_t bits)
{
    return bits / WORD_BITS + (bits % WORD_BITS != 0);
}

static uint64_t bit_of(uint64_t index)
{
    return UINT64_C(1) << index % WORD_BITS;
}

static void level_fill(uint64_t *words, uint64_t bits)
{
    memset(words, 0xff, bits / WORD_BITS * sizeof *words);
    if (bits % WORD_BITS) words[bits / WORD_BITS] = bit_of(bits) - 1;
}

bool block_pool_init(block_pool_t *pool, uint64_t capacity, uint64_t block_size)
{
    assert(block_size);
    *pool = (block_pool_t){.block_size = block_size, .count = capacity / block_size};
    if (!pool->count) return true;

    uint64_t bits = pool->count, total = 0;
    do {
        bits = words_for(bits);
        total += bits;
    } while (bits > 1);
    uint64_t *words = pool->words = mem_alloc(total * sizeof *words);
    if (!words) {
        *pool = (block_pool_t){0};
        return false;
    }
    bits = pool->count;
    do {
        level_fill(words, bits);
        pool->levels[pool->depth++] = words;
        bits = words_for(bits);
        words += bits;
    } while (bits > 1);
    return true;
}

void block_pool_finish(block_pool_t *pool)
{
    mem_free(pool->words);
    *pool = (block_pool_t){0};
}

bool block_pool_acquire(block_pool_t *pool, uint64_t *out_offset)
{
    *out_offset = 0;
    if (pool->used == pool->count) return false;
    uint64_t index = 0;
    for (unsigned level = pool->depth; level-- > 0;) {
        uint64_t word = pool->levels[level][index];
        index = index * WORD_BITS + (uint64_t)__builtin_ctzll(word);
    }
    *out_offset = index * pool->block_size;
    pool->used++;
    for (unsigned level = 0; level < pool->depth; level++, index /= WORD_BITS) {
        uint64_t *word = &pool->levels[level][index / WORD_BITS];
        *word &= ~bit_of(index);
        if (*word) break;
    }
    return true;
}

void block_pool_return(block_pool_t *pool, uint64_t offset)
{
    uint64_t index = offset / pool->block_size;
    assert(index < pool->count && index * pool->block_size == offset);
    assert(!(pool->levels[0][index / WORD_BITS] & bit_of(index)) && "block returned twice");
    pool->used--;
    for (unsigned level = 0; level < pool->depth; level++, index /= WORD_BITS) {
        uint64_t *word = &pool->levels[level][index / WORD_BITS], before = *word;
        *word |= bit_of(index);
        if (before) break;
    }
}

uint64_t block_pool_count(const block_pool_t *pool)
{
    return pool->count;
}

uint64_t block_pool_used(const block_pool_t *pool)
{
    return pool->used;
}
