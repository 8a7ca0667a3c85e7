// SPDX-License-Identifier: Apache-2.0
#include "drivers/stream/base/reclaim.h"

#include <stddef.h>

void reclaim_end(reclaim_t *reclaim, uint32_t count)
{
    // Count, then look for waiters. reclaim_wait does it the other way round, so that one of the
    // two sees the other.
    atomic_fetch_add(&reclaim->ended, count);
    if (!atomic_load(&reclaim->waiters)) return;
    lock_enter(&reclaim->lock);
    reclaim_waiter_t *waiter = atomic_exchange(&reclaim->waiters, NULL);
    lock_leave(&reclaim->lock);
    while (waiter) {
        reclaim_waiter_t *next = waiter->next;
        waiter->again(waiter);
        waiter = next;
    }
}

bool reclaim_wait(reclaim_t *reclaim, reclaim_waiter_t *waiter, uint64_t ended)
{
    lock_enter(&reclaim->lock);
    waiter->next = atomic_load(&reclaim->waiters);
    atomic_store(&reclaim->waiters, waiter);
    bool more = atomic_load(&reclaim->ended) != ended;
    bool hopeless = !more && atomic_load(&reclaim->begun) == ended;
    if (more || hopeless) atomic_store(&reclaim->waiters, waiter->next);
    lock_leave(&reclaim->lock);
    if (more) waiter->again(waiter);
    return !hopeless;
}
