// SPDX-License-Identifier: Apache-2.0
// Memory of a device on its way back to the vendor. Allocas that found no memory wait for it.
//
// A free begins when it is issued to a stream, or left to the thread that gives memory back
// (memory/free.c). It ends when the memory can be had again.
#ifndef KEEL_SRC_DRIVERS_STREAM_BASE_RECLAIM_H_
#define KEEL_SRC_DRIVERS_STREAM_BASE_RECLAIM_H_

#include "base/lock.h"

// Waits for the next free that ends. `again` is called once, on the thread that ends it, with no
// lock held.
typedef struct reclaim_waiter_t {
    struct reclaim_waiter_t *next;
    void (*again)(struct reclaim_waiter_t *waiter);
} reclaim_waiter_t;

typedef struct reclaim_t {
    _Atomic uint64_t begun, ended;       // frees so far
    _Atomic(reclaim_waiter_t *) waiters; // written with the lock
    lock_t lock;
    _Atomic uint32_t hungry; // runs that wait for memory: events that bring some back are watched
    uint64_t relieved;       // the keeper's: `ended`, when it last looked at thresholds
} reclaim_t;

static inline void reclaim_begin(reclaim_t *reclaim)
{
    atomic_fetch_add(&reclaim->begun, 1);
}

// Frees so far that have ended.
static inline uint64_t reclaim_ended(const reclaim_t *reclaim)
{
    return atomic_load(&reclaim->ended);
}

// Whether an alloca waits.
static inline bool reclaim_is_awaited(const reclaim_t *reclaim)
{
    return atomic_load(&reclaim->waiters);
}

// Whether more frees than `ended` have begun.
static inline bool reclaim_is_coming(const reclaim_t *reclaim, uint64_t ended)
{
    return atomic_load(&reclaim->begun) > ended;
}

// `count` frees have ended: all waiters try again.
void reclaim_end(reclaim_t *reclaim, uint32_t count);

// Waits until more frees than `ended` have ended; `again` may be called before this returns. False,
// and it does not wait, if no free is under way that it could wait for.
bool reclaim_wait(reclaim_t *reclaim, reclaim_waiter_t *waiter, uint64_t ended);

#endif
