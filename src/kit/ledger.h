// SPDX-License-Identifier: Apache-2.0
// The timeline of a queue: one point per submission, ended in any order.
//
//      ended                     last
//        |                         |
//     ...E  p  E  p  p  E  E  p  p  p        E ended, p pending: a window of slots in a ring
//
// Up to `ended` all have ended, up to semaphore->value all well: that stands still from the first
// failure on, and until then a finished point is seen without the lock. A few that stay pending
// while thousands after them come and end are taken out of the ring and listed by themselves:
// `late`, up to `base`, where the ring begins. Which points failed is kept as ranges of values with
// one cause, few as failures are. A queue that goes on failing keeps the LEDGER_FAILURES newest at
// least, and of the others that they failed, without the causes (marks.h). If there is no memory
// for that, all up to there count as failed: what is not known is never taken for success.
//
// Every submission passes through here, so what it always needs is inline.
#ifndef KEEL_SRC_KIT_LEDGER_H_
#define KEEL_SRC_KIT_LEDGER_H_

#include "base/marks.h"
#include "kit/semaphore.h"

typedef struct slot_t {
    waiter_t *waiters;        // doubly linked by node.next and node.previous
    keel_submission_t *owner; // NULL: it has ended
    promise_t *promise;       // of the submission, which keeps it; NULL: none
} slot_t;

typedef struct late_t {
    uint64_t value;
    slot_t slot;
} late_t;

enum { LEDGER_FAILURES = 16384 }; // as <keel/semaphore.h> says

typedef struct failed_range_t {
    uint64_t first, last;
    keel_status_t cause; // owned
} failed_range_t;

// Guarded by the semaphore's lock.
typedef struct ledger_t {
    keel_semaphore_t semaphore; // `last` is the newest point, written under the lock
    slot_t *slots;              // owned; of value v: slots[v & mask], for base < v <= last
    uint64_t mask;
    uint64_t base;  // at least `ended`; up to here all have ended or are late
    uint64_t room;  // so many may be pending; with one more ledger_grow is due
    uint64_t ended; // up to here all have, well or not
    bool closed;    // takes no more
    struct {
        uint64_t value;
        keel_status_t cause; // owned; NULL: none ever failed
    } first;                 // that failed, in the order of points
    late_t *late;            // owned; sorted; of these the first is pending, if there is any
    size_t late_first, late_end;
    uint32_t late_capacity;
    failed_range_t *failed; // owned; sorted, apart from each other
    size_t failed_count, failed_capacity;
    marks_t forgotten; // that failed with a cause that is no longer kept
    uint64_t unknown;  // up to here it was not noted which these are
} ledger_t;

// A new one, without object and device. The functions below take the semaphore of one.
keel_status_t ledger_create(keel_semaphore_t **semaphore) KEEL_MUST_USE;

static inline ledger_t *ledger_of(keel_semaphore_t *semaphore)
{
    return (ledger_t *)(void *)semaphore;
}

// The newest point.
static inline uint64_t ledger_last(keel_semaphore_t *semaphore)
{
    // relaxed: as in point_exists.
    return atomic_load_explicit(&semaphore->last, memory_order_relaxed);
}

// Of a late one, under the lock; NULL: it is none.
slot_t *ledger_late(const ledger_t *ledger, uint64_t value);

// Of one up to `last`, under the lock; NULL, or without an owner: it has ended.
static inline slot_t *ledger_slot(const ledger_t *ledger, uint64_t value)
{
    if (__builtin_expect(value <= ledger->base, 0)) return ledger_late(ledger, value);
    return &ledger->slots[value & ledger->mask];
}

typedef enum ledger_result_t {
    LEDGER_OPENED,
    LEDGER_NO_MEMORY,
    LEDGER_CLOSED,
} ledger_result_t;

// Makes room for one more point that may fail, under the lock.
ledger_result_t ledger_grow(keel_semaphore_t *semaphore);

