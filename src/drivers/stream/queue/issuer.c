// SPDX-License-Identifier: Apache-2.0
// One thread at a time issues to a stream: the issuer.
//
//     inbox empty: the thread that submits issues, until the inbox is empty again
//       too much, or the device is held up:  another thread has the turn (stream_turn_t)
//         the stream is full, or the vendor would block:   the queue's own thread
//         the thread has issued much for others:           the device's thread
//         memory is given back:                            whichever thread ends that
#include <sched.h>

#include "base/clock.h"
#include "base/status.h"
#include "drivers/stream/queue/queue.h"
#include "kit/object.h"

enum { ISSUE_RUNS = 64 }; // that one thread issues for others, before another thread goes on

void stream_kept_free(stream_queue_t *queue)
{
    stream_device_t *device = stream_queue_device(queue);
    uint64_t handle = kept_handle(&queue->returns.kept);
    if (!handle) return;
    keel_status_t status = device->api->pool_free(device->vendor, queue->stream, handle);
    atomic_store_explicit(&queue->returns.unmarked, true, memory_order_relaxed);
    kept_take(&queue->returns.kept); // refused or not, it may be free
    keel_status_release(stream_device_note(device, status));
}

// Sleeps until half of what is in flight has come, or all if `room` is more than a stream has.
// False if there is nothing that can be slept for.
static bool room_await(stream_queue_t *q, uint64_t room)
{
    stream_device_t *device = stream_queue_device(q);
    // Behind a long recording there is no event yet.
    if (atomic_load_explicit(&q->unmarked, memory_order_relaxed)) {
        reclaim_begin(&device->reclaim);
        keel_status_t status = stream_queue_record(q, NULL, STREAM_MARK_FREES);
        if (status) reclaim_end(&device->reclaim, 1);
        keel_status_release(stream_device_note(device, status));
    }
    stream_event_t *event = stream_flight_get(q, room > device->most_pending);
    if (!event) return false;
    keel_status_t status = stream_watcher_sleep(&q->room, event);
    if (status)
        stream_device_lose(device, status);
    else
        stream_queue_retire(q, event->promise.number);
    promise_release(&event->promise);
    return !status;
}

// What needs more room than a stream has finds it on an empty one, if the issuer may block there.
static bool has_room(const stream_queue_t *q, uint64_t room)
{
    uint64_t load = stream_queue_load(q);
    return room <= q->most ? load <= q->most - room : q->patient && !load;
}

bool stream_queue_stays_full(stream_queue_t *q, uint64_t room)
{
    stream_queue_poll(q, false);
    // The queue's own thread waits here, where it holds up no other stream.
    while (q->patient && !has_room(q, room))
        if (!room_await(q, room)) return false;
    return !has_room(q, room);
}

bool stream_queue_lacks(stream_queue_t *q, uint64_t room)
{
    bool lacks = !has_room(q, room) && stream_queue_stays_full(q, room);
    if (lacks) q->most = 0;
    return lacks;
}

// Takes the turn from the thread that was to have it. False if that thread has taken it itself.
static bool turn_take(stream_queue_t *q, uint32_t from)
{
    return atomic_compare_exchange_strong(&q->turn, &from, STREAM_TURN_ANY);
}

// Leaves the turn to the thread that holds all queues up. False if none does any more.
static bool queue_hold(stream_queue_t *q, const stream_device_t *device)
{
    atomic_store(&q->turn,
                 STREAM_TURN_HELD); // then look; queues_let_go does it the other way round
    return atomic_load(&device->hold.on) || !turn_take(q, STREAM_TURN_HELD);
}

static stream_segment_t *inbox_next(stream_queue_t *q)
{
    return (stream_segment_t *)(void *)inbox_take(&q->inbox);
}

