// SPDX-License-Identifier: Apache-2.0
// Two-level segregated fit: ranges of any size out of the offsets [0, capacity).
//
// The allocator only does arithmetic. It never touches the memory it manages and keeps its records
// outside it, so the memory may be a device heap, a reserved address range or nothing at all.
//
// Everything is counted in granules: a request is rounded up to whole granules, every offset is a
// multiple of the granule. Free ranges are filed by size in classes that differ by at most 1/32 of
// the size; neighbouring free ranges are merged as soon as they meet.
//
// Cost: allocating and freeing take constant time. Only a request that the class search cannot
// serve looks at the single free blocks that might still hold it, so TLSF_NO_SPACE is exact: it
// means that no free block holds the request at its alignment.
//
// Threads: there is no lock inside. The caller serialises all calls on one allocator, except that
// queries may run beside each other.
#ifndef KEEL_SRC_MEMORY_TLSF_H_
#define KEEL_SRC_MEMORY_TLSF_H_

#include <stdbool.h>
#include <stdint.h>

#include <keel/base.h>

enum {
    TLSF_COLUMN_LOG2 = 5,
    TLSF_COLUMNS = 1 << TLSF_COLUMN_LOG2, // size classes for each power of two
    TLSF_ROWS = 64 - TLSF_COLUMN_LOG2 + 1,
    TLSF_CLASSES = TLSF_ROWS * TLSF_COLUMNS,
};

typedef enum tlsf_result_t {
    TLSF_OK = 0,
    TLSF_NO_SPACE,  // no free block holds the request, or the capacity would pass 2^64
    TLSF_NO_RECORD, // the host had no memory for a block record
} tlsf_result_t;

// The book-keeping of one block, free or allocated.
typedef struct tlsf_record_t tlsf_record_t;

// What tlsf_alloc hands out.
typedef struct tlsf_block_t {
    tlsf_record_t *record; // borrowed: names the block in tlsf_free, valid until then
    uint64_t offset;
} tlsf_block_t;

typedef struct tlsf_options_t {
    uint64_t capacity; // a multiple of the granule; may be zero, to grow later
    uint64_t granule;  // a power of two; zero means 64
} tlsf_options_t;

// Embedded by its owner, about 16 KiB. The fields are private to tlsf.c.
typedef struct tlsf_t {
    uint64_t rows;               // bit r: columns[r] has a bit set
    uint32_t columns[TLSF_ROWS]; // bit c: the free list of class r * TLSF_COLUMNS + c has a block
    tlsf_record_t *heads[TLSF_CLASSES]; // free lists
    tlsf_record_t *first;               // the block at offset 0; NULL while the capacity is zero
    tlsf_record_t *last;                // the block that ends at the capacity
    tlsf_record_t *spare;               // records not in use
    uint64_t spare_count;
    struct tlsf_slab_t *slabs; // owned: where the records live
    uint64_t capacity_granules;
    uint64_t used_granules;
    unsigned granule_log2;
} tlsf_t;

// A free range, and where an iteration stands.
typedef struct tlsf_range_t {
    const tlsf_record_t *record;
    uint64_t offset;
    uint64_t size;
} tlsf_range_t;

// Makes the whole of [0, capacity) one free block. On TLSF_NO_RECORD nothing is held, and
// tlsf_finish is allowed but not needed.
tlsf_result_t tlsf_init(tlsf_t *tlsf, const tlsf_options_t *options) KEEL_MUST_USE;

// Releases all records. Blocks still allocated are forgotten; their records become invalid.
void tlsf_finish(tlsf_t *tlsf);

// Allocates `size` bytes at a multiple of `align`, a power of two (alignments up to the granule
// cost nothing). A size of zero gets one granule, so that every block has an offset of its own.
// On failure the allocator is as it was before, and *out is zero.
tlsf_result_t tlsf_alloc(tlsf_t *tlsf, uint64_t size, uint64_t align,
                         tlsf_block_t *out) KEEL_MUST_USE;

// Gives a block back. Cannot fail and needs no memory. Freeing twice is a programming error.
void tlsf_free(tlsf_t *tlsf, tlsf_record_t *record);

// Adds `more` bytes, a multiple of the granule, at the end. On failure nothing has changed.
tlsf_result_t tlsf_grow(tlsf_t *tlsf, uint64_t more) KEEL_MUST_USE;

// Bytes, with allocated blocks counted in whole granules.
uint64_t tlsf_capacity(const tlsf_t *tlsf);
uint64_t tlsf_used_size(const tlsf_t *tlsf);
uint64_t tlsf_free_size(const tlsf_t *tlsf);

// The size of the largest free block, zero when there is none. Looks at every free block of the
// topmost class in use.
uint64_t tlsf_largest(const tlsf_t *tlsf);

// Walks the free blocks by rising offset, to give their pages back for example. Start from a zeroed
// range; false means that there are no more. Passes over the allocated blocks in between. The
// allocator must not change during the walk.
//
//     for (tlsf_range_t range = {0}; tlsf_next_free(tlsf, &range);)
//         discard(range.offset, range.size);
bool tlsf_next_free(const tlsf_t *tlsf, tlsf_range_t *range);

// Whether every invariant holds. Walks all blocks and classes: for tests and assertions.
bool tlsf_check(const tlsf_t *tlsf);

#endif
