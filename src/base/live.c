// SPDX-License-Identifier: Apache-2.0
#include "base/live.h"

#include <stdatomic.h>

#include <keel/base.h>

// A cache line each: objects of different types are made by different threads.
static struct {
    _Alignas(64) _Atomic int64_t count;
} live[LIVE_TYPES];

void live_add(live_type_t type, int change)
{
    // relaxed: a statistic; whoever compares it with zero has joined the threads that count.
    atomic_fetch_add_explicit(&live[type].count, change, memory_order_relaxed);
}

static int64_t live_count(live_type_t type)
{
    return atomic_load_explicit(&live[type].count, memory_order_relaxed);
}

void keel_live_objects(keel_live_t *out)
{
    *out = (keel_live_t){
        .devices = live_count(LIVE_DEVICE),
        .queues = live_count(LIVE_QUEUE),
        .semaphores = live_count(LIVE_SEMAPHORE),
        .buffers = live_count(LIVE_BUFFER),
        .pools = live_count(LIVE_POOL),
        .executables = live_count(LIVE_EXECUTABLE),
        .recordings = live_count(LIVE_RECORDING),
        .files = live_count(LIVE_FILE),
        .watches = live_count(LIVE_WATCH),
        .submissions = live_count(LIVE_SUBMISSION),
        .statuses = live_count(LIVE_STATUS),
    };
}
