// SPDX-License-Identifier: Apache-2.0
// The events of a queue that are in flight, and what happens when they come.
//
//     record --> flight --> known to have come (`came`) --> retired: its segments end --> over
//
// The thread that learns that an event has come notes it, and retires it and all before it. If
// another thread is retiring events of that queue, that thread goes on with these. So the
// submissions of a queue end in its order. None ends before what it waited for on other queues:
// those events have come as well, and are retired first. If another thread is just retiring them,
// the queue is left as it is, and that thread comes back to it (`held_up`).
#include <stddef.h>

#include "base/status.h"
#include "drivers/stream/queue/queue.h"

enum {
    LOOK_RUNS = 64,    // events after which submitting looks how far the stream is
    RETIRE_EVENTS = 64 // at once
};

static bool is_lost(const stream_queue_t *q)
{
    return stream_device_is_lost(stream_queue_device(q));
}

// The oldest event, if it is due to be retired; NULL: it is not. Under the lock.
static stream_event_t *flight_due(const stream_queue_t *q)
{
    uint64_t came = is_lost(q) ? UINT64_MAX : q->came;
    return q->flight && q->flight->promise.number <= came ? q->flight : NULL;
}

// An event of another queue that a segment of the event waited for, and that is not retired yet.
static stream_event_t *event_waits_for(const stream_event_t *event)
{
    for (const stream_segment_t *s = event->segments; s; s = s->next) {
        for (uint32_t i = 0; i < s->base.wait_count; i++) {
            stream_event_t *other = (stream_event_t *)(void *)s->base.waits[i].waiter.promise;
            // acquire: pairs with events_retire.
            if (other && !atomic_load_explicit(&other->over, memory_order_acquire)) return other;
        }
    }
    return NULL;
}

// Takes events out of flight that can be retired, some of them. If there are none but one is due,
// *first is what it waits for.
static stream_event_t *flight_take(stream_queue_t *q, stream_event_t **first)
{
    stream_event_t *list = NULL, **end = &list, *event, *freed = NULL;
    bool lost = is_lost(q);
    *first = NULL;
    for (int i = 0; i < RETIRE_EVENTS && (event = flight_due(q)); i++) {
        *first = lost ? NULL : event_waits_for(event);
        if (*first) break;
        atomic_store_explicit(&q->load_over, event->load, memory_order_relaxed);
        q->flight = event->next;
        if (!q->flight) q->flight_last = &q->flight;
        if (event->frees) freed = event;
        *end = event;
        end = &event->next;
    }
    *end = NULL;
    if (freed) { // before any thread knows of these frees
        promise_retain(&freed->promise);
        if (q->returns.last) promise_release(&q->returns.last->promise);
        q->returns.last = freed;
    }
    return list;
}

static void events_retire(stream_queue_t *q, stream_event_t *list)
{
    const stream_hooks_t *hooks = stream_queue_device(q)->hooks;
    bool lost = is_lost(q);
    keel_submission_t *ended = NULL, **last = &ended;
    for (stream_event_t *event = list; event; event = event->next) {
        if (!event->segments) reclaim_end(&stream_queue_device(q)->reclaim, 1);
        while (event->segments) {
            stream_segment_t *segment = event->segments;
            event->segments = segment->next;
            // What goes on on the host finds all ended that came before.
            if (ended && !segment->last) {
                submission_end_all(ended);
                ended = NULL;
                last = &ended;
            }
            if (lost) {
                hooks->lost(segment);
            } else if (hooks->over(segment)) {
                *last = &segment->base;
                last = &segment->base.next;
            }
        }
    }
    if (ended) submission_end_all(ended);
    for (stream_event_t *event = list; event; event = event->next) {
        // release: pairs with event_waits_for and stream_queue_is_quiet. A thread that finds the
        // event over finds its segments ended.
        atomic_store_explicit(&event->over, true, memory_order_release);
        atomic_store_explicit(&q->over, event->promise.number, memory_order_release);
    }
    stream_events_release(list); // the submissions had promised them until they ended
}

// Retires an event that has come, and releases it. False if another thread is at it.
static bool event_is_retired(stream_device_t *device, stream_event_t *event)
{
    stream_queue_t *q = stream_event_queue(event);
    if (q) {
        stream_queue_retire(q, event->promise.number);
        keel_queue_release(&q->base);
    }
    if (!atomic_load(&event->over)) atomic_exchange(&device->held_up, true);
    bool over = atomic_load(&event->over);
    promise_release(&event->promise);
    return over;
}

