// SPDX-License-Identifier: Apache-2.0
// A mutex of four bytes that is zero when free. Not recursive; for short sections in which nothing
// blocks. Whoever finds it held looks again and again, at last with pauses in between, so leaving
// it is a store and wakes nobody: that is half of what an uncontended lock costs.
#ifndef KEEL_SRC_BASE_LOCK_H_
#define KEEL_SRC_BASE_LOCK_H_

#include "base/futex.h"

typedef struct lock_t {
    _Atomic uint32_t state; // 0 free, 1 held
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
    // release: what was done under the lock is seen by whoever takes it next. The last access: who
    // takes it may free it.
    atomic_store_explicit(&lock->state, 0, memory_order_release);
}

#endif
