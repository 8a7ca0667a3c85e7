// SPDX-License-Identifier: Apache-2.0
// The blocks of a pool, which host and GPU take and give back beside each other, in bins: a bin has
// those of one size. There is a bit for each, and a count of those that are free. Who wants blocks
// takes them off the counts, all or none, and then finds as many bits: each of them is there before
// it is counted. A pool of blocks has one bin; in others the host makes a bin for each size, and
// cuts blocks for it. Compiled for host and GPU, as protocol.h.
#ifndef KEEL_SRC_DRIVERS_AMDGPU_DEVICE_SHELF_H_
#define KEEL_SRC_DRIVERS_AMDGPU_DEVICE_SHELF_H_

#include "drivers/amdgpu/device/protocol.h"

enum { SHELF_ROW = 64 }; // blocks of a row

// What a record does that finds too few blocks in a bin.
typedef enum shelf_rule_t {
    SHELF_RULE_ASKS,   // the host is to run it: the pool can make more, or fails it
    SHELF_RULE_WAITS,  // it waits on the GPU
    SHELF_RULE_CLOSED, // the host is to run all of them
} shelf_rule_t;

typedef struct shelf_row_t {
    uint64_t free; // bits
    uint64_t base; // the address of the first; the host's, while none of them is free
} shelf_row_t;

typedef struct shelf_bin_t {
    uint64_t free;       // blocks that are there for who wants them
    uint64_t rows;       // shelf_row_t [row_count]
    uint64_t block_size; // bytes; the host's, while no buffer has the bin
    uint32_t first;      // the number of its first block: those of a shelf are counted through
    uint32_t row_count;  // the host's, which may raise it
    uint32_t row;        // where to look first
    uint32_t rule;       // shelf_rule_t: the host's
} shelf_bin_t;

// Of a shelf, what a scheduler keeps.
typedef struct shelf_side_t {
    uint64_t scheduler; // scheduler_t
    uint32_t waiting;   // blocks that its records wait for
    uint32_t unused;
} shelf_side_t;

typedef struct shelf_t {
    uint64_t used;    // bytes of blocks that are not free
    uint64_t most;    // as many have there been
    uint64_t changed; // handle_t: what the GPU has changed, newest first
    uint64_t bins;    // shelf_bin_t [bin_count]
    uint64_t sides;   // shelf_side_t [side_count]
    uint32_t bin_count, side_count;
    uint32_t host; // allocas of the host's wait for blocks
    uint32_t unused;
} shelf_t;

// A buffer of a pool. The first four are pool_word_t's (kit/shelf.h).
typedef struct handle_t {
    uint64_t address; // of its memory; 0: it has none
    uint64_t block;   // its number on the shelf, and 1; 0: the memory is none of the shelf's
    uint64_t lent;    // others have a part of it
    uint64_t bin;     // the number of that which it takes blocks of, and 1; 0: there is none
    uint64_t next;    // handle_t: in shelf_t.changed
    uint64_t user;    // the host's
    uint32_t changed; // it is there
    uint32_t unused;
} handle_t;

// So many blocks of a bin.
typedef struct shelf_need_t {
    uint32_t bin; // its number, and 1
    uint32_t count;
} shelf_need_t;

// That with a number, and 1.
static inline shelf_bin_t *shelf_bin(const shelf_t *shelf, uint64_t number)
{
    return PROTOCOL_AT(shelf_bin_t, shelf->bins) + (number - 1);
}

// Takes so many off the count. False: there are less.
static inline bool bin_count_off(shelf_bin_t *bin, uint64_t count)
{
    uint64_t free = PROTOCOL_LOAD(&bin->free, __ATOMIC_RELAXED);
    do {
        if (free < count) return false;
    } while (!PROTOCOL_CAS(&bin->free, &free, free - count));
    return true;
}

// So many bytes were taken off the counts, for buffers. Each block is then to be had by bin_pick.
static inline void shelf_use(shelf_t *shelf, uint64_t bytes)
{
    uint64_t before = PROTOCOL_ADD(&shelf->used, bytes, __ATOMIC_RELAXED);
    PROTOCOL_MOST(&shelf->most, before + bytes);
}

