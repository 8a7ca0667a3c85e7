// SPDX-License-Identifier: Apache-2.0
// Memory that was freed on a stream is known to be free when the vendor was seen to wait for
// something behind it, not when that was found to be over. So for each queue the last event that
// came and has frees before it is waited for, which does not take long. Behind the last frees there
// may be no event yet: one is recorded before work comes behind them (run.c), or here, if the
// stream has nothing to do. A stream itself is not waited for: nobody knows what comes next on it.
#include "base/clock.h"
#include "drivers/stream/stream.h"

// An idle stream gets to an event in microseconds, unless it shares a channel of the device with
// one that is not: all of them together have so long.
enum { SETTLE_NS = 10000000, PAUSE_NS = 10000 };

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
    stream_event_t *freed = q->freed, *event = q->flight;
    for (; event && event->promise.number <= q->came; event = event->next)
        if (event->frees) freed = event;
    if (soon) freed = event && !event->runs ? event : NULL;
    if (freed) promise_retain(&freed->promise);
    lock_leave(&q->lock);
    return freed;
}

static keel_status_t queue_settle(stream_queue_t *q, uint64_t deadline, stream_event_t **marks)
{
    stream_device_t *device = stream_device(q->base.device);
    stream_queue_yield(q, deadline);
    stream_queue_poll(q, true);
    for (int soon = 0; soon < 2; soon++) {
        stream_event_t *freed = queue_freed(q, soon);
        keel_status_t status = freed ? mark_settle(device, freed->handle, deadline) : NULL;
        if (freed) promise_release(&freed->promise);
        if (status) return status;
    }
    // On a stream of the application's, recording might block; there all frees have an event.
    bool loose = atomic_load(&q->loose) && !q->adopted && stream_queue_is_idle(q);
    return loose ? stream_mark(device, q->stream, marks) : NULL;
}

keel_status_t stream_device_settle(stream_device_t *device, stream_queue_t *last)
{
    uint64_t deadline = clock_deadline(SETTLE_NS);
    stream_event_t *marks = NULL;
    keel_status_t status =
        last ? queue_settle(last, deadline, &marks) : stream_mark(device, device->side, &marks);
    stream_queue_t *q = last ? NULL : stream_queue_next(device, NULL);
    for (; q; q = stream_queue_next(device, q))
        if (!status) status = queue_settle(q, deadline, &marks);
    for (const stream_event_t *mark = marks; mark && !status; mark = mark->next)
        status = mark_settle(device, mark->handle, deadline);
    stream_events_put(device, marks);
    while (!last && stream_queues_going(device, false) && keel_now_ns() < deadline)
        clock_sleep(PAUSE_NS); // they were left out above, and settle what they have
    return status;
}
