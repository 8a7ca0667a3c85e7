// SPDX-License-Identifier: Apache-2.0
// Requests: allocas that ask a pool for memory, from the first attempt until they are served or
// fail; and the state of a pool, which its other half (pool.c) shares. All of it under the pool's
// lock, unless said otherwise.
#ifndef KEEL_SRC_KIT_REQUEST_H_
#define KEEL_SRC_KIT_REQUEST_H_

#include "base/lock.h"
#include "kit/pool.h"
#include "kit/slab.h"
#include "kit/word.h"

typedef struct kit_pool_t {
    keel_pool_t base;
    const pool_words_t *words_ops; // NULL: its buffers have no words
    lock_t lock; // for everything below, and for `deallocas`, `kept` and `lender` of its buffers
    words_t words;
    shelf_books_t shelf;
    slab_t *slabs;
    uint64_t used, peak, buffers, waiting;  // the first three without blocks of the shelf
    uint64_t reserved;                      // by slabs, those being got included
    uint64_t deallocas;                     // on their way, of buffers that have memory
    uint64_t changes;                       // of those, and of the requests, so far
    pool_behind_t *behind;                  // finds who waits for whom; NULL: nothing does
    uint32_t making;                        // slabs on their way
    void (*reclaim)(keel_buffer_t *buffer); // the books only: takes memory back; NULL: slabs
    void *driver;
    keel_pool_piece_t *pieces; // on their way, and to be had in their order, newest first
    keel_pool_request_t *requests, **requests_last; // allocas that wait, oldest first
    uint64_t requests_least;                        // what the smallest of them wants, or less
    uint32_t suspects; // requests that may come to wait for their own submission
    uint32_t traced;   // its counter in a trace; 0: none so far
} kit_pool_t;

static inline kit_pool_t *kit_pool(keel_pool_t *pool)
{
    return (kit_pool_t *)(void *)pool;
}

// The handle of a buffer that has a block of the shelf. Others of slabs are even: records of
// src/memory, and offsets of blocks.
static inline uint64_t block_handle(uint64_t block)
{
    return block << 1 | 1;
}

// The number of the buffer's block on the shelf, and 1.
static inline uint64_t block_of(const keel_buffer_t *buffer)
{
    return buffer->capacity && buffer->slab && buffer->handle & 1 ? buffer->handle >> 1 : 0;
}

// Under the lock: the buffer got memory, or has it no more. The device is told where it is.
static inline void pool_word_write(const kit_pool_t *pool, const keel_buffer_t *buffer)
{
    pool_word_t *word = pool->words_ops ? words_find(&pool->words, buffer) : NULL;
    if (!word) return;
    // relaxed: a point orders them with the device's look, as all uses of the memory.
    uint64_t address = atomic_load_explicit(&buffer->address, memory_order_relaxed);
    atomic_store_explicit(&word->block, block_of(buffer), memory_order_relaxed);
    atomic_store_explicit(&word->lent, atomic_load(&buffer->lent), memory_order_relaxed);
    // Last, and with release: where it is 0 the device may write the block.
    atomic_store_explicit(&word->address, address, memory_order_release);
}

static inline uint64_t slab_unit(const kit_pool_t *pool)
{
    return pool->base.options.block_size ? pool->base.options.block_size : SLAB_GRANULE;
}

static inline uint64_t granules(uint64_t size)
{
    return (size + SLAB_GRANULE - 1) / SLAB_GRANULE * SLAB_GRANULE;
}

// That of the options, rounded up.
static inline uint64_t pool_limit(const kit_pool_t *pool)
{
    uint64_t limit = pool->base.options.limit;
    return limit > UINT64_MAX - SLAB_GRANULE ? limit : granules(limit);
}

// What of it slabs have left.
static inline uint64_t slabs_left(const kit_pool_t *pool)
{
    uint64_t limit = pool_limit(pool);
    return limit > pool->reserved ? limit - pool->reserved : 0;
}

// What a buffer counts for.
static inline uint64_t pool_size_of(const kit_pool_t *pool, const keel_buffer_t *buffer)
{
    uint64_t block = pool->base.options.block_size;
    return block ? block : granules(buffer->size ? buffer->size : 1);
}

// What buffers hold.
static inline uint64_t pool_used(const kit_pool_t *pool)
{
    return pool->used + shelf_used(&pool->shelf);
}

