// SPDX-License-Identifier: Apache-2.0
// The watchers of a queue: threads that sleep in the vendor's library, for hosts that sleep.
//
// An event on which a thread can sleep costs an interrupt, and about a microsecond of the issuer's
// time. Most events are never slept on. So the events behind submissions are not of that kind, and
// when a host sleeps, an event that is of that kind is recorded behind its own: on the queue's
// stream, if nothing was issued there since, else on a side stream of the watcher's, which waits
// for the host's event first. Where such a stream would hold up others (quirk waits_shared), the
// watcher polls the host's event instead, less often as time goes by.
//
// A watcher sleeps for the oldest event that was asked for, then for the next. Nothing wakes it
// early. When an older event is asked for meanwhile, another watcher sleeps for that one.
#include "base/clock.h"
#include "base/status.h"
#include "drivers/stream/queue/queue.h"

enum { PAUSE_NS = 20000, PAUSE_MOST_NS = 1000000 }; // of a watcher that polls

// Whether nothing was put on the queue's stream since the event.
static bool event_is_last(stream_queue_t *q, const stream_event_t *event)
{
    lock_enter(&q->lock);
    bool last = event->promise.number == q->recorded && !atomic_load(&q->unmarked);
    lock_leave(&q->lock);
    return last && !q->adopted; // there the application may have put something
}

// The side stream has a priority that no queue has: a device has few channels, streams of one
// priority share them, and work of queues would wait behind it.
static keel_status_t side_record(stream_watcher_t *w, const stream_device_t *device,
                                 stream_event_h event)
{
    const stream_api_t *api = device->api;
    if (!w->side) KEEL_TRY(api->stream_create(device->vendor, device->limits.greatest, &w->side));
    KEEL_TRY(api->stream_wait(device->vendor, w->side, event));
    return api->event_record(device->vendor, w->sleeps, w->side);
}

// Records what the watcher sleeps on. *recorded is false if it cannot be.
static keel_status_t sleep_record(stream_watcher_t *w, const stream_device_t *device,
                                  const stream_event_t *event, bool *recorded)
{
    const stream_api_t *api = device->api;
    *recorded = false;
    if (!w->sleeps) KEEL_TRY(api->event_create(device->vendor, STREAM_EVENT_SLEEPS, &w->sleeps));
    if (event_is_last(w->queue, event)) {
        KEEL_TRY(api->event_record(device->vendor, w->sleeps, w->queue->stream));
        // If work slipped in before the event, it is recorded anew, on the side stream.
        *recorded = event_is_last(w->queue, event);
    }
    if (*recorded || device->limits.quirks.waits_shared) return NULL;
    KEEL_TRY(side_record(w, device, event->handle));
    *recorded = true;
    return NULL;
}

static keel_status_t event_poll(const stream_device_t *device, stream_event_h event)
{
    keel_status_t status = NULL;
    bool over = false;
    for (uint64_t pause = PAUSE_NS; !stream_device_is_lost(device);) {
        STREAM_TWICE(status, device->api->event_query(device->vendor, event, &over));
        if (status || over) break;
        clock_sleep(pause);
        if (pause < PAUSE_MOST_NS) pause *= 2;
    }
    return status;
}

bool stream_is_watched(const stream_queue_t *q, uint64_t number)
{
    for (int i = 0; i < STREAM_WATCHERS; i++)
        if (q->watchers[i].at && q->watchers[i].at <= number) return true;
    return false;
}

keel_status_t stream_watcher_sleep(stream_watcher_t *w, stream_event_t *event)
{
    const stream_device_t *device = event->device;
    bool recorded;
    keel_status_t status = sleep_record(w, device, event, &recorded);
    keel_status_release(status);
    if (!recorded) return event_poll(device, event->handle);
    STREAM_TWICE(status, device->api->event_sync(device->vendor, w->sleeps));
    return status;
}

void stream_watchers_init(stream_queue_t *q, uint64_t (*body)(void *watcher))
{
    q->room.queue = q;
    for (int i = 0; i < STREAM_WATCHERS; i++) {
        q->watchers[i].queue = q;
        helper_init(&q->watchers[i].helper, "keel-watch", body, &q->watchers[i]);
    }
}

void stream_watchers_wake(stream_queue_t *q, uint64_t number)
{
    lock_enter(&q->lock);
    // Under the lock: one that is awake has yet to look, or is woken here.
    stream_watcher_t *awake = NULL;
    for (int i = 0; i < STREAM_WATCHERS && !awake; i++)
        if (!q->watchers[i].at) awake = &q->watchers[i];
    if (stream_is_watched(q, number)) awake = NULL;
    lock_leave(&q->lock);
    if (awake) helper_wake(&awake->helper);
}

void stream_watchers_stop(stream_queue_t *q)
{
    for (int i = 0; i < STREAM_WATCHERS; i++) helper_stop(&q->watchers[i].helper);
}

static void watcher_destroy(const stream_device_t *device, const stream_watcher_t *w)
{
    if (w->sleeps) device->api->event_destroy(device->vendor, w->sleeps);
    if (w->side) device->api->stream_destroy(device->vendor, w->side);
}

void stream_watchers_destroy(stream_queue_t *q)
{
    const stream_device_t *device = stream_queue_device(q);
    for (int i = 0; i < STREAM_WATCHERS; i++) watcher_destroy(device, &q->watchers[i]);
    watcher_destroy(device, &q->room);
}
