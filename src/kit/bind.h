// SPDX-License-Identifier: Apache-2.0
// Addresses for what commands refer to, and the blocks of parameters of kernels that have them.
#ifndef KEEL_SRC_KIT_BIND_H_
#define KEEL_SRC_KIT_BIND_H_

#include <keel/driver/command.h>

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

// What is bound where.
enum { BIND_ANYWHERE = 256 };
typedef struct binder_t {
    const keel_ref_t *table; // what is in slots; NULL outside of recordings
    // Ahead of time: BIND_ANYWHERE bytes in place of all that has no address yet; 0: an error.
    uint64_t anywhere;
} binder_t;

keel_status_t bind_ref(const binder_t *binder, const keel_ref_t *ref, bound_t *bound);
// Whether that is memory got from the device, which the host does not see.
bool bind_is_local(const binder_t *binder, const keel_ref_t *ref);
// Of one length on both sides, which do not overlap.
keel_status_t bind_copy(const binder_t *binder, const keel_cmd_copy_t *c, bound_copy_t *copy);
// Of a whole number of patterns. *plain: each word holds the pattern, or a part of it that repeats;
// if not, words are bytes, and it takes a kernel to write them.
keel_status_t bind_fill(const binder_t *binder, const keel_cmd_fill_t *c, bound_fill_t *fill,
                        bool *plain);

// The caller's own block, with addresses put in; c->constant_size bytes.
keel_status_t bind_raw(const binder_t *binder, const keel_cmd_dispatch_t *c, unsigned char *bytes);
// The blocks that docs/kernels.md lays down, of kernels as they are, and of those that walk over
// their grid; *size: of the block.
keel_status_t bind_block(const binder_t *binder, const keel_cmd_dispatch_t *c, unsigned char *bytes,
                         uint32_t *size);
keel_status_t bind_walk(const binder_t *binder, const keel_cmd_dispatch_t *c, unsigned char *bytes,
                        uint32_t *size);

#endif
