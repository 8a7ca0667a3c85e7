// SPDX-License-Identifier: Apache-2.0
#include "base/lock.h"

#include <keel/base.h>

void lock_enter_slow(lock_t *lock)
{
    // Sections are short: the holder is most likely about to leave, unless it was preempted.
    for (int i = 0; i < 100; i++) {
        if (atomic_load_explicit(&lock->state, memory_order_relaxed) == 0 && lock_try(lock)) return;
        cpu_relax();
    }
    // From here on the lock is taken as 2: there may be other sleepers, and only leaving a 2 wakes
    // one.
    while (atomic_exchange_explicit(&lock->state, 2, memory_order_acquire) != 0)
        futex_wait(&lock->state, 2, KEEL_FOREVER);
}
