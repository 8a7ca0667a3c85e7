// SPDX-License-Identifier: Apache-2.0
// Blocks of the shelf, the buffers that have them, and what a pool counts of both.
#include "kit/shelf.h"

#include "kit/request.h"
#include "trace/event.h"

uint64_t pool_peak(kit_pool_t *pool)
{
    uint64_t used = pool->used + shelf_peak(&pool->shelf) * slab_unit(pool);
    if (used > pool->peak) pool->peak = used;
    return pool->peak;
}

void pool_trace(kit_pool_t *pool)
{
    trace_pool(&pool->traced, pool->base.device->name, pool->base.name, pool_used(pool));
}

void pool_count(kit_pool_t *pool, keel_buffer_t *buffer, uint64_t size)
{
    buffer->capacity = size;
    pool->deallocas += buffer->deallocas;
    pool->changes++;
    if (block_of(buffer)) {
        pool->shelf.held++;
    } else {
        pool->buffers++;
        pool_peak(pool); // of the shelf, so far
        pool->used += size;
        pool_peak(pool);
    }
    if (trace_is_on()) pool_trace(pool);
}

// Under the lock: the buffer has a block of the shelf.
static void block_attach(kit_pool_t *pool, keel_buffer_t *buffer, uint64_t block)
{
    uint64_t address = pool->shelf.ops->address(pool->shelf.shelf, block);
    slab_t *slab = pool->slabs;
    while (address - atomic_load(&slab->memory.address) >= slab->memory.size) slab = slab->next;
    char *data = atomic_load(&slab->memory.data);
    uint64_t offset = address - atomic_load(&slab->memory.address);
    buffer->slab = slab;
    buffer->handle = block;
    memory_attach(buffer, data ? data + offset : NULL, address);
    pool_count(pool, buffer, slab_unit(pool));
}

// Under the lock: it has it no more.
static void block_detach(kit_pool_t *pool, keel_buffer_t *buffer)
{
    pool->deallocas -= buffer->deallocas;
    pool->changes++;
    pool->shelf.held--;
    buffer->capacity = 0;
    memory_detach(buffer);
}

// Under the lock: what the device has made of a buffer. A block that it has elsewhere by now may
// have the same number; then nothing has changed.
static void block_look(kit_pool_t *pool, keel_buffer_t *buffer)
{
    const pool_word_t *word = words_find(&pool->words, buffer);
    // acquire: pairs with the device's, behind the end of what used the block before.
    uint64_t block = atomic_load_explicit(&word->block, memory_order_acquire);
    uint64_t known = block_of(buffer);
    if (block == known) return;
    if (known) block_detach(pool, buffer);
    if (block) block_attach(pool, buffer, block);
    if (trace_is_on()) pool_trace(pool);
}

void pool_learn(kit_pool_t *pool)
{
    const shelf_books_t *books = &pool->shelf;
    if (!books->ops) return;
    for (keel_buffer_t *b; (b = books->ops->changed(books->shelf));) block_look(pool, b);
}

bool block_suits(const kit_pool_t *pool, const keel_buffer_t *buffer)
{
    return pool->shelf.ops && buffer->alignment <= SLAB_ALIGN;
}

bool block_serve(kit_pool_t *pool, keel_buffer_t *buffer)
{
    if (!block_suits(pool, buffer)) return false;
    uint64_t block = pool->shelf.ops->take(pool->shelf.shelf);
    if (!block) return false;
    block_attach(pool, buffer, block);
    pool_word_write(pool, buffer);
    return true;
}

uint64_t block_take_back(kit_pool_t *pool, keel_buffer_t *buffer)
{
    uint64_t block = block_of(buffer);
    pool_word_t *word = words_find(&pool->words, buffer);
    // seq_cst: of host and device, who comes second finds none.
    if (word) block = atomic_exchange(&word->block, 0);
    block_detach(pool, buffer);
    pool_word_write(pool, buffer);
    return block;
}

void pool_shelve(keel_pool_t *pool, const shelf_ops_t *ops, void *shelf)
{
    kit_pool(pool)->shelf = (shelf_books_t){.ops = ops, .shelf = shelf};
}

void *pool_shelf(const keel_pool_t *pool)
{
    return ((const kit_pool_t *)(const void *)pool)->shelf.shelf;
}
