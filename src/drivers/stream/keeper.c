// SPDX-License-Identifier: Apache-2.0
// The keeper of a device: a thread that retires work that no thread waits for, a little later. Its
// buffers and its memory must come back too.
#include "base/clock.h"
#include "drivers/stream/driver.h"

enum {
    KEEPER_NS = 10000000,
    KEEPER_SLOW_NS = 40000000, // watchers sleep for what comes next, or frees alone are left
    KEEPER_ROUNDS = 100,       // without work before the keeper goes to sleep
    EVENTS_KEPT = 1024,        // of a device at rest
    EVENTS_SHED = 1024,        // at a time
};

// Retires what has come on all queues. Whether there is more; *alone: also on a queue for which no
// watcher sleeps.
static bool queues_poll(stream_device_t *device, bool *alone)
{
    // Frees may leave no event behind: those under way, and that thresholds were not looked at for.
    bool busy = atomic_load(&device->reclaim.begun) != device->reclaim.relieved &&
                !stream_device_is_lost(device);
    *alone = false;
    STREAM_EACH_QUEUE(q, device)
    {
        stream_queue_poll(q, true);
        lock_enter(&q->lock);
        busy |= q->flight != NULL;
        *alone |= q->flight && !stream_is_watched(q, q->flight->promise.number);
        lock_leave(&q->lock);
    }
    return busy;
}

// Destroys some events that the device has only because it once had much to do. False: there are
// none.
static bool events_shed(stream_device_t *device)
{
    uint32_t alive = atomic_load(&device->events);
    if (alive <= EVENTS_KEPT) return false;
    STREAM_EACH_QUEUE(q, device) stream_queue_shed(q);
    uint32_t more = alive - EVENTS_KEPT;
    stream_events_destroy(device, more < EVENTS_SHED ? more : EVENTS_SHED);
    return atomic_load(&device->events) < alive; // else they are in use
}

uint64_t stream_device_keep(void *argument)
{
    stream_device_t *device = argument;
    bool alone;
    stream_queues_reap(device);
    if (atomic_load(&device->active)) {
        bool busy = queues_poll(device, &alone);
        device->idle_rounds = busy ? 0 : device->idle_rounds + 1;
        stream_pools_relieve(device, busy);
        if (device->idle_rounds < KEEPER_ROUNDS || events_shed(device))
            return clock_deadline(busy && !alone ? KEEPER_SLOW_NS : KEEPER_NS);
        device->idle_rounds = 0;
        atomic_store(&device->active, 0);
        busy = queues_poll(device, &alone); // what came just before is not to be forgotten
        if (busy && !atomic_exchange(&device->active, 1)) return clock_deadline(KEEPER_NS);
    }
    return KEEL_FOREVER;
}
