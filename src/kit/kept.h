// SPDX-License-Identifier: Apache-2.0
// Memory that was given back on a queue, kept for whoever asks for as much there next: the queue's
// own order is all that the two need. It belongs to whoever issues to the queue; others may look
// whether there is any.
#ifndef KEEL_SRC_KIT_KEPT_H_
#define KEEL_SRC_KIT_KEPT_H_

#include <stdatomic.h>
#include <stdint.h>

// All zero: none.
typedef struct kept_t {
    _Atomic uint64_t handle; // of the memory; 0: none
    uint64_t size, pool;     // a number that no other pool has, or had
} kept_t;

static inline uint64_t kept_handle(const kept_t *kept)
{
    // acquire: pairs with kept_take. Whoever was told that the memory was given back finds it here.
    return atomic_load_explicit(&kept->handle, memory_order_acquire);
}

// There is none.
static inline void kept_put(kept_t *kept, uint64_t pool, uint64_t size, uint64_t handle)
{
    kept->pool = pool;
    kept->size = size;
    atomic_store_explicit(&kept->handle, handle, memory_order_relaxed);
}

// Whatever it is; 0: there is none.
static inline uint64_t kept_take(kept_t *kept)
{
    uint64_t handle = kept_handle(kept);
    // release: whoever finds it taken finds what was done before.
    atomic_store_explicit(&kept->handle, 0, memory_order_release);
    return handle;
}

// 0: there is none such.
static inline uint64_t kept_take_like(kept_t *kept, uint64_t pool, uint64_t size)
{
    return kept->pool == pool && kept->size == size ? kept_take(kept) : 0;
}

#endif
