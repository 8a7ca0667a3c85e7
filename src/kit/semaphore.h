// SPDX-License-Identifier: Apache-2.0
// Semaphores on the host: the state behind keel_semaphore_t, and waiters on its points.
//
// There are two kinds. A timeline (timeline.c) is one value, and a point is reached when the value
// is. A ledger (ledger.h) belongs to a queue: each of its points is a submission that ends by
// itself, in any order, well or not.
//
// A waiter is a record of the caller's that is told once when its point is reached or fails. It is
// told without locks held, by the thread that signals.
//
// A point that is not reached yet may be promised (promise.h): it will be when something happens on
// a device. A waiter for work of that same device is told of the promise at once.
#ifndef KEEL_SRC_KIT_SEMAPHORE_H_
#define KEEL_SRC_KIT_SEMAPHORE_H_

#include <keel/driver/object.h>

#include "base/heap.h"
#include "base/lock.h"
#include "kit/promise.h"

typedef struct waiter_t waiter_t;

// `failure` is borrowed, NULL if the point was reached. The waiter is no longer linked and may be
// reused or freed.
typedef void (*waiter_fn)(waiter_t *waiter, keel_status_t failure);

struct waiter_t {
    heap_node_t node; // key: the value; `next` also links waiters that are about to be told
    waiter_fn fire;
    bool linked; // guarded by the semaphore's lock
    bool hangs;  // on a timeline: on a promise that will not do, and is in keel_semaphore_t.hanging
    bool for_all; // on a ledger: wait for the value (all up to here), not for the point
    bool asks;    // nobody polls for it: whoever promises the point must see to its end
    const keel_device_t *early; // a promise of this device will do; NULL: none will
    promise_t *promise;         // told early: what the point hangs on; retained
};

// A signal to come, on its semaphore's list while it is promised.
typedef struct signal_t {
    keel_point_t point;
    promise_t *promise; // of whoever signals, who keeps it; NULL: not promised
    struct signal_t *next, *previous;
    bool listed;
    bool overtaken; // somebody has signalled a larger value, who was not ordered
} signal_t;

typedef struct ledger_t ledger_t;

struct keel_semaphore_t {
    keel_object_t object;
    keel_device_t *device;     // retained, by ledgers borrowed
    char *name;                // owned
    ledger_t *ledger;          // owned; NULL in timelines
    struct outside_t *outside; // imported: the driver's (outside.h); else NULL
    struct {
        keel_semaphore_t *next, *previous; // in keel_device_t.all_semaphores
    } link;

    _Alignas(64) _Atomic uint64_t value; // and TIMELINE_FAILED
    _Atomic uint64_t next_wait;          // the smallest value awaited or promised; UINT64_MAX: none
    struct keel_status *_Atomic failure; // owned, set once
    lock_t lock;                         // for the waiters and the promises
    heap_t waiters;
    heap_t hanging; // waiters up to the last promise, which need not look at the next
    signal_t *promised, *promised_last; // values that grow; timelines only
    // Of one that has failed: up to here it was promised before, and goes on.
    _Atomic uint64_t granted;
};

// Set in the value of a timeline that has failed: from then on the value stands still, but for what
// was promised before.
#define TIMELINE_FAILED (UINT64_C(1) << 63)

typedef enum point_state_t {
    POINT_PENDING,
    POINT_REACHED,
    POINT_FAILED,
    POINT_PROMISED, // to a waiter that takes a promise for it: waiter->promise
} point_state_t;

// Where a point stands. If it failed and `failure` is not NULL, *failure is a new reference to the
// cause.
point_state_t point_poll(keel_point_t point, keel_status_t *failure);

// Whether it is known without taking the lock that the point was reached; false says nothing.
bool point_is_past(keel_point_t point);

// Links `waiter` (fire and for_all set) to a pending point, to be told later: POINT_PENDING. Else
// it is not linked and the result is as of point_poll.
point_state_t point_watch(keel_point_t point, waiter_t *waiter, keel_status_t *failure);

// What a pending point hangs on: a new reference, or NULL.
promise_t *point_promise(keel_point_t point);

// Looks whether the next value of the semaphore is there, if it is promised.
void point_chase(keel_semaphore_t *semaphore);

// From now on nobody polls for the waiter (asks). Returns what is to be asked for it, a new
// reference; NULL: nothing yet, and what is promised later is asked by itself.
promise_t *point_ask(keel_point_t point, waiter_t *waiter);

// Unlinks it. False if it is not linked: it was told, or is being told right now by another thread.
bool point_unwatch(keel_point_t point, waiter_t *waiter);

// Timelines.
void timeline_init(keel_semaphore_t *semaphore, uint64_t initial);
// Moves the value up. An error (new reference) if it is not larger, or the semaphore has failed.
keel_status_t timeline_signal(keel_semaphore_t *semaphore, uint64_t value);
// Why it cannot be signalled so: a new reference; NULL: it can, as far as is known without the
// lock.
keel_status_t timeline_refusal(keel_semaphore_t *semaphore, uint64_t value);
// Lists a signal whose promise is set, if its value is above all reached and promised so far.
// Signals that are ordered are promised in their order, so one that is not was not ordered.
void timeline_promise(signal_t *signal);
// The signal has come. One that was listed may come after a larger one that was, too: the host
// learns of the two in any order. Any other is as timeline_signal.
keel_status_t timeline_keep(signal_t *signal);
// It never will.
void timeline_break(signal_t *signal);
// Fails all points not reached. Consumes `cause`; only the first one is kept.
void timeline_fail(keel_semaphore_t *semaphore, keel_status_t cause);
point_state_t timeline_watch(keel_semaphore_t *semaphore, waiter_t *waiter, keel_status_t *failure);

// Shared by both, under semaphore->lock: takes all waiters up to `value` out of the heaps, linked
// by node.next in the order of values.
waiter_t *waiters_take(keel_semaphore_t *semaphore, uint64_t value);
void waiters_add(keel_semaphore_t *semaphore, waiter_t *waiter);
bool waiters_remove(keel_semaphore_t *semaphore, waiter_t *waiter);
// Puts one that was taken out on the list of those to be told, if the promise will do for it, which
// it then has. Else false, and sets *asks if nobody polls for it.
bool waiter_promise(waiter_t *waiter, promise_t *promise, waiter_t **told, bool *asks);
// Without the lock: tells a list of waiters.
void waiters_fire(waiter_t *list, keel_status_t failure);
// How many the calling thread has told so far, if it is just at it: one who only signals is not to
// do all the work that waited for it.
uint32_t waiters_fired(void);

#endif
