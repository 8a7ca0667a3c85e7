// SPDX-License-Identifier: Apache-2.0
// The watcher of a queue: sleeps for those who sleep.
//
// An event on which a thread may sleep costs an interrupt, a microsecond of the issuer's time, and
// most are never slept on. So the events behind submissions are not of that kind: when somebody
// sleeps, a stream of the watcher's own waits for the event, and an event on that one, the bell, is
// what the watcher sleeps on.
#include "base/status.h"
#include "drivers/stream/stream.h"

void stream_alarm_destroy(stream_queue_t *q)
{
    stream_device_t *device = stream_device(q->base.device);
    if (q->bell) device->api->event_destroy(device->vendor, q->bell);
    if (q->alarm) device->api->stream_destroy(device->vendor, q->alarm);
}

// The most urgent priority: the alarm shares no channel of the device with ordinary work, which
// would have to wait behind it.
static keel_status_t alarm_open(stream_queue_t *q, stream_device_t *device)
{
    const stream_api_t *api = device->api;
    if (!q->alarm) KEEL_TRY(api->stream_create(device->vendor, device->limits.greatest, &q->alarm));
    return q->bell ? NULL : api->event_create(device->vendor, STREAM_EVENT_SLEEPS, &q->bell);
}

static keel_status_t alarm_set(stream_queue_t *q, stream_device_t *device, stream_event_h event)
{
    KEEL_TRY(alarm_open(q, device));
    KEEL_TRY(device->api->stream_wait(device->vendor, q->alarm, event));
    return device->api->event_record(device->vendor, q->bell, q->alarm);
}

// The oldest event that somebody sleeps for, retained.
static stream_event_t *flight_asked(stream_queue_t *q)
{
    lock_enter(&q->lock);
    stream_event_t *event = q->flight;
    while (event && !atomic_load_explicit(&event->asked, memory_order_relaxed)) event = event->next;
    if (event) promise_retain(&event->promise);
    lock_leave(&q->lock);
    return event;
}

// Blocks until the event has come. Without an alarm the thread may spin instead, but it ends.
static keel_status_t event_sleep(stream_queue_t *q, stream_device_t *device, stream_event_t *event)
{
    keel_status_t status = alarm_set(q, device, event->handle);
    stream_event_h bell = status ? event->handle : q->bell;
    keel_status_release(status);
    return device->api->event_sync(device->vendor, bell);
}

uint64_t stream_queue_watch(void *queue)
{
    stream_queue_t *q = queue;
    stream_device_t *device = stream_device(q->base.device);
    stream_event_t *event;
    while ((event = flight_asked(q))) {
        stream_entered_t entered;
        keel_status_t status = NULL;
        bool vendor = stream_enter(device, &entered);
        if (vendor) {
            status = event_sleep(q, device, event);
            stream_leave(&entered);
        }
        if (status)
            stream_device_lose(device, status);
        else if (vendor)
            stream_queue_retire(q, event->number);
        promise_release(&event->promise); // may be what kept the queue; see stream_queue_destroy
        if (!vendor) break;
    }
    return KEEL_FOREVER;
}
