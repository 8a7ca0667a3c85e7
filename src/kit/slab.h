// SPDX-License-Identifier: Apache-2.0
// Slabs: memory of the driver's buffer_alloc that a pool cuts up by the allocators of src/memory.
// The pool's lock guards a slab, except while it is made and destroyed.
#ifndef KEEL_SRC_KIT_SLAB_H_
#define KEEL_SRC_KIT_SLAB_H_

#include <keel/driver/driver.h>

#include "memory/block.h"
#include "memory/tlsf.h"

enum {
    SLAB_GRANULE = 64,
    SLAB_ALIGN = 64 << 10, // of a slab, at least
    SLAB_SIZE = 32 << 20,  // unless there is less, or more is asked for
};

typedef struct slab_t {
    struct slab_t *next;
    keel_buffer_t memory; // a root buffer that no one else knows
    uint64_t used;
    bool blocks;
    bool shared; // its blocks are on the shelf (shelf.h); `used` and `map` are not theirs
    union {
        tlsf_t tlsf;
        block_pool_t block_pool;
    } map;
} slab_t;

// Gets a slab of that size for a pool. What is cut from it is aligned to `align` at most, or to
// what every slab is. Calls buffer_alloc; no lock may be held.
keel_status_t slab_create(const keel_pool_t *pool, uint64_t size, uint64_t align, slab_t **made);
void slabs_destroy(slab_t *slabs); // a list; no lock may be held

// Gives the buffer `size` bytes of the slab. False if they do not fit.
bool slab_cut(slab_t *slab, keel_buffer_t *buffer, uint64_t size);
void slab_take_back(slab_t *slab, const keel_pool_piece_t *piece);

// A reserved buffer gets memory, and loses it.
static inline void memory_attach(keel_buffer_t *buffer, char *data, uint64_t address)
{
    atomic_store_explicit(&buffer->data, data, memory_order_relaxed);
    atomic_store_explicit(&buffer->address, address, memory_order_relaxed);
    // release: pairs with the acquire of a thread that finds the buffer resident.
    atomic_store_explicit(&buffer->resident, 1, memory_order_release);
}

static inline void memory_detach(keel_buffer_t *buffer)
{
    // relaxed: points order this with all uses.
    atomic_store_explicit(&buffer->resident, 0, memory_order_relaxed);
    atomic_store_explicit(&buffer->data, NULL, memory_order_relaxed);
    atomic_store_explicit(&buffer->address, 0, memory_order_relaxed);
}

#endif