// Retires what has come, unless another thread is at it. Returns what the rest waits for, retained;
// NULL: nothing.
static stream_event_t *queue_retire(stream_queue_t *q, uint64_t number, bool *retired)
{
    stream_event_t *first = NULL, *list;
    lock_enter(&q->lock);
    if (q->came < number) q->came = number;
    if (q->retiring) {
        lock_leave(&q->lock);
        return NULL;
    }
    while ((list = flight_take(q, &first))) {
        q->retiring = *retired = true;
        lock_leave(&q->lock);
        events_retire(q, list);
        lock_enter(&q->lock);
    }
    q->retiring = false;
    if (first) promise_retain(&first->promise);
    lock_leave(&q->lock);
    return first;
}

void stream_queue_retire(stream_queue_t *q, uint64_t number)
{
    stream_device_t *device = stream_queue_device(q);
    stream_event_t *first;
    bool retired = false;
    do {
        first = queue_retire(q, number, &retired);
    } while (first && event_is_retired(device, first));
    // Queues that were left as they were wait for what was just retired, perhaps. Pairs with the
    // exchange in event_is_retired: the later of the two sees what the other wrote.
    if (retired && atomic_exchange(&device->held_up, false)) stream_queues_retire(device);
}

// Looks whether the event has come that was the newest at the last look. One question tells of
// many ends, and of those soon enough that their memory is used again while it is in the caches.
static void queue_look_back(stream_queue_t *q, stream_event_t *newest)
{
    stream_event_t *event = q->looked_at;
    q->looked_at = newest;
    if (!event) return;
    event->promise.ops->poll(&event->promise);
    promise_release(&event->promise);
}

// Behind each event: looks now and then how far the stream is, and has the keeper do so when
// nothing more comes.
static void queue_look(stream_queue_t *q, stream_device_t *device, stream_event_t *newest)
{
    if (__builtin_expect(newest != NULL, 0)) queue_look_back(q, newest);
    // relaxed: a keeper that misses it sees it in the next round.
    if (__builtin_expect(!atomic_load_explicit(&device->active, memory_order_relaxed), 0) &&
        !atomic_exchange(&device->active, 1))
        helper_wake(&device->keeper);
}

// Asks for an event in flight if an alloca waits for memory that comes back with it. Under the
// lock.
static bool frees_ask(stream_device_t *device, stream_event_t *event)
{
    // relaxed: a hungry run says so, and then looks at the flight under the lock.
    if (__builtin_expect(!event->frees, 1) ||
        !atomic_load_explicit(&device->reclaim.hungry, memory_order_relaxed))
        return false;
    atomic_store(&event->asked, true);
    return true;
}

void stream_frees_watch(stream_device_t *device)
{
    STREAM_EACH_QUEUE(q, device)
    {
        uint64_t oldest = 0;
        lock_enter(&q->lock);
        for (stream_event_t *event = q->flight; event; event = event->next)
            if (frees_ask(device, event) && !oldest) oldest = event->promise.number;
        lock_leave(&q->lock);
        if (oldest) stream_watchers_wake(q, oldest);
    }
}

