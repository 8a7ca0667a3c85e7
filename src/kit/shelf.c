// SPDX-License-Identifier: Apache-2.0
// Blocks of the shelf, the buffers that have them, and what a pool counts of both.
#include "kit/shelf.h"

#include "base/memory.h"
#include "kit/request.h"
#include "trace/event.h"

uint64_t pool_peak(kit_pool_t *pool)
{
    uint64_t used = pool->used + shelf_peak(&pool->shelf);
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
        pool->shelf.buffers++;
        pool->shelf.bytes += size;
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
    buffer->handle = block_handle(block);
    memory_attach(buffer, data ? data + offset : NULL, address);
    pool_count(pool, buffer, pool_size_of(pool, buffer));
}

// Under the lock: it has it no more.
static void block_detach(kit_pool_t *pool, keel_buffer_t *buffer)
{
    pool->deallocas -= buffer->deallocas;
    pool->changes++;
    pool->shelf.buffers--;
    pool->shelf.bytes -= buffer->capacity;
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

// Under the lock: what becomes of allocas that find no block in a bin. They wait for one if it has
// all that the limit allows: no other buffer has memory that they could get.
static void bin_update(kit_pool_t *pool, uint32_t number)
{
    shelf_books_t *books = &pool->shelf;
    shelf_bin_books_t *bin = &books->bins[number];
    bool full =
        bin->cuts ? pool_limit(pool) / bin->size <= bin->total : slabs_left(pool) < slab_unit(pool);
    bool waits = full && pool->base.options.full == KEEL_POOL_WAITS;
    shelf_lack_t lack = books->plain ? SHELF_CLOSED : waits ? SHELF_WAITS : SHELF_ASKS;
    if (bin->lack == lack) return;
    bin->lack = lack;
    books->ops->rule(books->shelf, number, lack);
}

void shelf_update(kit_pool_t *pool)
{
    shelf_books_t *books = &pool->shelf;
    for (uint32_t i = 0; i < books->bin_count; i++)
        if (books->bins[i].size) bin_update(pool, i);
    shelf_tell(books, pool->requests != NULL);
}

// Under the lock: gives the slabs back what is free in a bin. Whether there was something.
static bool bin_empty(kit_pool_t *pool, uint32_t number)
{
    shelf_books_t *books = &pool->shelf;
    shelf_bin_books_t *bin = &books->bins[number];
    uint64_t before = bin->total;
    if (!bin->cuts || !bin->total) return false;
    for (uint32_t cut; (cut = books->ops->drop(books->shelf, number));) {
        shelf_cut_t *at = &bin->cuts[cut - 1];
        slab_take_back(at->slab, &(keel_pool_piece_t){.handle = at->handle, .capacity = bin->size});
        *at = (shelf_cut_t){0};
        bin->total--;
        books->cut -= bin->size;
    }
    bin_update(pool, number);
    return bin->total != before;
}

bool bins_empty(kit_pool_t *pool)
{
    bool some = false;
    for (uint32_t i = 0; i < pool->shelf.bin_count; i++) some |= bin_empty(pool, i);
    return some;
}

// Under the lock: makes a bin one for such buffers. False: there is no memory.
static bool bin_make(kit_pool_t *pool, uint32_t number, const keel_buffer_t *buffer)
{
    shelf_bin_books_t *bin = &pool->shelf.bins[number];
    if (!bin->cuts) bin->cuts = mem_zalloc(SHELF_CUTS * sizeof *bin->cuts);
    if (!bin->cuts) return false;
    bin->size = pool_size_of(pool, buffer);
    bin->alignment = buffer->alignment;
    pool->shelf.ops->size(pool->shelf.shelf, number, bin->size);
    bin_update(pool, number);
    return true;
}

// Under the lock: the bin for such buffers, or else one that none has, and which is free then.
static shelf_bin_books_t *bin_find(kit_pool_t *pool, const keel_buffer_t *buffer)
{
    shelf_bin_books_t *bins = pool->shelf.bins;
    uint64_t size = pool_size_of(pool, buffer);
    uint32_t count = pool->shelf.bin_count, spare = count;
    for (uint32_t i = 0; i < count; i++) {
        if (bins[i].size == size && bins[i].alignment == buffer->alignment) return &bins[i];
        bool better = spare == count || (bins[spare].size && !bins[i].size);
        if (!bins[i].words && better) spare = i;
    }
    if (spare == count) return NULL;
    bin_empty(pool, spare); // of all its blocks: no buffer has one
    return bin_make(pool, spare, buffer) ? &bins[spare] : NULL;
}

uint64_t bin_choose(kit_pool_t *pool, const keel_buffer_t *buffer)
{
    shelf_books_t *books = &pool->shelf;
    if (!books->ops) return 0;
    if (pool->base.options.block_size) return buffer->alignment <= SLAB_ALIGN;
    shelf_bin_books_t *bin = bin_find(pool, buffer);
    return bin ? (uint64_t)(bin - books->bins) + 1 : 0;
}

// Under the lock: the same for a buffer that may have a word.
static uint64_t bin_of(kit_pool_t *pool, const keel_buffer_t *buffer)
{
    if (!pool->shelf.ops) return 0;
    if (pool->base.options.block_size) return buffer->alignment <= SLAB_ALIGN;
    const pool_word_t *word = words_find(&pool->words, buffer);
    return word ? word->bin : 0;
}

bool block_serve(kit_pool_t *pool, keel_buffer_t *buffer)
{
    uint64_t bin = bin_of(pool, buffer);
    uint64_t block = bin ? pool->shelf.ops->take(pool->shelf.shelf, (uint32_t)bin - 1) : 0;
    if (!block) return false;
    block_attach(pool, buffer, block);
    pool_word_write(pool, buffer);
    return true;
}

void block_enlist(kit_pool_t *pool, keel_buffer_t *buffer, uint64_t size)
{
    shelf_books_t *books = &pool->shelf;
    uint64_t number = bin_of(pool, buffer);
    shelf_bin_books_t *bin = number ? &books->bins[number - 1] : NULL;
    uint32_t cut = 0;
    if (!bin || !bin->cuts || bin->total == SHELF_CUTS) return;
    while (bin->cuts[cut].slab) cut++;
    bin->cuts[cut] = (shelf_cut_t){buffer->slab, buffer->handle};
    buffer->handle = block_handle(
        books->ops->enlist(books->shelf, (uint32_t)number - 1, cut, atomic_load(&buffer->address)));
    bin->total++;
    books->cut += size;
    bin_update(pool, (uint32_t)number - 1);
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

bool pool_shelve(keel_pool_t *pool, const shelf_ops_t *ops, void *shelf, uint64_t block_size)
{
    uint32_t count = block_size ? 1 : SHELF_BINS;
    shelf_bin_books_t *bins = mem_zalloc(count * sizeof *bins);
    if (!bins) return false;
    bins->size = block_size;
    kit_pool(pool)->shelf =
        (shelf_books_t){.ops = ops, .shelf = shelf, .bins = bins, .bin_count = count};
    return true;
}

void *pool_shelf(const keel_pool_t *pool)
{
    return ((const kit_pool_t *)(const void *)pool)->shelf.shelf;
}

void shelf_finish(shelf_books_t *books)
{
    if (books->ops) books->ops->destroy(books->shelf);
    for (uint32_t i = 0; i < books->bin_count; i++) mem_free(books->bins[i].cuts);
    mem_free(books->bins);
}
