// SPDX-License-Identifier: Apache-2.0
// Memory that was freed on a stream is known to be free when the vendor was seen to wait for
// something behind it. A stream itself is not waited for: nobody knows what comes next on it. So an
// event is recorded on each queue that is idle, and waited for once it is over. On a stream of the
// application's recording might block too; there every dealloca has an event behind it (pool.c).
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

// Nothing comes onto the stream meanwhile: the caller has become its issuer, or is it.
static keel_status_t queue_mark(stream_queue_t *q, stream_event_t **marks)
{
    if (q->adopted || !stream_queue_is_idle(q)) return NULL;
    return stream_mark(stream_device(q->base.device), q->stream, marks);
}

static keel_status_t mark_settle(stream_device_t *device, stream_event_h mark, uint64_t deadline)
{
    bool over = false;
    for (uint64_t pause = 0;; pause += PAUSE_NS) {
        KEEL_TRY(device->api->event_query(device->vendor, mark, &over));
        if (over || keel_now_ns() >= deadline) break;
        if (pause) clock_sleep(pause);
    }
    return over ? device->api->event_sync(device->vendor, mark) : NULL;
}

keel_status_t stream_device_settle(stream_device_t *device, const stream_queue_t *issuing)
{
    stream_event_t *marks = NULL;
    keel_status_t status = stream_mark(device, device->side, &marks);
    for (stream_queue_t *q = stream_queue_next(device, NULL); q; q = stream_queue_next(device, q)) {
        if (status || (q != issuing && !stream_queue_claim(q))) continue;
        status = queue_mark(q, &marks);
        if (q != issuing) stream_queue_let_go(q, false);
    }
    uint64_t deadline = clock_deadline(SETTLE_NS);
    for (const stream_event_t *mark = marks; mark && !status; mark = mark->next)
        status = mark_settle(device, mark->handle, deadline);
    stream_events_put(device, marks);
    return status;
}
