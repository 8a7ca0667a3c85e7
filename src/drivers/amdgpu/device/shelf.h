// SPDX-License-Identifier: Apache-2.0
// The blocks of a pool, which host and GPU take and give back beside each other: a bit for each,
// and a count of those that are free. Who wants blocks takes them off the count, all or none, and
// then finds as many bits: each of them is there before it is counted. Compiled for host and GPU,
// as protocol.h.
#ifndef KEEL_SRC_DRIVERS_AMDGPU_DEVICE_SHELF_H_
#define KEEL_SRC_DRIVERS_AMDGPU_DEVICE_SHELF_H_

#include "drivers/amdgpu/device/protocol.h"

enum { SHELF_ROW = 64 }; // blocks of a row

// What a record does that finds too few blocks.
typedef enum shelf_rule_t {
    SHELF_RULE_ASKS,   // the host is to run it: the pool can grow, or fails it
    SHELF_RULE_WAITS,  // it waits on the GPU
    SHELF_RULE_CLOSED, // the host is to run all of them
} shelf_rule_t;

typedef struct shelf_row_t {
    uint64_t free; // bits
    uint64_t base; // the address of the first; the host's, while none of them is free
} shelf_row_t;

// Of a shelf, what a scheduler keeps.
typedef struct shelf_side_t {
    uint64_t scheduler; // scheduler_t
    uint32_t waiting;   // blocks that its records wait for
    uint32_t unused;
} shelf_side_t;

typedef struct shelf_t {
    uint64_t free;       // blocks that are there for who wants them
    uint64_t least;      // as few have there been
    uint64_t changed;    // handle_t: what the GPU has changed, newest first
    uint64_t rows;       // shelf_row_t [row_count]
    uint64_t sides;      // shelf_side_t [side_count]
    uint64_t block_size; // bytes
    uint32_t row_count, side_count;
    uint32_t row;  // where to look first
    uint32_t rule; // shelf_rule_t: the host's
    uint32_t host; // allocas of the host's wait for blocks
    uint32_t unused;
} shelf_t;

// A buffer of a pool. The first three are pool_word_t's (kit/shelf.h).
typedef struct handle_t {
    uint64_t address; // of its memory; 0: it has none
    uint64_t block;   // its number on the shelf, and 1; 0: the memory is none of the shelf's
    uint64_t lent;    // others have a part of it
    uint64_t next;    // handle_t: in shelf_t.changed
    uint64_t user;    // the host's
    uint32_t changed; // it is there
    uint32_t unused;
} handle_t;

// Takes so many off the count; *left is what remains. False: there are less.
static inline bool shelf_count_off(shelf_t *shelf, uint64_t count, uint64_t *left)
{
    uint64_t free = PROTOCOL_LOAD(&shelf->free, __ATOMIC_RELAXED);
    do {
        if (free < count) return false;
    } while (!PROTOCOL_CAS(&shelf->free, &free, free - count));
    *left = free - count;
    return true;
}

// The same for who uses them: each is then to be had by shelf_pick.
static inline bool shelf_reserve(shelf_t *shelf, uint64_t count)
{
    uint64_t left;
    if (!shelf_count_off(shelf, count, &left)) return false;
    PROTOCOL_LEAST(&shelf->least, left);
    return true;
}

// One of those that were taken off the count: its number, and 1. Others may be ahead in a row, but
// somewhere there is one.
static inline uint64_t shelf_pick(shelf_t *shelf)
{
    shelf_row_t *rows = PROTOCOL_AT(shelf_row_t, shelf->rows);
    uint32_t count = PROTOCOL_LOAD(&shelf->row_count, __ATOMIC_RELAXED);
    uint32_t at = PROTOCOL_LOAD(&shelf->row, __ATOMIC_RELAXED);
    for (;; at = at + 1 < count ? at + 1 : 0) {
        uint64_t free = PROTOCOL_LOAD(&rows[at].free, __ATOMIC_RELAXED);
        while (free) {
            // acquire: pairs with shelf_put of that very block.
            if (!PROTOCOL_CAS(&rows[at].free, &free, free & (free - 1))) continue;
            PROTOCOL_STORE(&shelf->row, at, __ATOMIC_RELAXED);
            return (uint64_t)at * SHELF_ROW + (uint64_t)__builtin_ctzll(free) + 1;
        }
    }
}

static inline uint64_t shelf_address(const shelf_t *shelf, uint64_t block)
{
    const shelf_row_t *rows = PROTOCOL_AT(const shelf_row_t, shelf->rows);
    return rows[(block - 1) / SHELF_ROW].base + (block - 1) % SHELF_ROW * shelf->block_size;
}

// Gives a block back. What it was used for is over.
static inline void shelf_put(shelf_t *shelf, uint64_t block)
{
    shelf_row_t *rows = PROTOCOL_AT(shelf_row_t, shelf->rows);
    uint64_t bit = UINT64_C(1) << (block - 1) % SHELF_ROW;
    // release: pairs with shelf_pick. The bit was not set.
    PROTOCOL_ADD(&rows[(block - 1) / SHELF_ROW].free, bit, __ATOMIC_RELEASE);
    // relaxed: who sees the count before the bit looks for that until it is there.
    PROTOCOL_ADD(&shelf->free, 1, __ATOMIC_RELAXED);
}

// Blocks came back, or the rule has changed: records that wait for blocks look again. A fence comes
// before it, seq_cst, which pairs with that of a tick whose record waits. Either this sees who
// waits, or that sees the blocks.
static inline void shelf_wake(const shelf_t *shelf)
{
    const shelf_side_t *sides = PROTOCOL_AT(const shelf_side_t, shelf->sides);
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

// Gives a buffer one of the blocks that were reserved. False: it has memory, and the block is back.
static inline bool handle_grant(shelf_t *shelf, handle_t *handle)
{
    uint64_t none = 0, block = shelf_pick(shelf);
    if (!PROTOCOL_CAS(&handle->block, &none, block)) {
        shelf_put(shelf, block);
        return false;
    }
    // relaxed: points order it with all uses.
    PROTOCOL_STORE(&handle->address, shelf_address(shelf, block), __ATOMIC_RELAXED);
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
    shelf_put(shelf, block);
    return true;
}

#endif
