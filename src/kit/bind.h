// SPDX-License-Identifier: Apache-2.0
// Addresses for what commands refer to, and the blocks of parameters of kernels that have them.
//
// bind_now() is for a driver that does the work itself, at once; what takes a binder_t also works
// ahead of time, when slots are empty and allocas have not run.
#ifndef KEEL_SRC_KIT_BIND_H_
#define KEEL_SRC_KIT_BIND_H_

#include <keel/driver/object.h>

#include "kit/command.h"

typedef struct bound_t {
    uint64_t address, length;
} bound_t;

// `count` words of `size` bytes (1, 2 or 4), aligned to that.
typedef struct bound_fill_t {
    uint64_t target;
    uint64_t count;
    uint32_t pattern;
    uint32_t size;
} bound_fill_t;

// Between any two addresses that the device knows.
typedef struct bound_copy_t {
    uint64_t target, source;
    uint64_t size;
} bound_copy_t;

// What `ref` means with `table` in the slots; NULL outside of recordings. False: the buffer has no
// memory, and the address means nothing.
static inline bool bind_find(const keel_ref_t *table, const keel_ref_t *ref, bound_t *bound)
{
    const keel_buffer_t *buffer = ref->buffer;
    uint64_t offset = ref->offset;
    bound->length = ref->length;
    if (!buffer) {
        const keel_ref_t *entry = &table[ref->slot];
        if (ref->length == KEEL_WHOLE) bound->length = entry->length - ref->offset;
        buffer = entry->buffer;
        offset += entry->offset;
    }
    // relaxed: the alloca that wrote it is ordered before us by a point, a barrier or a stream.
    uint64_t address = atomic_load_explicit(&buffer->root->address, memory_order_relaxed);
    bound->address = address + buffer->offset + offset;
    return __builtin_expect(address != 0, 1);
}

// The error of a buffer without memory.
keel_status_t bind_missing(const keel_ref_t *table, const keel_ref_t *ref) KEEL_COLD;

// Inline: a driver that runs small commands itself does little else.
static inline keel_status_t bind_now(const keel_ref_t *table, const keel_ref_t *ref, bound_t *bound)
{
    return bind_find(table, ref, bound) ? NULL : bind_missing(table, ref);
}

// The bytes that `ref` means, whether they have memory or not.
static inline uint64_t bind_length(const keel_ref_t *table, const keel_ref_t *ref)
{
    return ref->length == KEEL_WHOLE ? table[ref->slot].length - ref->offset : ref->length;
}

// That a copy is of one length on both sides, which do not overlap.
keel_status_t bind_copy_refuse(bound_t source, bound_t target) KEEL_COLD;
static inline keel_status_t bind_copy_check(bound_t source, bound_t target)
{
    bool apart = source.address >= target.address + target.length ||
                 target.address >= source.address + source.length;
    bool good = source.length == target.length && apart;
    return __builtin_expect(good, 1) ? NULL : bind_copy_refuse(source, target);
}

// That a fill is of a whole number of patterns.
keel_status_t bind_fill_refuse(bound_t target, uint32_t pattern_size) KEEL_COLD;
static inline keel_status_t bind_fill_check(bound_t target, uint32_t pattern_size)
{
    bool good = (target.length & (pattern_size - 1)) == 0; // it is 1, 2 or 4
    return __builtin_expect(good, 1) ? NULL : bind_fill_refuse(target, pattern_size);
}

// That counts read from memory make no more groups than the device runs.
keel_status_t bind_counts_check(const keel_cmd_dispatch_t *c, const uint32_t counts[3]);

// What is bound where.
enum { BIND_ANYWHERE = 256 };
typedef struct binder_t {
    const keel_ref_t *table; // what is in slots; NULL outside of recordings
    // Ahead of time: BIND_ANYWHERE bytes in place of all that has no address yet; 0: an error.
    uint64_t anywhere;
    const unsigned char *parameters; // of the execution; NULL: they are not known yet, or none
    uint64_t parameters_at;          // where the device finds them; 0: nowhere
} binder_t;

// For commands that `execute` runs; NULL: of the submission itself.
static inline binder_t binder_of(const keel_cmd_execute_t *execute)
{
    if (!execute) return (binder_t){0};
    return (binder_t){.table = execute->bindings, .parameters = keel_execute_parameters(execute)};
}

keel_status_t bind_ref(const binder_t *binder, const keel_ref_t *ref, bound_t *bound);
// The same of counts and of the value of a block, which may be parameters.
keel_status_t bind_value(const binder_t *binder, const keel_ref_t *ref, bound_t *bound);
// The root whose memory that is; NULL: it is not bound yet.
const keel_buffer_t *bind_owner(const binder_t *binder, const keel_ref_t *ref);
// Whether that is memory got from the device, which the host does not see.
bool bind_is_local(const binder_t *binder, const keel_ref_t *ref);
keel_status_t bind_copy(const binder_t *binder, const keel_cmd_copy_t *c, bound_copy_t *copy);
// *plain: each word holds the pattern, or a part of it that repeats;
// if not, words are bytes, and it takes a kernel to write them.
keel_status_t bind_fill(const binder_t *binder, const keel_cmd_fill_t *c, bound_fill_t *fill,
                        bool *plain);

// The constants, or the caller's own block, with what patches say put in; c->constant_size bytes.
keel_status_t bind_constants(const binder_t *binder, const keel_cmd_dispatch_t *c,
                             unsigned char *bytes);
// The blocks that docs/kernels.md lays down, of kernels as they are, and of those that walk over
// their grid; *size: of the block.
keel_status_t bind_block(const binder_t *binder, const keel_cmd_dispatch_t *c, unsigned char *bytes,
                         uint32_t *size);
keel_status_t bind_walk(const binder_t *binder, const keel_cmd_dispatch_t *c, unsigned char *bytes,
                        uint32_t *size);

#endif
