// SPDX-License-Identifier: Apache-2.0
// A queue is one stream. This room knows its events in flight, the threads that issue to it, and
// those that sleep until an event comes.
//
// Events of a stream come in order, so the end of one is the end of all before it (flight.c). They
// are the promises of kit/promise.h: other streams wait for them and hosts poll them. For a host
// that sleeps, a watcher of the queue sleeps in the vendor's library (watcher.c, watch.c).
//
// One thread at a time issues to a stream, the issuer, and holds no lock meanwhile. A thread that
// finds another one issuing leaves its submission in the queue's inbox and goes (issuer.c).
#ifndef KEEL_SRC_DRIVERS_STREAM_QUEUE_QUEUE_H_
#define KEEL_SRC_DRIVERS_STREAM_QUEUE_QUEUE_H_

#include "drivers/stream/base/device.h"
#include "drivers/stream/queue/kept.h"
#include "kit/device.h"
#include "kit/inbox.h"
#include "kit/submission.h"

// A segment: a submission, as far as it was issued when an event was recorded behind it. It goes
// on, or ends, when the event comes (stream_hooks_t). A submission is one segment after another.
struct stream_segment_t {
    keel_submission_t base;
    stream_segment_t *next; // of the same event
    bool last;              // the submission ends with it
    bool frees;             // memory comes back with it
};

struct stream_event_t {
    promise_t promise;
    stream_event_t *next; // on a spare list, or in flight on its queue
    stream_device_t *device;
    stream_queue_t *queue; // there for sure until it is over; see stream_event_queue
    stream_event_h handle; // owned
    uint64_t load;         // of the queue up to here
    stream_segment_t *segments, **segments_last; // in flight: what goes on or ends with it
    bool frees;                                  // memory comes back with it, or came before it
    _Atomic bool asked;                          // a thread sleeps until it comes
    _Atomic bool over; // it has come, and its segments have gone on or ended
};

// A thread that sleeps for events that were asked for.
typedef struct stream_watcher_t {
    stream_queue_t *queue;
    helper_t helper;
    stream_h side;         // owned: a stream of its own, made when it is first needed
    stream_event_h sleeps; // owned: what it sleeps on
    uint64_t at;           // the event that it sleeps for; 0: it is awake
} stream_watcher_t;

// Most often there is one. Each of the others sleeps for an event that was asked for later and is
// older.
enum { STREAM_WATCHERS = 4 };

// Which thread goes on issuing to a queue after the one that stopped before the end.
typedef enum stream_turn_t {
    STREAM_TURN_ANY,    // the issuer, if there is one; else the next thread that submits
    STREAM_TURN_OWN,    // the queue's own thread, which may block in the vendor's library
    STREAM_TURN_DEVICE, // the device's thread, which takes one queue after another and never blocks
    STREAM_TURN_HELD,   // none until the queues are let go (memory/free.c)
} stream_turn_t;

// What a queue gave back and the vendor has not noticed yet.
typedef struct stream_returns_t {
    kept_t kept;           // by the last dealloca, and not yet freed
    _Atomic bool unmarked; // frees were issued behind the last event
    stream_event_t *last;  // retained: the last event that has come and has frees before it
} stream_returns_t;

struct stream_queue_t {
    keel_queue_t base;
    stream_queue_t *next, *previous; // in the device's list
    stream_h stream;                 // owned, unless adopted; see stream_queue_onto
    bool adopted;                    // it is the application's
    _Atomic bool dead;               // destroyed, and to be reaped by the keeper

    // The issuer's.
    inbox_t inbox;             // what is to be issued
    uint64_t most;             // load under way at most; 0: another thread is to go on
    bool patient;              // the issuer may block in the vendor's library
    stream_event_t *spare;     // owned: events to record
    stream_event_t *looked_at; // retained: the newest when the issuer last looked; NULL: none
    ring_t ring;
    struct stream_launch_slots_t *slots; // owned; run/launch.c
    // What other threads read of it.
    _Atomic uint32_t turn;      // stream_turn_t
    _Atomic uint64_t at;        // the submission that is being issued; 0: none
    _Atomic uint64_t load;      // room that was taken on the stream so far, in launches
    _Atomic uint32_t indirects; // of runs under way; run/indirect.c
    uint64_t recorded;          // events so far; written with the lock
    _Atomic bool unmarked;      // work was issued behind the last event
    stream_returns_t returns;   // `last` is guarded by the lock

