// SPDX-License-Identifier: Apache-2.0
// Invariants, all verified by tlsf_check:
//  1. The blocks tile [0, capacity) and are linked in address order from first to last.
//  2. No two neighbouring blocks are both free.
//  3. A free block is in the free list of its class, any other record in none.
//  4. A bit of a bitmap is set exactly when what it stands for is not empty.
// A block that splits or merges keeps the record of its low end, so `first` never changes.
#include "memory/tlsf.h"

#include <assert.h>
#include <stddef.h>

#include "base/memory.h"

enum { SLAB_RECORDS = 64, DEFAULT_GRANULE = 64 };

typedef enum record_state_t { RECORD_SPARE, RECORD_FREE, RECORD_USED } record_state_t;

struct tlsf_record_t {
    uint64_t offset; // in granules, as is size
    uint64_t size;
    tlsf_record_t *before; // neighbours in address order
    tlsf_record_t *after;
    tlsf_record_t *prev; // neighbours in the free list
    tlsf_record_t *next; // also links the spare records
    record_state_t state;
};

typedef struct tlsf_slab_t {
    struct tlsf_slab_t *next;
    tlsf_record_t records[SLAB_RECORDS];
} tlsf_slab_t;

static bool is_free(const tlsf_record_t *r)
{
    return r && r->state == RECORD_FREE;
}

// Sizes below 2 * TLSF_COLUMNS have a class each. Above, the leading bit and the TLSF_COLUMN_LOG2
// bits after it choose the class; the bits dropped are `shift` many.
static unsigned class_shift(uint64_t size)
{
    return 63 - TLSF_COLUMN_LOG2 - (unsigned)__builtin_clzll(size | TLSF_COLUMNS);
}

// The class in which a free block of this size is filed.
static unsigned class_of(uint64_t size)
{
    unsigned shift = class_shift(size);
    return (shift << TLSF_COLUMN_LOG2) + (unsigned)(size >> shift);
}

// The lowest class in which every block holds this size; TLSF_CLASSES when there is none.
static unsigned class_holding(uint64_t size)
{
    uint64_t dropped = size & ((UINT64_C(1) << class_shift(size)) - 1);
    return class_of(size) + (dropped != 0);
}

// The lowest class from `from` upwards with a free block in it; TLSF_CLASSES when there is none.
static unsigned class_next(const tlsf_t *tlsf, unsigned from)
{
    unsigned row = from / TLSF_COLUMNS;
    if (row == TLSF_ROWS) return TLSF_CLASSES;
    uint32_t columns = tlsf->columns[row] & (UINT32_MAX << from % TLSF_COLUMNS);
    if (!columns) {
        uint64_t rows = tlsf->rows & (~UINT64_C(1) << row);
        if (!rows) return TLSF_CLASSES;
        row = (unsigned)__builtin_ctzll(rows);
        columns = tlsf->columns[row];
    }
    return row * TLSF_COLUMNS + (unsigned)__builtin_ctz(columns);
}

static void list_insert(tlsf_t *tlsf, tlsf_record_t *r)
{
    unsigned class = class_of(r->size), row = class / TLSF_COLUMNS;
    r->state = RECORD_FREE;
    r->prev = NULL;
    r->next = tlsf->heads[class];
    if (r->next) r->next->prev = r;
    tlsf->heads[class] = r;
    tlsf->columns[row] |= UINT32_C(1) << class % TLSF_COLUMNS;
    tlsf->rows |= UINT64_C(1) << row;
}

static void list_remove(tlsf_t *tlsf, tlsf_record_t *r)
{
    if (r->next) r->next->prev = r->prev;
    if (r->prev) {
        r->prev->next = r->next;
        return;
    }
    unsigned class = class_of(r->size), row = class / TLSF_COLUMNS;
    tlsf->heads[class] = r->next;
    if (r->next) return;
    tlsf->columns[row] &= ~(UINT32_C(1) << class % TLSF_COLUMNS);
    if (!tlsf->columns[row]) tlsf->rows &= ~(UINT64_C(1) << row);
}

static void record_return(tlsf_t *tlsf, tlsf_record_t *r)
{
    r->state = RECORD_SPARE;
    r->next = tlsf->spare;
    tlsf->spare = r;
    tlsf->spare_count++;
}

static tlsf_record_t *record_acquire(tlsf_t *tlsf)
{
    tlsf_record_t *r = tlsf->spare;
    tlsf->spare = r->next;
    tlsf->spare_count--;
    return r;
}

// Makes sure that record_acquire can be called `count` times, so that a change once begun cannot
// fail half way.
static bool record_reserve(tlsf_t *tlsf, unsigned count)
{
    if (tlsf->spare_count >= count) return true;
    tlsf_slab_t *slab = mem_alloc(sizeof *slab);
    if (!slab) return false;
    slab->next = tlsf->slabs;
    tlsf->slabs = slab;
    for (unsigned i = SLAB_RECORDS; i-- > 0;) record_return(tlsf, &slab->records[i]);
    return true;
}

