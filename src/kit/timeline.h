// SPDX-License-Identifier: Apache-2.0
// Timelines: semaphores whose value is kept in the host's memory. A point is reached when the value
// is; keel_semaphore_t is the whole struct.
//
// Kinds whose value is kept elsewhere, too, are built on this one: they have its waiters, its list
// of promised signals and its failure, and functions of their own where the other side matters.
#ifndef KEEL_SRC_KIT_TIMELINE_H_
#define KEEL_SRC_KIT_TIMELINE_H_

#include "kit/semaphore.h"

// A new one, without object, device and name, which the front door fills in.
keel_status_t timeline_create(uint64_t initial, keel_semaphore_t **semaphore) KEEL_MUST_USE;
void timeline_init(keel_semaphore_t *semaphore, uint64_t initial);

// As semaphore_ops_t has them.
keel_status_t timeline_value(keel_semaphore_t *semaphore, uint64_t *value);
keel_status_t timeline_signal(keel_semaphore_t *semaphore, uint64_t value);
void timeline_fail(keel_semaphore_t *semaphore, keel_status_t cause);
point_state_t timeline_watch(keel_semaphore_t *semaphore, waiter_t *waiter, keel_status_t *failure);
bool timeline_unwatch(keel_semaphore_t *semaphore, waiter_t *waiter);
promise_t *timeline_promised(keel_semaphore_t *semaphore, uint64_t value, bool all);
// Lists a signal whose promise is set, if its value is above all reached and promised so far.
// Signals that are ordered are promised in their order, so one that is not was not ordered.
void timeline_promise(signal_t *signal);
keel_status_t timeline_settle(signal_t *signal, keel_status_t failure);

// The two halves of timeline_settle. The signal has come: one that was listed may come after a
// larger one that was, too, for the host learns of the two in any order; any other is as
// timeline_signal.
keel_status_t timeline_keep(signal_t *signal);
// It never will.
void timeline_break(signal_t *signal);

// Where a point stands, as far as the host knows. If it failed and `failure` is not NULL, *failure
// is a new reference to the cause.
point_state_t timeline_poll(keel_semaphore_t *semaphore, uint64_t value, keel_status_t *failure);
// Why it cannot be signalled so: a new reference; NULL: it can, as far as is known without the
// lock.
keel_status_t timeline_refusal(keel_semaphore_t *semaphore, uint64_t value);

// For kinds built on it, under semaphore->lock.
// Moves the value up, unless it is that far or the semaphore has failed. Returns whom to tell.
waiter_t *timeline_raise(keel_semaphore_t *semaphore, uint64_t value);
// The same for a value that was promised, which a failure does not undo.
waiter_t *timeline_raise_promised(keel_semaphore_t *semaphore, uint64_t value);
// As timeline_promise. Returns whom to tell; sets *asks if the promise is to be asked.
waiter_t *timeline_list(signal_t *signal, bool *asks);
void timeline_unlist(signal_t *signal);

#endif
