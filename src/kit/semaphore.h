// SPDX-License-Identifier: Apache-2.0
// Semaphores on the host: the state behind keel_semaphore_t, and waiters on its points.
//
// There are two kinds. A timeline (timeline.c) is one value, and a point is reached when the value
// is. A ledger (ledger.c) belongs to a queue: each of its points is a submission that ends by
// itself, in any order, well or not.
//
// A waiter is a record of the caller's that is told once when its point is reached or fails. It is
// told without locks held, by the thread that signals.
#ifndef KEEL_SRC_KIT_SEMAPHORE_H_
#define KEEL_SRC_KIT_SEMAPHORE_H_

#include <keel/driver/object.h>

#include "base/heap.h"
#include "base/lock.h"

typedef struct waiter_t waiter_t;

// `failure` is borrowed, NULL if the point was reached. The waiter is no longer linked and may be
// reused or freed.
typedef void (*waiter_fn)(waiter_t *waiter, keel_status_t failure);

struct waiter_t {
    heap_node_t node; // key: the value; `next` also links waiters that are about to be told
    waiter_fn fire;
    bool linked;  // guarded by the semaphore's lock
    bool for_all; // on a ledger: wait for the value (all up to here), not for the point
};

typedef struct ledger_t ledger_t;

struct keel_semaphore_t {
    keel_object_t object;
    keel_device_t *device; // retained, by ledgers borrowed
    char *name;            // owned
    ledger_t *ledger;      // owned; NULL in timelines
    struct {
        keel_semaphore_t *next, *previous; // in keel_device_t.all_semaphores
    } link;

    _Alignas(64) _Atomic uint64_t value; // and TIMELINE_FAILED
    _Atomic uint64_t next_wait;          // the smallest value awaited; UINT64_MAX: none
    struct keel_status *_Atomic failure; // owned, set once
    lock_t lock;                         // for the waiters
    heap_t waiters;
};

// Set in the value of a timeline that has failed: from then on the value stands still.
#define TIMELINE_FAILED (UINT64_C(1) << 63)

typedef enum point_state_t {
    POINT_PENDING,
    POINT_REACHED,
    POINT_FAILED,
} point_state_t;

// Where a point stands. If it failed and `failure` is not NULL, *failure is a new reference to the
// cause.
point_state_t point_poll(keel_point_t point, keel_status_t *failure);

// Whether it is known without taking the lock that the point was reached; false says nothing.
bool point_is_past(keel_point_t point);

// Links `waiter` (fire and for_all set) to a pending point, to be told later: POINT_PENDING. Else
// it is not linked and the result is as of point_poll.
point_state_t point_watch(keel_point_t point, waiter_t *waiter, keel_status_t *failure);

// Unlinks it. False if it is not linked: it was told, or is being told right now by another thread.
bool point_unwatch(keel_point_t point, waiter_t *waiter);

// Timelines.
void timeline_init(keel_semaphore_t *semaphore, uint64_t initial);
// Moves the value up. An error (new reference) if it is not larger, or the semaphore has failed.
keel_status_t timeline_signal(keel_semaphore_t *semaphore, uint64_t value);
// Fails all points not reached. Consumes `cause`; only the first one is kept.
void timeline_fail(keel_semaphore_t *semaphore, keel_status_t cause);
point_state_t timeline_watch(keel_semaphore_t *semaphore, waiter_t *waiter, keel_status_t *failure);

// Ledgers.
keel_status_t ledger_create(keel_semaphore_t *semaphore);
void ledger_destroy(keel_semaphore_t *semaphore);
typedef enum ledger_result_t {
    LEDGER_OPENED,
    LEDGER_NO_MEMORY,
    LEDGER_CLOSED,
} ledger_result_t;

// Enters a new point, pending, under semaphore->lock.
ledger_result_t ledger_open(keel_semaphore_t *semaphore, uint64_t *value);
// From now on none is taken.
void ledger_close(keel_semaphore_t *semaphore);
// Takes it back: nobody was told of it.
void ledger_cancel(keel_semaphore_t *semaphore, uint64_t value);
// Ends it, under semaphore->lock; `failure` is borrowed. Returns whom to tell, without the lock:
// those who wait for this point, with the failure, and those who wait for all up to some value.
typedef struct ledger_ended_t {
    waiter_t *waiters, *for_all;
} ledger_ended_t;
ledger_ended_t ledger_end(keel_semaphore_t *semaphore, uint64_t value, keel_status_t failure);
uint64_t ledger_last(keel_semaphore_t *semaphore); // the newest point
bool ledger_is_past(keel_point_t point);
point_state_t ledger_poll(keel_point_t point, keel_status_t *failure);
point_state_t ledger_watch(keel_point_t point, waiter_t *waiter, keel_status_t *failure);
bool ledger_unwatch(keel_point_t point, waiter_t *waiter);

// Shared by both, under semaphore->lock: takes all waiters up to `value` out of the heap, linked by
// node.next.
waiter_t *waiters_take(keel_semaphore_t *semaphore, uint64_t value);
void waiters_add(keel_semaphore_t *semaphore, waiter_t *waiter);
bool waiters_remove(keel_semaphore_t *semaphore, waiter_t *waiter);
// Without the lock: tells a list of waiters.
void waiters_fire(waiter_t *list, keel_status_t failure);

#endif
