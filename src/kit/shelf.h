// SPDX-License-Identifier: Apache-2.0
// Blocks of a pool that a device takes and gives back by itself, beside the host. The driver keeps
// them where both see them; the pool (pool.c) makes slabs of blocks for it, takes blocks for
// allocas that the host runs, and keeps the books.
//
// What the device has done, the host learns later: before it shows a point that says of it, the
// driver calls pool_catch_up, and buffers get the memory that they have by then.
#ifndef KEEL_SRC_KIT_SHELF_H_
#define KEEL_SRC_KIT_SHELF_H_

#include <keel/driver/driver.h>

#include "kit/slab.h"

// What a device knows of a buffer of a pool, in memory of the driver's.
typedef struct pool_word_t {
    _Atomic uint64_t address; // of its memory, between alloca and dealloca, else 0
    _Atomic uint64_t block; // its number on the shelf, and 1; 0: the memory is none of the shelf's
    _Atomic uint64_t lent;  // buffers that have a part of it
} pool_word_t;

// What becomes of an alloca that the device finds no block for.
typedef enum shelf_lack_t {
    SHELF_ASKS,   // the host is to run it: the pool can grow, or fails it
    SHELF_WAITS,  // it waits for blocks
    SHELF_CLOSED, // the host is to run all allocas and deallocas, also where there are blocks
} shelf_lack_t;

// The driver's. One thread at a time, under the lock of the pool; none of them may block. A block
// is meant by its number, and 1.
typedef struct shelf_ops_t {
    // Adds so many free blocks, from an address on. False: there is no room for them.
    bool (*add)(void *shelf, uint64_t address, uint64_t count);
    // Takes them away again. False: some are not free, and all stay.
    bool (*remove)(void *shelf, uint64_t address, uint64_t count);
    uint64_t (*take)(void *shelf); // 0: none is free
    void (*put)(void *shelf, uint64_t block);
    uint64_t (*address)(const void *shelf, uint64_t block);
    uint64_t (*free)(const void *shelf);    // how many are
    uint64_t (*least)(void *shelf);         // how few there were since the last call
    uint64_t (*waiting)(const void *shelf); // allocas of the device that wait
    // `host`: allocas that the host runs wait. From then on the device has pool_catch_up called,
    // with `retry`, when a block came back. The next look at the shelf sees what came before.
    void (*set)(void *shelf, shelf_lack_t lack, bool host);
    // The next buffer whose word the device may have changed; NULL: there is none left.
    keel_buffer_t *(*changed)(void *shelf);
    void (*destroy)(void *shelf); // no lock held
} shelf_ops_t;

// Of a pool, under its lock.
typedef struct shelf_books_t {
    const shelf_ops_t *ops; // NULL: there is none
    void *shelf;            // owned
    uint64_t total;         // blocks that it has
    uint64_t held;          // of these, by buffers, as far as the host knows
    uint32_t plain;         // slabs whose blocks are not on it
    shelf_lack_t lack;      // as the driver was told
    bool host;              // likewise
} shelf_books_t;

// Blocks that are not free.
static inline uint64_t shelf_taken(const shelf_books_t *b)
{
    return b->ops ? b->total - b->ops->free(b->shelf) : 0;
}

static inline uint64_t shelf_waiting(const shelf_books_t *b)
{
    return b->ops ? b->ops->waiting(b->shelf) : 0;
}

// Whether the device is about to give a block to a buffer, or has just taken it.
static inline bool shelf_moves(const shelf_books_t *b)
{
    return shelf_taken(b) != b->held;
}

// The most that were not, since the last call.
static inline uint64_t shelf_peak(const shelf_books_t *b)
{
    return b->ops ? b->total - b->ops->least(b->shelf) : 0;
}

// A slab that was made, of blocks of that size: on the shelf, unless it may not, or has no room.
static inline void shelf_add(shelf_books_t *b, slab_t *slab, uint64_t block_size, bool may)
{
    uint64_t count = slab->memory.size / (block_size ? block_size : 1);
    if (!b->ops) return;
    slab->shared = may && b->ops->add(b->shelf, atomic_load(&slab->memory.address), count);
    if (slab->shared)
        b->total += count;
    else
        b->plain++;
}

// Whether nothing is cut from a slab, which is about to go: then it is on the shelf no more.
static inline bool shelf_leave(shelf_books_t *b, slab_t *slab, uint64_t block_size)
{
    uint64_t count = slab->memory.size / (block_size ? block_size : 1);
    if (slab->used) return false;
    if (slab->shared && !b->ops->remove(b->shelf, atomic_load(&slab->memory.address), count))
        return false;
    if (slab->shared)
        b->total -= count;
    else
        b->plain -= b->ops != NULL;
    return true;
}

static inline void shelf_tell(shelf_books_t *b, shelf_lack_t lack, bool host)
{
    if (!b->ops || (b->lack == lack && b->host == host)) return;
    b->lack = lack;
    b->host = host;
    b->ops->set(b->shelf, lack, host);
}

#endif
