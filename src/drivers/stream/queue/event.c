// SPDX-License-Identifier: Apache-2.0
// Events: pooled, and counted as promises are. A thread that has one can ask after its queue as
// long as it is in flight.
#include "base/memory.h"
#include "base/status.h"
#include "drivers/stream/queue/queue.h"
#include "kit/object.h"

// Queues leave the device's list under its lock, after the last of their events.
stream_queue_t *stream_event_queue(stream_event_t *event)
{
    stream_device_t *device = event->device;
    stream_queue_t *queue = NULL;
    lock_enter(&device->lock);
    if (!atomic_load(&event->over) && object_hold(&event->queue->base.object)) queue = event->queue;
    lock_leave(&device->lock);
    return queue;
}

// Gives a list that ends with `last` back to the device, from where queues take all at once.
static void events_return(stream_device_t *device, stream_event_t *first, stream_event_t *last)
{
    // release: pairs with the acquire in stream_event_acquire.
    last->next = atomic_load_explicit(&device->spare, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&device->spare, &last->next, first,
                                                  memory_order_release, memory_order_relaxed)) {
    }
}

void stream_event_forget(promise_t *promise)
{
    stream_event_t *event = (stream_event_t *)(void *)promise;
    events_return(event->device, event, event);
}

static keel_status_t event_make(stream_device_t *device, stream_event_t **made)
{
    stream_event_t *event = mem_zalloc(sizeof *event);
    if (!event) return status_no_memory();
    keel_status_t status =
        device->api->event_create(device->vendor, STREAM_EVENT_POLLED, &event->handle);
    if (status) {
        mem_free(event);
        return status;
    }
    event->device = device;
    event->promise.ops = device->hooks->events;
    atomic_fetch_add(&device->events, 1);
    *made = event;
    return NULL;
}

keel_status_t stream_events_get(stream_device_t *device, uint32_t count, stream_event_t **list)
{
    // acquire: as in stream_event_acquire.
    stream_event_t *spare = atomic_exchange_explicit(&device->spare, NULL, memory_order_acquire);
    for (; count; count--) {
        stream_event_t *event = spare;
        if (!event) KEEL_TRY(event_make(device, &event));
        spare = event->next;
        event->next = *list;
        *list = event;
    }
    stream_events_put(device, spare);
    return NULL;
}

KEEL_HOT keel_status_t stream_event_acquire(stream_queue_t *queue, stream_event_t **acquired)
{
    stream_device_t *device = stream_queue_device(queue);
    // Where each submission is waited for before the next, the event that came back last is still
    // in the caches, here and at the vendor's.
    if (!queue->spare || stream_queue_is_quiet(queue)) {
        stream_event_t *back = atomic_exchange_explicit(&device->spare, NULL, memory_order_acquire);
        if (back) stream_events_put(device, queue->spare);
        if (back) queue->spare = back;
    }
    if (!queue->spare) KEEL_TRY(stream_events_get(device, 1, &queue->spare));
    stream_event_t *event = queue->spare;
    queue->spare = event->next;
    // relaxed: no other thread has it.
    atomic_store_explicit(&event->promise.refs, 1, memory_order_relaxed);
    atomic_store_explicit(&event->asked, false, memory_order_relaxed);
    atomic_store_explicit(&event->over, false, memory_order_relaxed);
    event->promise.device = &device->base;
    event->next = NULL;
    event->queue = queue;
    *acquired = event;
    return NULL;
}

void stream_events_release(stream_event_t *list)
{
    stream_event_t *first = NULL, *last = NULL;
    while (list) {
        stream_event_t *event = list;
        list = event->next;
        // Most often no other thread has it, or can get it any more. acquire: as promise_release.
        if (atomic_load_explicit(&event->promise.refs, memory_order_acquire) != 1) {
            promise_release(&event->promise);
            continue;
        }
        event->next = first;
        first = event;
        if (!last) last = event;
    }
    if (first) events_return(first->device, first, last);
}

void stream_events_put(stream_device_t *device, stream_event_t *list)
{
    stream_event_t *last = list, *none = NULL;
    // Most often there is nothing else. release: as in events_return.
    if (!list || atomic_compare_exchange_strong_explicit(
                     &device->spare, &none, list, memory_order_release, memory_order_relaxed))
        return;
    while (last->next) last = last->next;
    events_return(device, list, last);
}

void stream_events_destroy(stream_device_t *device, uint32_t most)
{
    stream_entered_t entered;
    bool vendor = stream_enter(device, &entered);
    // acquire: as in stream_event_acquire.
    stream_event_t *spare = atomic_exchange_explicit(&device->spare, NULL, memory_order_acquire);
    for (; spare && most; most--) {
        stream_event_t *event = spare;
        spare = event->next;
        if (vendor) device->api->event_destroy(device->vendor, event->handle);
        mem_free(event);
        atomic_fetch_sub(&device->events, 1);
    }
    stream_events_put(device, spare);
    if (vendor) stream_leave(&entered);
}
