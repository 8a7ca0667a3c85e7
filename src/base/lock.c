// SPDX-License-Identifier: Apache-2.0
#include "base/lock.h"

#include <keel/base.h>

#include "base/clock.h"

enum { SPIN_NS = 3000, NAP_NS = 50000, LONGEST_NAP_NS = 1000000 };

void lock_enter_slow(lock_t *lock)
{
    // Sections are short: the holder is most likely about to leave, unless it was preempted. The
    // more are waiting, the longer each leaves the line alone.
    uint64_t start = clock_ticks(), most = clock_ticks_of_ns(SPIN_NS);
    for (int pause = 1; clock_ticks() - start < most; pause += pause < 16) {
        if (atomic_load_explicit(&lock->state, memory_order_relaxed) == 0 && lock_try(lock)) return;
        for (int i = 0; i < pause; i++) cpu_relax();
    }
    // It was preempted, or does something dear for once: leaves it the processor, for at most as
    // long again as it has taken already.
    for (uint64_t nap = NAP_NS; !lock_try(lock); nap *= nap < LONGEST_NAP_NS ? 2 : 1)
        futex_wait(&lock->state, 1, clock_deadline(nap));
}