    // Retiring what has come: one thread at a time, in order.
    lock_t lock;                           // for what is in flight, up to `recorded`
    stream_event_t *flight, **flight_last; // in order
    bool retiring;                         // a thread retires what has come
    uint64_t came;                         // events that have come, as far as is known
    _Atomic uint64_t over;                 // those that are retired
    _Atomic uint64_t load_over;

    // Threads, each made when it is first needed.
    stream_watcher_t watchers[STREAM_WATCHERS]; // what they sleep for is guarded by `lock`
    helper_t issuer;                            // issues what the stream would not take at once
    stream_watcher_t room; // what it sleeps with until there is room; not a thread of its own
    chores_t calls;        // of the application's, to be made
};

static inline stream_queue_t *stream_queue(const keel_queue_t *queue)
{
    return (stream_queue_t *)(uintptr_t)queue;
}

static inline stream_device_t *stream_queue_device(const stream_queue_t *queue)
{
    return stream_device(queue->base.device);
}

// As device_next_queue: the queue after `after`, retained; `after` is released.
static inline stream_queue_t *stream_queue_next(stream_device_t *device, stream_queue_t *after)
{
    return stream_queue(device_next_queue(&device->base, after ? &after->base : NULL));
}

// Whether a queue lost its last reference and is not taken apart yet. Under the device's lock.
static inline bool stream_queues_are_going(const stream_device_t *device)
{
    const stream_queue_t *q = device->queues;
    while (q && atomic_load(&q->base.object.refs)) q = q->next;
    return q;
}

#define STREAM_EACH_QUEUE(q, device)                                                               \
    for (stream_queue_t *q = stream_queue_next(device, NULL); q; q = stream_queue_next(device, q))

// event.c: events are pooled, and counted as promises are.

// Adds `count` events to a list: spare ones of the device, or new ones. Not fast. Entered.
keel_status_t stream_events_get(stream_device_t *device, uint32_t count, stream_event_t **list);
// Gives a list back to the device.
void stream_events_put(stream_device_t *device, stream_event_t *list);
// One to record next; the issuer's.
keel_status_t stream_event_acquire(stream_queue_t *queue, stream_event_t **event);
// Its queue, retained; NULL: the event is over, and the queue may be gone.
stream_queue_t *stream_event_queue(stream_event_t *event);
// Gives up the flight's references, of events that are over.
void stream_events_release(stream_event_t *list);
// Destroys `most` spare events of the device, or as many as there are.
void stream_events_destroy(stream_device_t *device, uint32_t most);
// As promise_ops_t.destroy.
void stream_event_forget(promise_t *promise);

// flight.c: what is under way on a stream, and its end.

typedef enum stream_mark_t {
    STREAM_MARK_FREES,    // without a segment: there are frees before it, and work behind
    STREAM_MARK_PARKS,    // the segment goes on when it comes
    STREAM_MARK_ENDS,     // the submission ends then, perhaps with a failure
    STREAM_MARK_PROMISES, // it ends then, surely without one: its points may be promised
} stream_mark_t;

// Records an event behind what was issued. From the return on the segment is no longer the
// caller's. The issuer's.
keel_status_t stream_queue_record(stream_queue_t *queue, stream_segment_t *segment,
                                  stream_mark_t mark);
// Ends a submission, which put nothing on the stream, with the last event in flight, if no work was
// issued behind that. False if there is none, and the segment is still the caller's. The issuer's.
bool stream_queue_join(stream_queue_t *queue, stream_segment_t *segment);
// Whether all that was recorded is retired; the issuer's.
static inline bool stream_queue_is_quiet(const stream_queue_t *queue)
{
    // acquire: pairs with the release in events_retire, so that what ended before has ended for
    // the thread that learns of what follows.
    return queue->recorded == atomic_load_explicit(&queue->over, memory_order_acquire);
}
// The event of that number has come, and with it all before: retires them. 0: retires what is known
// to have come. The caller, or something that it retires, keeps the queue.
void stream_queue_retire(stream_queue_t *queue, uint64_t number);
// Retires what is known to have come on all queues; on a lost device everything.
void stream_queues_retire(stream_device_t *device);
// Whether nothing is on the stream, as far as is known.
bool stream_queue_is_idle(stream_queue_t *queue);
// Asks the vendor how far the stream is: to the end if `whole`, else to the middle.
void stream_queue_poll(stream_queue_t *queue, bool whole);
// The event in the middle of what is in flight, or the last one, retained; NULL: there is none.
stream_event_t *stream_flight_get(stream_queue_t *queue, bool last);
// Has watchers sleep for all events in flight that bring memory back.
void stream_frees_watch(stream_device_t *device);

