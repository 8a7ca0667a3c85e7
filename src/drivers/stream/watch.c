// SPDX-License-Identifier: Apache-2.0
// The watchers of a queue: threads that sleep for those who sleep.
//
// An event on which a thread may sleep costs an interrupt, a microsecond of the issuer's time, and
// most are never slept on. So the events behind submissions are not of that kind: when somebody
// sleeps, one that is, the bell, is recorded behind his. On the queue's own stream, if nothing else
// has come there; else a stream of the watcher's own, the alarm, waits for his event, and the bell
// is behind that.
//
// A watcher sleeps for the oldest event that is asked for, then for the next. Nothing wakes it
// early, so when an older one is asked for meanwhile, another watcher does that, and rests when
// what is oldest next is watched already.
#include "base/status.h"
#include "drivers/stream/stream.h"

// Whether nothing was put on the queue's stream since the event.
static bool event_is_last(stream_queue_t *q, const stream_event_t *event)
{
    lock_enter(&q->lock);
    bool last = event->promise.number == q->recorded && !atomic_load(&q->unmarked);
    lock_leave(&q->lock);
    return last && !q->adopted; // there others may have put something
}

// Of a priority that no queue has: a device has few channels, streams of one priority share them,
// and work would wait behind an alarm.
static keel_status_t alarm_set(stream_watcher_t *w, stream_device_t *device, stream_event_h event)
{
    const stream_api_t *api = device->api;
    if (!w->alarm) KEEL_TRY(api->stream_create(device->vendor, device->limits.greatest, &w->alarm));
    KEEL_TRY(api->stream_wait(device->vendor, w->alarm, event));
    return api->event_record(device->vendor, w->bell, w->alarm);
}

static keel_status_t bell_set(stream_watcher_t *w, stream_device_t *device,
                              const stream_event_t *event)
{
    const stream_api_t *api = device->api;
    if (!w->bell) KEEL_TRY(api->event_create(device->vendor, STREAM_EVENT_SLEEPS, &w->bell));
    if (event_is_last(w->queue, event)) {
        KEEL_TRY(api->event_record(device->vendor, w->bell, w->queue->stream));
        // If something slipped in before the bell, it is recorded anew.
        if (event_is_last(w->queue, event)) return NULL;
    }
    return alarm_set(w, device, event->handle);
}

bool stream_is_watched(const stream_queue_t *q, uint64_t number)
{
    for (int i = 0; i < STREAM_WATCHERS; i++)
        if (q->watchers[i].at && q->watchers[i].at <= number) return true;
    return false;
}

// The oldest event that somebody sleeps for, retained, and the watcher's from now on; NULL: there
// is none, or it has a watcher.
static stream_event_t *flight_asked(stream_queue_t *q, stream_watcher_t *w)
{
    lock_enter(&q->lock);
    w->at = 0;
    stream_event_t *event = q->flight;
    // One that is known to have come is somebody's to tell.
    while (event && (event->promise.number <= q->came ||
                     !atomic_load_explicit(&event->asked, memory_order_relaxed)))
        event = event->next;
    if (event && stream_is_watched(q, event->promise.number)) event = NULL;
    if (event) {
        w->at = event->promise.number;
        promise_retain(&event->promise);
    }
    lock_leave(&q->lock);
    return event;
}

// Blocks until the event has come. Without a bell the thread may spin instead, but it ends.
static keel_status_t event_sleep(stream_watcher_t *w, stream_device_t *device,
                                 stream_event_t *event)
{
    keel_status_t status = bell_set(w, device, event);
    stream_event_h bell = status ? event->handle : w->bell;
    keel_status_release(status);
    STREAM_TWICE(status, device->api->event_sync(device->vendor, bell));
    return status;
}

static uint64_t watch(void *watcher)
{
    stream_watcher_t *w = watcher;
    stream_queue_t *q = w->queue;
    stream_device_t *device = stream_device(q->base.device);
    stream_event_t *event;
    while ((event = flight_asked(q, w))) {
        stream_entered_t entered;
        keel_status_t status = NULL;
        bool vendor = stream_enter(device, &entered);
        if (vendor) {
            status = event_sleep(w, device, event);
            stream_leave(&entered);
        }
        if (status)
            stream_device_lose(device, status);
        else if (vendor)
            stream_queue_retire(q, event->promise.number);
        promise_release(&event->promise); // may be what kept the queue; see stream_queue_destroy
        if (!vendor) break;
    }
    return KEEL_FOREVER;
}

void stream_watchers_init(stream_queue_t *q)
{
    for (int i = 0; i < STREAM_WATCHERS; i++) {
        q->watchers[i].queue = q;
        helper_init(&q->watchers[i].helper, "keel-watch", watch, &q->watchers[i]);
    }
}

void stream_watchers_wake(stream_queue_t *q, uint64_t number)
{
    lock_enter(&q->lock);
    // Under the lock one that is awake has yet to look, or is told to.
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

void stream_watchers_destroy(stream_queue_t *q)
{
    stream_device_t *device = stream_device(q->base.device);
    for (int i = 0; i < STREAM_WATCHERS; i++) {
        stream_watcher_t *w = &q->watchers[i];
        if (w->bell) device->api->event_destroy(device->vendor, w->bell);
        if (w->alarm) device->api->stream_destroy(device->vendor, w->alarm);
    }
}
