// SPDX-License-Identifier: Apache-2.0
// A mutex of four bytes that is zero when free. Not recursive; for short sections in which nothing
// blocks.
#ifndef KEEL_SRC_BASE_LOCK_H_
#define KEEL_SRC_BASE_LOCK_H_

#include "base/futex.h"

typedef struct lock_t {
    _Atomic uint32_t state; // 0 free, 1 held, 2 held and somebody sleeps
} lock_t;

void lock_enter_slow(lock_t *lock);

static inline void lock_enter(lock_t *lock)
{
    uint32_t free = 0;
    // acquire: pairs with the release in lock_leave.
    if (!atomic_compare_exchange_strong_explicit(&lock->state, &free, 1, memory_order_acquire,
                                                 memory_order_relaxed))
        lock_enter_slow(lock);
}

static inline bool lock_try(lock_t *lock)
{
    uint32_t free = 0;
    return atomic_compare_exchange_strong_explicit(&lock->state, &free, 1, memory_order_acquire,
                                                   memory_order_relaxed);
}

static inline void lock_leave(lock_t *lock)
{
    // release: what was done under the lock is seen by whoever takes it next.
    if (atomic_exchange_explicit(&lock->state, 0, memory_order_release) == 2)
        futex_wake(&lock->state, 1);
}

#endif