// watcher.c: the threads that sleep.

// `body` is what a watcher's helper does: stream_watch.
void stream_watchers_init(stream_queue_t *queue, uint64_t (*body)(void *watcher));
// A thread sleeps until the event of that number comes: wakes a watcher for it, unless one sleeps
// for an older event and looks after that. Without a thread the keeper retires it, only later.
void stream_watchers_wake(stream_queue_t *queue, uint64_t number);
// Whether a watcher sleeps for that event, or for an older one. Under the queue's lock.
bool stream_is_watched(const stream_queue_t *queue, uint64_t number);
// Blocks until the event has come. Entered.
keel_status_t stream_watcher_sleep(stream_watcher_t *watcher, stream_event_t *event);
void stream_watchers_stop(stream_queue_t *queue);
void stream_watchers_destroy(stream_queue_t *queue); // what they have of the vendor's; entered

// watch.c: what watchers do, and what hosts do with events.

uint64_t stream_watch(void *watcher);
extern const promise_ops_t stream_event_ops;

// issuer.c: one thread at a time issues to a stream.

// Issues a segment, now or soon.
void stream_queue_push(stream_queue_t *queue, stream_segment_t *segment);
// The same for the thread that has put the segment into the empty inbox, and keeps the queue.
void stream_queue_issue(stream_queue_t *queue, stream_segment_t *segment);
// What the queue's own thread and the device's do, as helpers.
uint64_t stream_queue_issue_own(void *queue);
uint64_t stream_queues_issue(void *device);
// Goes on with what was held up, if anything.
void stream_queue_go_on(stream_queue_t *queue);
// Gives the spare events of a queue that no thread issues to back to the device.
void stream_queue_shed(stream_queue_t *queue);
// Frees the memory that the queue keeps, if there is any; the issuer's.
void stream_kept_free(stream_queue_t *queue);
// The same for other threads: waits for the issuer, up to the deadline. Entered.
void stream_queue_yield(stream_queue_t *queue, uint64_t deadline);
// What is on the stream, as far as is known; the issuer's.
static inline uint64_t stream_queue_load(const stream_queue_t *queue)
{
    // relaxed: both only grow, and an old value of the second is on the safe side.
    return atomic_load_explicit(&queue->load, memory_order_relaxed) -
           atomic_load_explicit(&queue->load_over, memory_order_relaxed);
}
bool stream_queue_stays_full(stream_queue_t *queue, uint64_t room);
// Whether the stream would block the issuer if it issued more, and may not; the issuer's.
static inline bool stream_queue_is_full(stream_queue_t *queue)
{
    return __builtin_expect(stream_queue_load(queue) >= queue->most, 0) &&
           stream_queue_stays_full(queue, 1);
}
// The same for something that takes that much room, which may be more than a stream has: then the
// queue's own thread puts it onto the empty stream.
bool stream_queue_lacks(stream_queue_t *queue, uint64_t room);
// Whether the issuer may block; the issuer's.
static inline bool stream_queue_is_patient(const stream_queue_t *queue)
{
    return queue->patient;
}
// Whether the issuer must not block: then the queue's own thread goes on with the same command,
// which the caller is to leave as it is.
static inline bool stream_queue_puts_off(stream_queue_t *queue)
{
    bool patient = stream_queue_is_patient(queue);
    if (!patient) queue->most = 0;
    return !patient;
}
// Whether that was just found out.
static inline bool stream_queue_has_put_off(const stream_queue_t *queue)
{
    return !queue->most;
}
// Takes room on the stream; the issuer's.
static inline void stream_queue_take(stream_queue_t *queue, uint64_t room)
{
    // relaxed: one writer.
    uint64_t before = atomic_load_explicit(&queue->load, memory_order_relaxed);
    atomic_store_explicit(&queue->load, before + room, memory_order_relaxed);
}
// The stream, to put work on it that takes that much room; the issuer's. All work that takes room
// on the stream is put there by this.
static inline stream_h stream_queue_onto_for(stream_queue_t *queue, uint64_t room)
{
    stream_queue_take(queue, room);
    atomic_store_explicit(&queue->unmarked, true, memory_order_relaxed);
    return queue->stream;
}
// The same for a launch, and for a fill or copy.
static inline stream_h stream_queue_onto(stream_queue_t *queue)
{
    return stream_queue_onto_for(queue, 1);
}
static inline stream_h stream_queue_onto_copy(stream_queue_t *queue)
{
    return stream_queue_onto_for(queue, stream_queue_device(queue)->limits.quirks.transfer_room);
}

#endif