// Issues a segment, if given, and what is in the inbox. False if that was too much: the rest, and
// the right to issue it, are still there. A patient thread may block in the vendor's library.
KEEL_HOT static bool queue_drain(stream_queue_t *q, stream_segment_t *segment, bool patient)
{
    stream_device_t *device = stream_queue_device(q);
    stream_entered_t entered;
    bool vendor = stream_enter(device, &entered), enough = false, held = false;
    bool unbound = device->options.serial || (patient && !device->limits.quirks.full_shared);
    q->patient = patient || device->options.serial;
    q->most = unbound ? UINT64_MAX : device->most_pending;
    for (uint32_t i = 0; !enough && (segment || (segment = inbox_next(q))); i++, segment = NULL) {
        held = atomic_load(&device->hold.on); // seq_cst: pairs with stream_may_free
        enough = held || (!patient && i >= ISSUE_RUNS) || stream_queue_is_full(q);
        // relaxed: for messages only.
        atomic_store_explicit(&q->at, segment->base.id, memory_order_relaxed);
        inbox_set_ours(&q->inbox, true);
        if (__builtin_expect(enough || !device->hooks->go(segment), 0))
            inbox_put_back(&q->inbox, &segment->base);
        inbox_set_ours(&q->inbox, false);
        atomic_store_explicit(&q->at, 0, memory_order_relaxed);
    }
    if (__builtin_expect(vendor, 1)) stream_leave(&entered);
    return held ? queue_hold(q, device) : !enough;
}

// Leaves the rest to the queue's own thread. If there is none, the caller issues it, and may block.
static void leave_to_own(stream_queue_t *q)
{
    atomic_store(&q->turn, STREAM_TURN_OWN);
    if (!helper_wake(&q->issuer)) stream_queue_issue_own(q);
}

// Leaves the rest to the device's thread.
static void leave_to_device(stream_queue_t *q)
{
    atomic_store(&q->turn, STREAM_TURN_DEVICE);
    bool woken = helper_wake(&stream_queue_device(q)->issuer);
    if (!woken && turn_take(q, STREAM_TURN_DEVICE)) leave_to_own(q);
}

void stream_queue_issue(stream_queue_t *q, stream_segment_t *segment)
{
    if (__builtin_expect(queue_drain(q, segment, false), 1)) return;
    if (stream_queue_is_full(q))
        leave_to_own(q);
    else
        leave_to_device(q);
}

uint64_t stream_queues_issue(void *argument)
{
    stream_device_t *device = argument;
    STREAM_EACH_QUEUE(q, device)
    if (turn_take(q, STREAM_TURN_DEVICE)) stream_queue_issue(q, NULL);
    return KEEL_FOREVER;
}

void stream_queue_go_on(stream_queue_t *q)
{
    if (turn_take(q, STREAM_TURN_HELD)) stream_queue_issue(q, NULL);
}

void stream_queue_shed(stream_queue_t *q)
{
    if (!inbox_claim(&q->inbox)) return;
    stream_events_put(stream_queue_device(q), q->spare);
    q->spare = NULL;
    if (!inbox_unclaim(&q->inbox)) leave_to_device(q);
}

void stream_queue_yield(stream_queue_t *q, uint64_t deadline)
{
    // What is issued may end, and the same thread may then issue, elsewhere, what waited for that.
    bool ours = inbox_is_ours(&q->inbox), claimed = false;
    while (kept_handle(&q->returns.kept) && !ours && !(claimed = inbox_claim(&q->inbox)) &&
           keel_now_ns() < deadline)
        sched_yield();
    if (ours || claimed) stream_kept_free(q);
    if (claimed && !inbox_unclaim(&q->inbox)) leave_to_device(q);
}

void stream_queue_push(stream_queue_t *q, stream_segment_t *segment)
{
    if (!inbox_put(&q->inbox, &segment->base)) return;
    object_retain(&q->base.object); // what is issued may end, and the queue with it
    if (waiters_fired() <= ISSUE_RUNS) {
        stream_queue_issue(q, segment);
    } else {
        inbox_put_back(&q->inbox, &segment->base);
        leave_to_device(q);
    }
    keel_queue_release(&q->base);
}

uint64_t stream_queue_issue_own(void *queue)
{
    stream_queue_t *q = queue;
    if (!turn_take(q, STREAM_TURN_OWN)) return KEEL_FOREVER;
    object_retain(&q->base.object);
    while (!queue_drain(q, NULL, true)) continue;
    keel_queue_release(&q->base);
    return KEEL_FOREVER;
}