// Enters a new point, pending, under semaphore->lock; `owner` is whose end it stands for.
static inline ledger_result_t ledger_open(keel_semaphore_t *semaphore, keel_submission_t *owner,
                                          uint64_t *value)
{
    ledger_t *ledger = ledger_of(semaphore);
    uint64_t last = ledger_last(semaphore), pending = last - ledger->base;
    if (__builtin_expect(pending >= ledger->room, 0)) {
        ledger_result_t grown = ledger_grow(semaphore);
        if (grown != LEDGER_OPENED) return grown;
    }
    *value = last + 1;
    ledger->slots[(last + 1) & ledger->mask] = (slot_t){.owner = owner};
    atomic_store_explicit(&semaphore->last, last + 1, memory_order_relaxed);
    return LEDGER_OPENED;
}

// The owner of the first pending point after *value, which becomes its value, under
// semaphore->lock; NULL: there is none.
keel_submission_t *ledger_next(keel_semaphore_t *semaphore, uint64_t *value);
// From now on none is taken.
void ledger_close(keel_semaphore_t *semaphore);

// Moves the base to where the first point in the ring is pending, and returns it.
static inline uint64_t ledger_advance(keel_semaphore_t *semaphore)
{
    ledger_t *ledger = ledger_of(semaphore);
    uint64_t base = ledger->base, last = ledger_last(semaphore);
    while (base < last && !ledger->slots[(base + 1) & ledger->mask].owner) base++;
    return ledger->base = base;
}

// Up to where all have ended, with late ones.
uint64_t ledger_late_value(ledger_t *ledger);

void ledger_note_failure(ledger_t *ledger, uint64_t value, keel_status_t cause);

// Whom to tell of an end, without the lock.
typedef struct ledger_ended_t {
    waiter_t *waiters;   // for this point, with its failure
    waiter_t *for_all;   // for all up to some value, which went well
    waiter_t *behind;    // and those of which one has failed
    keel_status_t cause; // of that one, owned; NULL: `behind` is empty
} ledger_ended_t;

// Takes those who wait for all up to some value, as far as all have ended.
void ledger_take_all(keel_semaphore_t *semaphore, ledger_ended_t *ended);

// Ends it, under semaphore->lock; `failure` is borrowed.
static inline ledger_ended_t ledger_end(keel_semaphore_t *semaphore, uint64_t value,
                                        keel_status_t failure)
{
    ledger_t *ledger = ledger_of(semaphore);
    slot_t *slot = ledger_slot(ledger, value);
    ledger_ended_t ended = {.waiters = slot->waiters};
    for (waiter_t *w = ended.waiters; w; w = (waiter_t *)(void *)w->node.next) w->linked = false;
    *slot = (slot_t){0};
    if (__builtin_expect(failure != NULL, 0)) ledger_note_failure(ledger, value, failure);
    uint64_t all = ledger_advance(semaphore);
    if (__builtin_expect(ledger->late_end != 0, 0)) all = ledger_late_value(ledger);
    ledger->ended = all;
    // release: pairs with the acquire in point_is_past; the submission's writes come before.
    if (__builtin_expect(!ledger->first.cause, 1))
        atomic_store_explicit(&semaphore->value, all, memory_order_release);
    if (__builtin_expect(semaphore->waiters.root && semaphore->waiters.root->key <= all, 0))
        ledger_take_all(semaphore, &ended);
    return ended;
}

// What the point hangs on, under the lock; borrowed, or NULL.
static inline promise_t *ledger_promise_of(keel_semaphore_t *semaphore, uint64_t value)
{
    if (value > ledger_last(semaphore)) return NULL;
    const slot_t *slot = ledger_slot(ledger_of(semaphore), value);
    return slot ? slot->promise : NULL;
}

// The point hangs on a promise, which the caller keeps until it ends the point.
void ledger_promise(keel_semaphore_t *semaphore, uint64_t value, promise_t *promise);
// Where a point stands. If it failed and `failure` is not NULL, *failure is a new reference to the
// cause.
point_state_t ledger_poll(keel_semaphore_t *semaphore, uint64_t value, keel_status_t *failure);
// Links a waiter to the pending point that it is aimed at, under semaphore->lock; false: it is not
// pending, or promised.
bool ledger_link(keel_semaphore_t *semaphore, waiter_t *waiter);

#endif