// Under the lock: whether the buffer has memory, or was granted some.
static inline bool buffer_has(const keel_buffer_t *buffer)
{
    return buffer->capacity != 0;
}

static inline void piece_unlink(keel_pool_piece_t *piece)
{
    *piece->link = piece->next;
    if (piece->next) piece->next->link = piece->link;
    piece->link = NULL;
}

// What the submission of a request keeps of the pool until the request is served.
typedef struct kept_t {
    uint64_t bytes;     // of buffers that it gave memory before, or takes it from later
    uint64_t deallocas; // that it runs later
} kept_t;

// shelf.c
// Buffers get the blocks that the device has given them, and lose those that it has taken.
void pool_learn(kit_pool_t *pool);
// The bin of which a buffer that gets a word takes blocks: its number, and 1. 0: there is none.
uint64_t bin_choose(kit_pool_t *pool, const keel_buffer_t *buffer);
// Gives a buffer a block of the shelf. False: none is free, or suits.
bool block_serve(kit_pool_t *pool, keel_buffer_t *buffer);
// Memory was cut for a buffer: makes it a block of its bin, if there is one, and room there.
void block_enlist(kit_pool_t *pool, keel_buffer_t *buffer, uint64_t size);
// Gives the slabs back what is free in bins that were cut. Whether there was something.
bool bins_empty(kit_pool_t *pool);
// Takes it from the buffer. 0: the device was faster, and has it by now.
uint64_t block_take_back(kit_pool_t *pool, keel_buffer_t *buffer);
// The most that buffers have held so far. To be called before it changes what there is.
uint64_t pool_peak(kit_pool_t *pool);
// `used` has changed, and a trace is on.
void pool_trace(kit_pool_t *pool) KEEL_COLD __attribute__((noinline));
// Counts a buffer that got `size` bytes.
void pool_count(kit_pool_t *pool, keel_buffer_t *buffer, uint64_t size);

// Takes the lock, and knows what the device has done until then.
static inline void pool_enter(kit_pool_t *pool)
{
    lock_enter(&pool->lock);
    if (pool->shelf.ops) pool_learn(pool);
}

// Takes the slab off the list, into another.
void slab_unlink(kit_pool_t *pool, slab_t **at, slab_t **slabs);
// Gives a buffer memory that is there. False: there is none for it.
bool pool_serve(kit_pool_t *pool, keel_buffer_t *buffer, const void *order);
// Leaves the lock for the while: gets a slab with room for such a buffer. False with the device's
// error, or without one if the limit is in the way.
bool pool_grow(kit_pool_t *pool, const keel_buffer_t *buffer, keel_status_t *refusal);
// Deallocas of the request's own stage and before are not kept: they run without it.
kept_t request_keeps(const kit_pool_t *pool, const keel_pool_request_t *request);
// Whether memory may come back without the request, or is just being got from the system by another
// thread.
bool pool_may_get_more(const kit_pool_t *pool, kept_t kept);
bool request_is_cancelled(const keel_pool_request_t *request); // its submission; needs no lock
// Why a request that was not served never will be; NULL: it may be. `refusal` is what the device
// said to a slab for it, or NULL.
keel_status_t request_doom(const kit_pool_t *pool, const keel_pool_request_t *request,
                           keel_status_t refusal);
// Serves what can be served now, oldest first, and fails what never will be; puts both onto the
// list `ended`, for pool_tell. `refusal` as above.
void pool_retry(kit_pool_t *pool, keel_status_t refusal, keel_pool_request_t **ended);
// May leave the lock for a while: the same, and gets slabs for those that the limit has room for.
void pool_retry_growing(kit_pool_t *pool, keel_pool_request_t **ended);
void request_init(keel_pool_request_t *request, keel_buffer_t *buffer);
// Puts it at the end of the list of those that wait.
void request_wait(kit_pool_t *pool, keel_pool_request_t *request);
// Whether requests may wait for deallocas that wait for them: then pool_look is due, without the
// lock.
bool pool_is_suspect(const kit_pool_t *pool);
// When slabs or requests have changed: what becomes of allocas that the device runs, and whether it
// tells of blocks that come back.
void shelf_update(kit_pool_t *pool);
// Without the lock: tells those that have ended.
void pool_tell(keel_pool_request_t *ended);

#endif
