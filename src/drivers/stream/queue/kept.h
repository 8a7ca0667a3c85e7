// SPDX-License-Identifier: Apache-2.0
// Memory that the last dealloca of a queue gave back, kept for an alloca of the same size: the
// order of the stream is all that the two need. It belongs to the issuer of the queue; other
// threads may look whether there is any.
#ifndef KEEL_SRC_DRIVERS_STREAM_QUEUE_KEPT_H_
#define KEEL_SRC_DRIVERS_STREAM_QUEUE_KEPT_H_

#include <stdatomic.h>
#include <stdint.h>

// All zero: none.
typedef struct kept_t {
    _Atomic uint64_t handle; // of the memory; 0: none
    uint64_t size, pool;     // a number that no other pool has, or had
} kept_t;

static inline uint64_t kept_handle(const kept_t *kept)
{
    // acquire: pairs with kept_take. A thread that knows of the dealloca finds the memory here.
    return atomic_load_explicit(&kept->handle, memory_order_acquire);
}

// Keeps some; there must be none.
static inline void kept_put(kept_t *kept, uint64_t pool, uint64_t size, uint64_t handle)
{
    kept->pool = pool;
    kept->size = size;
    atomic_store_explicit(&kept->handle, handle, memory_order_relaxed);
}

// Takes it, whatever its size; 0: there is none.
static inline uint64_t kept_take(kept_t *kept)
{
    uint64_t handle = kept_handle(kept);
    // release: pairs with kept_handle. A thread that finds it taken sees what was done before.
    atomic_store_explicit(&kept->handle, 0, memory_order_release);
    return handle;
}

// Takes it if it is of that pool and size; 0: it is not.
static inline uint64_t kept_take_like(kept_t *kept, uint64_t pool, uint64_t size)
{
    return kept->pool == pool && kept->size == size ? kept_take(kept) : 0;
}

#endif