KEEL_HOT keel_status_t stream_queue_record(stream_queue_t *q, stream_segment_t *segment,
                                           stream_mark_t mark)
{
    stream_device_t *device = stream_queue_device(q);
    stream_event_t *event;
    KEEL_TRY(stream_event_acquire(q, &event));
    keel_status_t status = device->api->event_record(device->vendor, event->handle, q->stream);
    if (__builtin_expect(status != NULL, 0)) {
        promise_release(&event->promise);
        return status;
    }
    event->segments = segment;
    event->segments_last = segment ? &segment->next : &event->segments;
    if (segment) segment->next = NULL;
    stream_queue_take(q, device->limits.quirks.event_room);
    event->load = atomic_load_explicit(&q->load, memory_order_relaxed);
    event->promise.number = q->recorded + 1;
    if (mark == STREAM_MARK_ENDS || !segment)
        event->promise.device = NULL; // as stream_queue_join minds
    // The submission waits for it; or others wait for its signals, and know of no event to ask for.
    if (mark == STREAM_MARK_PARKS || (mark == STREAM_MARK_ENDS && segment->base.signal_count))
        atomic_store(&event->asked, true);
    // Other threads may wait for the event from here on, but only what is in flight ends: until
    // then the segment is ours.
    if (__builtin_expect(mark > STREAM_MARK_PARKS, 1))
        submission_promise(&segment->base, &event->promise);
    event->frees = atomic_load_explicit(&q->returns.unmarked, memory_order_relaxed) ||
                   (segment && segment->frees);
    lock_enter(&q->lock);
    // relaxed: it is in flight from here on.
    atomic_store_explicit(&q->unmarked, false, memory_order_relaxed);
    atomic_store_explicit(&q->returns.unmarked, false, memory_order_relaxed);
    q->recorded++;
    *q->flight_last = event;
    q->flight_last = &event->next;
    uint64_t number = q->recorded;
    bool asked = frees_ask(device, event) || atomic_load(&event->asked), due = flight_due(q);
    stream_event_t *look = q->recorded % LOOK_RUNS ? NULL : event;
    if (look) promise_retain(&look->promise); // it is ours only as long as it is in flight
    lock_leave(&q->lock);
    // A thread that asked before did not find it, nor did one that knew that it had come.
    if (asked) stream_watchers_wake(q, number);
    if (__builtin_expect(due, 0)) stream_queue_retire(q, 0);
    queue_look(q, device, look);
    return NULL;
}

bool stream_queue_join(stream_queue_t *q, stream_segment_t *segment)
{
    stream_event_t *event = NULL;
    lock_enter(&q->lock);
    if (q->flight && !q->retiring)
        event = (stream_event_t *)(void *)((char *)q->flight_last - offsetof(stream_event_t, next));
    if (event && !event->promise.device)
        event = NULL;              // promises nothing to queues, or has no segments
    if (event) q->retiring = true; // so that the event stays while the segment is added
    lock_leave(&q->lock);
    if (!event) return false;
    submission_promise(&segment->base, &event->promise);
    segment->next = NULL;
    *event->segments_last = segment;
    event->segments_last = &segment->next;
    lock_enter(&q->lock);
    q->retiring = false;
    event->frees |= segment->frees;
    uint64_t asked = frees_ask(stream_queue_device(q), event) ? event->promise.number : 0;
    bool due = flight_due(q);
    lock_leave(&q->lock);
    if (asked) stream_watchers_wake(q, asked);
    if (due) stream_queue_retire(q, 0);
    return true;
}

// The event so far down the flight, retained; NULL: none.
static stream_event_t *flight_at(stream_queue_t *q, uint64_t position)
{
    lock_enter(&q->lock);
    stream_event_t *event = q->flight;
    for (; event && position > 1 && event->next; position--) event = event->next;
    if (event) promise_retain(&event->promise);
    lock_leave(&q->lock);
    return event;
}

// Looks at one event of the flight; true if it has come.
static bool flight_look(stream_queue_t *q, uint64_t position)
{
    stream_event_t *event = flight_at(q, position);
    if (!event) return false;
    event->promise.ops->poll(&event->promise);
    lock_enter(&q->lock);
    bool came = event->promise.number <= q->came;
    lock_leave(&q->lock);
    promise_release(&event->promise);
    return came;
}

bool stream_queue_is_idle(stream_queue_t *q)
{
    lock_enter(&q->lock);
    bool idle = !q->flight && !atomic_load(&q->unmarked);
    lock_leave(&q->lock);
    return idle;
}

// How many events are in flight.
static uint64_t flight_count(stream_queue_t *q)
{
    uint64_t over = atomic_load_explicit(&q->over, memory_order_relaxed);
    lock_enter(&q->lock);
    uint64_t count = q->recorded - over;
    lock_leave(&q->lock);
    return count;
}

stream_event_t *stream_flight_get(stream_queue_t *q, bool last)
{
    uint64_t count = flight_count(q);
    return flight_at(q, last ? count : (count + 1) / 2);
}

void stream_queue_poll(stream_queue_t *q, bool whole)
{
    uint64_t count = flight_count(q);
    uint64_t middle = (count + 1) / 2, at = whole ? count : middle;
    while (at && !flight_look(q, at)) at = at > middle ? middle : at > 1; // the first, or none
}

void stream_queues_retire(stream_device_t *device)
{
    STREAM_EACH_QUEUE(q, device)
    stream_queue_retire(q, 0);
}