// Puts a new block, filed nowhere yet, after `before` (NULL: first of all).
static tlsf_record_t *block_append(tlsf_t *tlsf, tlsf_record_t *before, uint64_t size)
{
    tlsf_record_t *r = record_acquire(tlsf);
    r->offset = before ? before->offset + before->size : 0;
    r->size = size;
    r->before = before;
    r->after = before ? before->after : NULL;
    *(before ? &before->after : &tlsf->first) = r;
    *(r->after ? &r->after->before : &tlsf->last) = r;
    return r;
}

// Cuts a block that is in no free list down to `size` and returns the block of what lies above.
static tlsf_record_t *block_split(tlsf_t *tlsf, tlsf_record_t *r, uint64_t size)
{
    uint64_t rest = r->size - size;
    r->size = size;
    return block_append(tlsf, r, rest);
}

// Extends a block over its upper neighbour. Neither is in a free list.
static void block_absorb_after(tlsf_t *tlsf, tlsf_record_t *r)
{
    tlsf_record_t *gone = r->after;
    r->size += gone->size;
    r->after = gone->after;
    *(r->after ? &r->after->before : &tlsf->last) = r;
    record_return(tlsf, gone);
}

// What must be skipped at the start of a block to reach the alignment.
static uint64_t block_pad(const tlsf_record_t *r, uint64_t align)
{
    return -r->offset & (align - 1);
}

static bool block_holds(const tlsf_record_t *r, uint64_t size, uint64_t align)
{
    uint64_t pad = block_pad(r, align);
    return pad <= r->size && r->size - pad >= size;
}

// First the block freed last among those of about this size: it often fits exactly, and reusing it
// keeps larger blocks whole. Then the class in which any block will do, wherever it starts. Last,
// every block that might hold the request: the only block of an empty allocator, for example, when
// all of it is asked for.
static tlsf_record_t *block_find(const tlsf_t *tlsf, uint64_t size, uint64_t align)
{
    unsigned class = class_of(size);
    tlsf_record_t *r = tlsf->heads[class];
    if (r && block_holds(r, size, align)) return r;

    uint64_t padded = size <= UINT64_MAX - (align - 1) ? size + (align - 1) : UINT64_MAX;
    unsigned any = class_next(tlsf, class_holding(padded));
    if (any < TLSF_CLASSES) return tlsf->heads[any];

    for (class = class_next(tlsf, class); class < TLSF_CLASSES;
         class = class_next(tlsf, class + 1)) {
        for (r = tlsf->heads[class]; r; r = r->next) {
            if (block_holds(r, size, align)) return r;
        }
    }
    return NULL;
}

static uint64_t granules_of(const tlsf_t *tlsf, uint64_t size)
{
    uint64_t part = size & ((UINT64_C(1) << tlsf->granule_log2) - 1);
    return (size >> tlsf->granule_log2) + (part || !size);
}

tlsf_result_t tlsf_init(tlsf_t *tlsf, const tlsf_options_t *options)
{
    uint64_t granule = options->granule ? options->granule : DEFAULT_GRANULE;
    assert(__builtin_popcountll(granule) == 1);
    *tlsf = (tlsf_t){.granule_log2 = (unsigned)__builtin_ctzll(granule)};
    return tlsf_grow(tlsf, options->capacity);
}

void tlsf_finish(tlsf_t *tlsf)
{
    assert(tlsf_check(tlsf));
    while (tlsf->slabs) {
        tlsf_slab_t *slab = tlsf->slabs;
        tlsf->slabs = slab->next;
        mem_free(slab);
    }
    *tlsf = (tlsf_t){0};
}

tlsf_result_t tlsf_alloc(tlsf_t *tlsf, uint64_t size, uint64_t align, tlsf_block_t *out)
{
    assert(__builtin_popcountll(align) == 1);
    *out = (tlsf_block_t){0};
    size = granules_of(tlsf, size);
    align = granules_of(tlsf, align);
    tlsf_record_t *r = block_find(tlsf, size, align);
    if (!r) return TLSF_NO_SPACE;

    uint64_t pad = block_pad(r, align), rest = r->size - pad - size;
    if (!record_reserve(tlsf, (pad ? 1u : 0u) + (rest ? 1u : 0u))) return TLSF_NO_RECORD;
    list_remove(tlsf, r);
    if (pad) {
        tlsf_record_t *below = r;
        r = block_split(tlsf, below, pad);
        list_insert(tlsf, below);
    }
    if (rest) list_insert(tlsf, block_split(tlsf, r, size));
    r->state = RECORD_USED;
    tlsf->used_granules += size;
    *out = (tlsf_block_t){.record = r, .offset = r->offset << tlsf->granule_log2};
    return TLSF_OK;
}

