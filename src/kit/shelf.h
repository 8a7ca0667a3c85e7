// SPDX-License-Identifier: Apache-2.0
// Blocks of a pool that a device takes and gives back by itself, beside the host. The driver keeps
// them where both see them, in bins: a bin has those of one size. The pool (pool.c) makes blocks
// for it, takes blocks for allocas that the host runs, and keeps the books.
//
// A pool of blocks has one bin, and gives it whole slabs. In others each buffer that the device
// knows by a word has the bin of its size. What the host cuts for such a buffer becomes a block of
// the bin, and stays one when it comes back. So the device finds memory of sizes that were used
// before. The host takes what is free there when it needs the memory for another size. Bytes of
// such bins and of other buffers are together not more than the limit: so the device need not look.
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
    uint64_t bin;           // that it takes blocks of: its number, and 1; 0: none
} pool_word_t;

enum {
    SHELF_BINS = 32, // of a pool without a block size
    SHELF_CUTS = 64, // blocks of each
};

// What becomes of an alloca that the device finds no block for.
typedef enum shelf_lack_t {
    SHELF_ASKS,   // the host is to run it: the pool can make more, or fails it
    SHELF_WAITS,  // it waits for blocks
    SHELF_CLOSED, // the host is to run all allocas and deallocas, also where there are blocks
} shelf_lack_t;

// The driver's. One thread at a time, under the lock of the pool; none of them may block. A block
// is meant by its number, and 1.
typedef struct shelf_ops_t {
    // Adds so many free blocks, from an address on, to the only bin. False: there is no room.
    bool (*add)(void *shelf, uint64_t address, uint64_t count);
    // Takes them away again. False: some are not free, and all stay.
    bool (*remove)(void *shelf, uint64_t address, uint64_t count);
    // Makes a bin, which has no blocks and no buffers, one for blocks of that size.
    void (*size)(void *shelf, uint32_t bin, uint64_t size);
    // Adds a block that a buffer has, as that with number `cut` of its bin; and its number.
    uint64_t (*enlist)(void *shelf, uint32_t bin, uint32_t cut, uint64_t address);
    // Takes a free one away again: which one, and 1. 0: none is free.
    uint32_t (*drop)(void *shelf, uint32_t bin);
    uint64_t (*take)(void *shelf, uint32_t bin); // 0: none is free
    void (*put)(void *shelf, uint64_t block);
    uint64_t (*address)(const void *shelf, uint64_t block);
    uint64_t (*used)(const void *shelf);    // bytes of those that are not free
    uint64_t (*most)(void *shelf);          // the same at its highest since the last call
    uint64_t (*waiting)(const void *shelf); // allocas of the device that wait
    void (*rule)(void *shelf, uint32_t bin, shelf_lack_t lack);
    // `host`: allocas that the host runs wait. From then on the device has pool_catch_up called,
    // with `retry`, when a block came back. The next look at the shelf sees what came before.
    void (*set)(void *shelf, bool host);
    // The next buffer whose word the device may have changed; NULL: there is none left.
    keel_buffer_t *(*changed)(void *shelf);
    void (*destroy)(void *shelf); // no lock held
} shelf_ops_t;

// Where a block was cut; as a piece of the slab.
typedef struct shelf_cut_t {
    slab_t *slab; // NULL: it is none
    uint64_t handle;
} shelf_cut_t;

typedef struct shelf_bin_books_t {
    uint64_t size, alignment; // of its blocks; 0: it is not in use
    uint64_t total;           // blocks that it has
    uint32_t words;           // of buffers that take blocks of it
    shelf_lack_t lack;        // as the driver was told
    shelf_cut_t *cuts;        // owned: [SHELF_CUTS]; NULL: in a pool of blocks
} shelf_bin_books_t;

// Of a pool, under its lock.
typedef struct shelf_books_t {
    const shelf_ops_t *ops;  // NULL: there is none
    void *shelf;             // owned
    shelf_bin_books_t *bins; // owned: [bin_count]
    uint32_t bin_count;
    uint32_t plain;          // slabs of blocks that are not on it
    uint64_t cut;            // bytes that were cut for bins
    uint64_t buffers, bytes; // that have blocks, and of these, as far as the host knows
    bool host;               // as the driver was told
} shelf_books_t;

// Bytes of blocks that are not free.
static inline uint64_t shelf_used(const shelf_books_t *b)
{
    return b->ops ? b->ops->used(b->shelf) : 0;
}

static inline uint64_t shelf_waiting(const shelf_books_t *b)
{
    return b->ops ? b->ops->waiting(b->shelf) : 0;
}

// Whether the device is about to give a block to a buffer, or has just taken it.
static inline bool shelf_moves(const shelf_books_t *b)
{
    return shelf_used(b) != b->bytes;
}

// The most that it was since the last call.
static inline uint64_t shelf_peak(const shelf_books_t *b)
{
    return b->ops ? b->ops->most(b->shelf) : 0;
}

// A slab that was made: blocks go on the shelf, unless they may not, or there is no room.
static inline void shelf_add(shelf_books_t *b, slab_t *slab, uint64_t block_size, bool may)
{
    if (!b->ops || !slab->blocks) return;
    uint64_t count = slab->memory.size / block_size;
    slab->shared = may && b->ops->add(b->shelf, atomic_load(&slab->memory.address), count);
    if (slab->shared)
        b->bins->total += count;
    else
        b->plain++;
}

// Whether nothing is cut from a slab, which is about to go: then it is on the shelf no more.
static inline bool shelf_leave(shelf_books_t *b, slab_t *slab, uint64_t block_size)
{
    if (slab->used) return false;
    if (!b->ops || !slab->blocks) return true;
    uint64_t count = slab->memory.size / block_size;
    if (slab->shared && !b->ops->remove(b->shelf, atomic_load(&slab->memory.address), count))
        return false;
    if (slab->shared)
        b->bins->total -= count;
    else
        b->plain--;
    return true;
}

void shelf_finish(shelf_books_t *books);

static inline void shelf_tell(shelf_books_t *b, bool host)
{
    if (!b->ops || b->host == host) return;
    b->host = host;
    b->ops->set(b->shelf, host);
}

#endif
