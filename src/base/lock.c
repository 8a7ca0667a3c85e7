// SPDX-License-Identifier: Apache-2.0
#include "base/lock.h"

#include <keel/base.h>

#include "base/clock.h"

enum { SPIN_NS = 3000, NAP_NS = 1000000 };

void lock_enter_slow(lock_t *lock)
{
    // Sections are short: the holder is most likely about to leave, unless it was preempted. The
    // more are waiting, the longer each leaves the line alone.
    uint64_t start = clock_ticks(), most = clock_ticks_of_ns(SPIN_NS);
    for (int pause = 1; clock_ticks() - start < most; pause += pause < 16) {
        if (atomic_load_explicit(&lock->state, memory_order_relaxed) == 0 && lock_try(lock)) return;
        for (int i = 0; i < pause; i++) cpu_relax();
    }
    // From here on the lock is taken as 2: there may be other sleepers, and only leaving a 2 wakes
    // one. Who is just leaving may miss it, hence the naps.
    while (atomic_exchange_explicit(&lock->state, 2, memory_order_acquire) != 0)
        futex_wait(&lock->state, 2, clock_deadline(NAP_NS));
}
