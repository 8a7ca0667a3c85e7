// SPDX-License-Identifier: Apache-2.0
// Events: pooled, and counted as promises are. One that is recorded holds its queue, so that
// whoever has it can ask the queue about it.
#include "drivers/stream/stream.h"

#include "base/memory.h"
#include "base/status.h"
#include "kit/object.h"

enum { POLL_NS = 50000 }; // a host that waits longer had better sleep

static stream_event_t *event_of(promise_t *promise)
{
    return (stream_event_t *)(void *)promise;
}

static void event_poll(promise_t *promise)
{
    stream_event_t *event = event_of(promise);
    // acquire: pairs with stream_queue_retire.
    if (atomic_load_explicit(&event->over, memory_order_acquire)) return;
    stream_device_t *device = stream_device(promise->device);
    stream_entered_t entered;
    bool over = false;
    if (!stream_enter(device, &entered)) return;
    keel_status_t status = device->api->event_query(device->vendor, event->handle, &over);
    stream_leave(&entered);
    if (status)
        stream_device_lose(device, status);
    else if (over)
        stream_queue_retire(event->queue, event->number);
}

static void event_ask(promise_t *promise)
{
    stream_event_t *event = event_of(promise);
    if (atomic_exchange(&event->asked, true) || atomic_load(&event->over)) return;
    // Without a thread the keeper still ends it, only later.
    stream_helper_wake(&event->queue->watcher);
}

// Back to the pool.
static void event_destroy(promise_t *promise)
{
    stream_event_t *event = event_of(promise);
    stream_device_t *device = stream_device(promise->device);
    stream_queue_t *queue = event->queue;
    event->queue = NULL;
    lock_enter(&device->lock);
    event->next = device->spare_events;
    device->spare_events = event;
    lock_leave(&device->lock);
    keel_queue_release(&queue->base);
}

const promise_ops_t stream_promise_ops = {event_destroy, event_poll, event_ask, POLL_NS};

static stream_event_t *event_take(stream_device_t *device)
{
    lock_enter(&device->lock);
    stream_event_t *event = device->spare_events;
    if (event) device->spare_events = event->next;
    lock_leave(&device->lock);
    return event;
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
    event->promise.device = &device->base;
    event->promise.ops = &stream_promise_ops;
    *made = event;
    return NULL;
}

keel_status_t stream_events_stock(stream_device_t *device, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        stream_event_t *event;
        KEEL_TRY(event_make(device, &event));
        lock_enter(&device->lock);
        event->next = device->spare_events;
        device->spare_events = event;
        lock_leave(&device->lock);
    }
    return NULL;
}

keel_status_t stream_event_acquire(stream_queue_t *queue, stream_event_t **acquired)
{
    stream_device_t *device = stream_device(queue->base.device);
    stream_event_t *event = event_take(device);
    if (!event) KEEL_TRY(event_make(device, &event));
    atomic_store_explicit(&event->promise.refs, 1, memory_order_relaxed);
    atomic_store_explicit(&event->asked, false, memory_order_relaxed);
    atomic_store_explicit(&event->over, false, memory_order_relaxed);
    event->next = NULL;
    event->queue = queue;
    object_retain(&queue->base.object);
    *acquired = event;
    return NULL;
}

void stream_events_destroy(stream_device_t *device)
{
    stream_entered_t entered;
    bool vendor = stream_enter(device, &entered);
    while (device->spare_events) {
        stream_event_t *event = device->spare_events;
        device->spare_events = event->next;
        if (vendor) device->api->event_destroy(device->vendor, event->handle);
        mem_free(event);
    }
    if (vendor) stream_leave(&entered);
}