// One of those that were taken off the count: its number, and 1. Others may be ahead in a row, but
// somewhere there is one.
static inline uint64_t bin_pick(shelf_bin_t *bin)
{
    shelf_row_t *rows = PROTOCOL_AT(shelf_row_t, bin->rows);
    uint32_t at = PROTOCOL_LOAD(&bin->row, __ATOMIC_RELAXED);
    for (;; at = at + 1 < PROTOCOL_LOAD(&bin->row_count, __ATOMIC_RELAXED) ? at + 1 : 0) {
        uint64_t free = PROTOCOL_LOAD(&rows[at].free, __ATOMIC_RELAXED);
        while (free) {
            // acquire: pairs with shelf_put of that very block.
            if (!PROTOCOL_CAS(&rows[at].free, &free, free & (free - 1))) continue;
            PROTOCOL_STORE(&bin->row, at, __ATOMIC_RELAXED);
            return bin->first + (uint64_t)at * SHELF_ROW + (uint64_t)__builtin_ctzll(free) + 1;
        }
    }
}

// The row of a block.
static inline shelf_row_t *bin_row(const shelf_bin_t *bin, uint64_t block)
{
    return PROTOCOL_AT(shelf_row_t, bin->rows) + (block - 1 - bin->first) / SHELF_ROW;
}

static inline uint64_t bin_address(const shelf_bin_t *bin, uint64_t block)
{
    return bin_row(bin, block)->base + (block - 1) % SHELF_ROW * bin->block_size;
}

// Gives a block back. What it was used for is over.
static inline void shelf_put(shelf_t *shelf, shelf_bin_t *bin, uint64_t block)
{
    uint64_t bit = UINT64_C(1) << (block - 1) % SHELF_ROW;
    // Before others can have it, or it would be counted twice. release: who sees it also sees what
    // was said of the buffer.
    PROTOCOL_ADD(&shelf->used, -bin->block_size, __ATOMIC_RELEASE);
    // release: pairs with bin_pick. The bit was not set.
    PROTOCOL_ADD(&bin_row(bin, block)->free, bit, __ATOMIC_RELEASE);
    // relaxed: who sees the count before the bit looks for that until it is there.
    PROTOCOL_ADD(&bin->free, 1, __ATOMIC_RELAXED);
}

// Blocks came back, or the rule has changed: records that wait for blocks look again.
static inline void shelf_wake(const shelf_t *shelf)
{
    const shelf_side_t *sides = PROTOCOL_AT(const shelf_side_t, shelf->sides);
    // seq_cst: pairs with that of a tick whose record waits (record_lack). Either this sees who
    // waits, or that sees the blocks.
    PROTOCOL_FENCE();
    for (uint32_t i = 0; i < shelf->side_count; i++)
        if (PROTOCOL_LOAD(&sides[i].waiting, __ATOMIC_RELAXED))
            tick_ask(PROTOCOL_AT(scheduler_t, sides[i].scheduler));
}

// Has the host look at a buffer before it sees a point that says of the change.
static inline void handle_touch(shelf_t *shelf, handle_t *handle)
{
    // acq_rel: pairs with the host's, which clears it and then looks at the block.
    if (PROTOCOL_SWAP(&handle->changed, 1, __ATOMIC_ACQ_REL)) return;
    uint64_t first = PROTOCOL_LOAD(&shelf->changed, __ATOMIC_RELAXED);
    do {
        PROTOCOL_STORE(&handle->next, first, __ATOMIC_RELAXED);
        // release: pairs with the acquire of who takes the list.
    } while (!PROTOCOL_CAS(&shelf->changed, &first, (uintptr_t)handle));
}

// Gives a buffer one of the blocks that were taken off the count of its bin. False: it has memory,
// and the block is back.
static inline bool handle_grant(shelf_t *shelf, handle_t *handle)
{
    shelf_bin_t *bin = shelf_bin(shelf, handle->bin);
    uint64_t none = 0, block = bin_pick(bin);
    if (!PROTOCOL_CAS(&handle->block, &none, block)) {
        shelf_put(shelf, bin, block);
        return false;
    }
    // relaxed: points order it with all uses.
    PROTOCOL_STORE(&handle->address, bin_address(bin, block), __ATOMIC_RELAXED);
    handle_touch(shelf, handle);
    return true;
}

// Takes the block from a buffer. False: it has none.
static inline bool handle_return(shelf_t *shelf, handle_t *handle)
{
    // acq_rel: who comes second finds none.
    uint64_t block = PROTOCOL_SWAP(&handle->block, 0, __ATOMIC_ACQ_REL);
    if (!block) return false;
    PROTOCOL_STORE(&handle->address, 0, __ATOMIC_RELAXED);
    handle_touch(shelf, handle);
    shelf_put(shelf, shelf_bin(shelf, handle->bin), block);
    return true;
}

#endif
