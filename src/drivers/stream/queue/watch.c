// SPDX-License-Identifier: Apache-2.0
// What watchers do, and what hosts do with events: poll them, or ask a watcher to sleep for them.
#include "base/status.h"
#include "drivers/stream/queue/queue.h"

enum { POLL_NS = 50000 }; // a host that waits longer had better sleep

static void event_poll(promise_t *promise)
{
    stream_event_t *event = (stream_event_t *)(void *)promise;
    // acquire: pairs with events_retire.
    if (atomic_load_explicit(&event->over, memory_order_acquire)) return;
    stream_device_t *device = event->device;
    stream_entered_t entered;
    bool over = false;
    if (!stream_enter(device, &entered)) return;
    keel_status_t status = device->api->event_query(device->vendor, event->handle, &over);
    stream_leave(&entered);
    stream_queue_t *queue = over ? stream_event_queue(event) : NULL;
    // If the vendor refused to say, the event is asked after again.
    keel_status_release(stream_device_note(device, status));
    if (!queue) return;
    stream_queue_retire(queue, event->promise.number);
    keel_queue_release(&queue->base);
}

static void event_ask(promise_t *promise)
{
    stream_event_t *event = (stream_event_t *)(void *)promise;
    if (atomic_exchange(&event->asked, true)) return;
    stream_queue_t *queue = stream_event_queue(event);
    if (!queue) return;
    stream_watchers_wake(queue, event->promise.number);
    keel_queue_release(&queue->base);
}

static bool event_native(promise_t *promise, keel_native_t kind, uint64_t *handle)
{
    const stream_event_t *event = (stream_event_t *)(void *)promise;
    *handle = (uintptr_t)event->handle;
    return kind == event->device->limits.natives.event;
}

const promise_ops_t stream_event_ops = {.destroy = stream_event_forget,
                                        .poll = event_poll,
                                        .ask = event_ask,
                                        .poll_ns = POLL_NS,
                                        .native = event_native};

// The oldest event that a thread sleeps for, retained, and the watcher's from now on. NULL: there
// is none, or it has a watcher.
static stream_event_t *flight_asked(stream_queue_t *q, stream_watcher_t *w)
{
    lock_enter(&q->lock);
    w->at = 0;
    stream_event_t *event = q->flight;
    // Another thread retires those that are known to have come.
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

uint64_t stream_watch(void *watcher)
{
    stream_watcher_t *w = watcher;
    stream_queue_t *q = w->queue;
    stream_device_t *device = stream_queue_device(q);
    stream_event_t *event;
    while ((event = flight_asked(q, w))) {
        stream_entered_t entered;
        keel_status_t status = NULL;
        bool vendor = stream_enter(device, &entered);
        if (vendor) {
            status = stream_watcher_sleep(w, event);
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
