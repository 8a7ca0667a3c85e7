// SPDX-License-Identifier: Apache-2.0
// A mutex of four bytes that is zero when free. Not recursive; for short sections in which nothing
// blocks. Leaving it is a load and a store, no atomic operation of both, which would be half of
// what an uncontended lock costs: so a sleeper that comes in between is not woken, and looks again
// by himself a little later.
#ifndef KEEL_SRC_BASE_LOCK_H_
#define KEEL_SRC_BASE_LOCK_H_

#include "base/futex.h"

typedef struct lock_t {
    _Atomic uint32_t state; // 0 free, 1 held, 2 held and a thread may sleep
} lock_t;

void lock_enter_slow(lock_t *lock);

static inline bool lock_try(lock_t *lock)
{
    uint32_t free = 0;
    // acquire: pairs with the release in lock_leave.
    return atomic_compare_exchange_strong_explicit(&lock->state, &free, 1, memory_order_acquire,
                                                   memory_order_relaxed);
}

static inline void lock_enter(lock_t *lock)
{
    if (!lock_try(lock)) lock_enter_slow(lock);
}

static inline void lock_leave(lock_t *lock)
{
    uint32_t state = atomic_load_explicit(&lock->state, memory_order_relaxed);
    // release: the next thread that takes the lock sees what was done under it. This
    // is the last access: that thread may free the lock, and waking needs the address alone.
    atomic_store_explicit(&lock->state, 0, memory_order_release);
    if (__builtin_expect(state == 2, 0)) futex_wake(&lock->state, 1);
}

#endif