void tlsf_free(tlsf_t *tlsf, tlsf_record_t *r)
{
    assert(r->state == RECORD_USED && "block freed twice");
    tlsf->used_granules -= r->size;
    if (is_free(r->before)) {
        r = r->before;
        list_remove(tlsf, r);
        block_absorb_after(tlsf, r);
    }
    if (is_free(r->after)) {
        list_remove(tlsf, r->after);
        block_absorb_after(tlsf, r);
    }
    list_insert(tlsf, r);
}

tlsf_result_t tlsf_grow(tlsf_t *tlsf, uint64_t more)
{
    uint64_t granules = more >> tlsf->granule_log2;
    assert(granules << tlsf->granule_log2 == more);
    if (more > UINT64_MAX - tlsf_capacity(tlsf)) return TLSF_NO_SPACE;
    if (!granules) return TLSF_OK;

    tlsf_record_t *r = tlsf->last;
    if (is_free(r)) {
        list_remove(tlsf, r);
        r->size += granules;
    } else {
        if (!record_reserve(tlsf, 1)) return TLSF_NO_RECORD;
        r = block_append(tlsf, r, granules);
    }
    list_insert(tlsf, r);
    tlsf->capacity_granules += granules;
    return TLSF_OK;
}

uint64_t tlsf_capacity(const tlsf_t *tlsf)
{
    return tlsf->capacity_granules << tlsf->granule_log2;
}

uint64_t tlsf_used_size(const tlsf_t *tlsf)
{
    return tlsf->used_granules << tlsf->granule_log2;
}

uint64_t tlsf_free_size(const tlsf_t *tlsf)
{
    return tlsf_capacity(tlsf) - tlsf_used_size(tlsf);
}

uint64_t tlsf_largest(const tlsf_t *tlsf)
{
    if (!tlsf->rows) return 0;
    unsigned row = 63 - (unsigned)__builtin_clzll(tlsf->rows);
    unsigned column = 31 - (unsigned)__builtin_clz(tlsf->columns[row]);
    uint64_t largest = 0;
    for (const tlsf_record_t *r = tlsf->heads[row * TLSF_COLUMNS + column]; r; r = r->next) {
        if (r->size > largest) largest = r->size;
    }
    return largest << tlsf->granule_log2;
}

bool tlsf_next_free(const tlsf_t *tlsf, tlsf_range_t *range)
{
    const tlsf_record_t *r = range->record ? range->record->after : tlsf->first;
    while (r && !is_free(r)) r = r->after;
    *range = (tlsf_range_t){.record = r};
    if (!r) return false;
    range->offset = r->offset << tlsf->granule_log2;
    range->size = r->size << tlsf->granule_log2;
    return true;
}

// Invariants 1 and 2. Counts the free blocks, to be compared with the lists.
static bool check_blocks(const tlsf_t *tlsf, uint64_t *free_count)
{
    const tlsf_record_t *before = NULL;
    uint64_t end = 0, used = 0;
    for (const tlsf_record_t *r = tlsf->first; r; before = r, r = r->after) {
        if (r->before != before || r->offset != end || !r->size) return false;
        if (r->state == RECORD_SPARE || (is_free(r) && is_free(before))) return false;
        *free_count += is_free(r);
        used += is_free(r) ? 0 : r->size;
        end += r->size;
    }
    return tlsf->last == before && end == tlsf->capacity_granules && used == tlsf->used_granules;
}

// Invariants 3 and 4.
static bool check_lists(const tlsf_t *tlsf, uint64_t free_count)
{
    for (unsigned class = 0; class < TLSF_CLASSES; class ++) {
        unsigned row = class / TLSF_COLUMNS;
        bool in_columns = tlsf->columns[row] >> class % TLSF_COLUMNS & 1;
        if (in_columns != (tlsf->heads[class] != NULL)) return false;
        if ((tlsf->rows >> row & 1) != (tlsf->columns[row] != 0)) return false;
        const tlsf_record_t *prev = NULL;
        for (const tlsf_record_t *r = tlsf->heads[class]; r; prev = r, r = r->next) {
            if (!is_free(r) || r->prev != prev || class_of(r->size) != class) return false;
            if (!free_count--) return false;
        }
    }
    return free_count == 0 && !(tlsf->rows >> TLSF_ROWS);
}

static bool check_spares(const tlsf_t *tlsf)
{
    uint64_t count = 0;
    for (const tlsf_record_t *r = tlsf->spare; r; r = r->next, count++) {
        if (r->state != RECORD_SPARE || count == tlsf->spare_count) return false;
    }
    return count == tlsf->spare_count;
}

bool tlsf_check(const tlsf_t *tlsf)
{
    uint64_t free_count = 0;
    return check_blocks(tlsf, &free_count) && check_lists(tlsf, free_count) && check_spares(tlsf);
}
