// SPDX-License-Identifier: Apache-2.0
// Some vendors take memory that was freed on a stream for free only when a thread has waited for
// something behind it (quirk pool_lags). That an event behind it was found to be over does not
// count. So for each queue the last event that has come and has frees before it is waited for,
// which takes no time. Behind the last frees there may be no event yet: one is recorded in front of
// the next work (run/run.c), or here, if the stream has nothing to do. Keel never waits for the
// stream itself, because the stream may get new work at any time.
#include "base/clock.h"
#include "drivers/stream/memory/memory.h"

// An idle stream gets to an event in microseconds, unless it shares a channel of the device with
// one that is not: all of them together have so long.
enum { SETTLE_NS = 10000000, PAUSE_NS = 10000 };
// A thread that is just destroying a queue waits for nothing but a processor.
enum { GOING_NS = 1000000000 };

static keel_status_t stream_mark(stream_device_t *device, stream_h stream, stream_event_t **marks)
{
    KEEL_TRY(stream_events_get(device, 1, marks));
    return device->api->event_record(device->vendor, (*marks)->handle, stream);
}

static keel_status_t mark_settle(stream_device_t *device, stream_event_h mark, uint64_t deadline)
{
    bool over = false;
    for (uint64_t pause = 0;; pause += PAUSE_NS) {
        KEEL_TRY(device->api->event_query(device->vendor, mark, &over));
        if (over || keel_now_ns() >= deadline) break;
        if (pause) clock_sleep(pause);
    }
    bool waits = over && device->limits.quirks.pool_lags;
    return waits ? device->api->event_sync(device->vendor, mark) : NULL;
}

// The last event that has come and has frees before it, retained; or with `soon` what has yet to
// come and has nothing but frees before it. NULL: none.
static stream_event_t *queue_freed(stream_queue_t *q, bool soon)
{
    lock_enter(&q->lock);
    stream_event_t *freed = q->returns.last, *event = q->flight;
    for (; event && event->promise.number <= q->came; event = event->next)
        if (event->frees) freed = event;
    if (soon) freed = event && !event->segments ? event : NULL;
    if (freed) promise_retain(&freed->promise);
    lock_leave(&q->lock);
    return freed;
}

static keel_status_t queue_settle(stream_queue_t *q, uint64_t deadline, stream_event_t **marks)
{
    stream_device_t *device = stream_queue_device(q);
    stream_queue_yield(q, deadline);
    stream_queue_poll(q, true);
    for (int soon = 0; soon < 2; soon++) {
        stream_event_t *freed = queue_freed(q, soon);
        keel_status_t status = freed ? mark_settle(device, freed->handle, deadline) : NULL;
        if (freed) promise_release(&freed->promise);
        if (status) return status;
    }
    // On a stream of the application's, recording might block; there all frees have an event.
    bool unmarked = atomic_load(&q->returns.unmarked) && !q->adopted && stream_queue_is_idle(q);
    return unmarked ? stream_mark(device, q->stream, marks) : NULL;
}

static bool queues_are_going(stream_device_t *device)
{
    lock_enter(&device->lock);
    bool going = stream_queues_are_going(device);
    lock_leave(&device->lock);
    return going;
}

keel_status_t stream_device_settle(stream_device_t *device, stream_queue_t *only)
{
    uint64_t deadline = clock_deadline(SETTLE_NS);
    stream_event_t *marks = NULL;
    keel_status_t status =
        only ? queue_settle(only, deadline, &marks) : stream_mark(device, device->side, &marks);
    stream_queue_t *q = only ? NULL : stream_queue_next(device, NULL);
    for (; q; q = stream_queue_next(device, q))
        if (!status) status = queue_settle(q, deadline, &marks);
    for (const stream_event_t *mark = marks; mark && !status; mark = mark->next)
        status = mark_settle(device, mark->handle, deadline);
    stream_events_put(device, marks);
    deadline = clock_deadline(GOING_NS);
    while (!only && queues_are_going(device) && keel_now_ns() < deadline)
        clock_sleep(PAUSE_NS); // they were left out above, and settle what they have
    return status;
}
