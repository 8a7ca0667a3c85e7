// SPDX-License-Identifier: Apache-2.0
// A timeline's signal must not take the lock when nobody waits. It stores the value and then looks
// at next_wait; a waiter stores next_wait and then looks at the value. Both orders are sequentially
// consistent, so at least one of the two sees the other.
#include <stddef.h>

#include "base/status.h"
#include "kit/ledger.h"
#include "kit/outside.h"

_Static_assert(offsetof(waiter_t, node) == 0, "a waiter is found by its node");

static waiter_t *waiter_of(heap_node_t *node)
{
    return (waiter_t *)(void *)node;
}

static heap_t *heap_of(keel_semaphore_t *semaphore, const waiter_t *waiter)
{
    return waiter->hangs ? &semaphore->hanging : &semaphore->waiters;
}

// The one with the smallest value; NULL: none.
static heap_node_t *waiters_first(const keel_semaphore_t *semaphore)
{
    heap_node_t *first = semaphore->waiters.root, *hanging = semaphore->hanging.root;
    return !hanging || (first && first->key <= hanging->key) ? first : hanging;
}

KEEL_HOT static void next_wait_update(keel_semaphore_t *semaphore)
{
    const heap_node_t *first = semaphore->waiters.root, *hanging = semaphore->hanging.root;
    const signal_t *promised = semaphore->outside ? NULL : semaphore->promised;
    uint64_t next = UINT64_MAX;
    if (__builtin_expect(first != NULL, 0)) next = first->key;
    if (__builtin_expect(hanging != NULL, 0) && hanging->key < next) next = hanging->key;
    if (promised && promised->point.value < next) next = promised->point.value;
    atomic_store(&semaphore->next_wait, next); // see above
}

void waiters_add(keel_semaphore_t *semaphore, waiter_t *waiter)
{
    heap_insert(heap_of(semaphore, waiter), &waiter->node);
    waiter->linked = true;
    next_wait_update(semaphore);
}

bool waiters_remove(keel_semaphore_t *semaphore, waiter_t *waiter)
{
    if (!waiter->linked) return false;
    heap_remove(heap_of(semaphore, waiter), &waiter->node);
    waiter->linked = false;
    next_wait_update(semaphore);
    return true;
}

waiter_t *waiters_take(keel_semaphore_t *semaphore, uint64_t value)
{
    heap_node_t *list = NULL, **tail = &list, *first;
    while ((first = waiters_first(semaphore)) && first->key <= value) {
        heap_remove(heap_of(semaphore, waiter_of(first)), first);
        waiter_of(first)->linked = false;
        first->next = NULL;
        *tail = first;
        tail = &first->next;
    }
    next_wait_update(semaphore);
    return list ? waiter_of(list) : NULL;
}

// What the thread is doing right now.
static _Thread_local struct {
    uint32_t depth; // of waiters_fire
    uint32_t count; // of waiters since the outermost
} firing;

void waiters_fire(waiter_t *list, keel_status_t failure)
{
    if (!list) return;
    if (!firing.depth++) firing.count = 0;
    while (list) {
        waiter_t *waiter = list;
        list = waiter->node.next ? waiter_of(waiter->node.next) : NULL;
        firing.count++;
        waiter->fire(waiter, failure);
    }
    firing.depth--;
}

uint32_t waiters_fired(void)
{
    return firing.depth ? firing.count : 0;
}

bool waiter_promise(waiter_t *waiter, promise_t *promise, waiter_t **told, bool *asks)
{
    bool serves = promise_serves(promise, waiter->early);
    *asks |= !serves && waiter->asks;
    if (!serves) return false;
    waiter->linked = false;
    waiter->promise = promise_retain(promise);
    waiter->node.next = *told ? &(*told)->node : NULL;
    *told = waiter;
    return true;
}

// How far it is, failed or not.
static uint64_t timeline_value(keel_semaphore_t *semaphore)
{
    return atomic_load(&semaphore->value) & ~TIMELINE_FAILED; // seq_cst: see the top
}

static keel_status_t timeline_failure(keel_semaphore_t *semaphore)
{
    // relaxed: ordered by the bit in the value.
    return keel_status_retain(atomic_load_explicit(&semaphore->failure, memory_order_relaxed));
}

void timeline_init(keel_semaphore_t *semaphore, uint64_t initial)
{
    atomic_init(&semaphore->value, initial);
    atomic_init(&semaphore->next_wait, UINT64_MAX);
}

keel_status_t timeline_refusal(keel_semaphore_t *semaphore, uint64_t value)
{
    // acquire: pairs with timeline_fail, whose cause is read if the bit is seen.
    uint64_t old = atomic_load_explicit(&semaphore->value, memory_order_acquire);
    if (old & TIMELINE_FAILED) return timeline_failure(semaphore);
    if (value > old) return NULL;
    return KEEL_ERROR(
        KEEL_FAILED_PRECONDITION, "semaphore '%s' cannot be signalled to %llu: it has reached %llu",
        semaphore->name ? semaphore->name : "", (unsigned long long)value, (unsigned long long)old);
}

keel_status_t timeline_signal(keel_semaphore_t *semaphore, uint64_t value)
{
    if (semaphore->outside) return outside_signal(semaphore, value);
    uint64_t old = atomic_load_explicit(&semaphore->value, memory_order_relaxed);
    do {
        // A failed semaphore's bit is above all values.
        if (value <= old) return timeline_refusal(semaphore, value);
        // seq_cst: see the top; its release part also publishes the writes that the signal stands
        // for.
    } while (!atomic_compare_exchange_weak(&semaphore->value, &old, value));
    if (atomic_load(&semaphore->next_wait) > value) return NULL;

    lock_enter(&semaphore->lock);
    // Up to `old` a larger one that was promised, too, has come before: that is in order.
    for (signal_t *s = semaphore->promised; s && s->point.value <= value; s = s->next)
        if (s->point.value > old) s->overtaken = true;
    waiter_t *list = waiters_take(semaphore, value);
    lock_leave(&semaphore->lock);
    waiters_fire(list, NULL);
    return NULL;
}

// Under the lock: the promise that covers the value. One that was listed before a failure still
// comes.
static promise_t *timeline_promised(const keel_semaphore_t *semaphore, uint64_t value)
{
    const signal_t *first = semaphore->promised, *signal = semaphore->promised_last;
    if (!signal || signal->point.value < value) return NULL;
    if (first->point.value >= value) return first->promise;
    // Most who wait for another than the oldest wait for one of the newest.
    while (signal->previous->point.value >= value) signal = signal->previous;
    return signal->promise;
}

// Under the lock: hangs the waiters up to the signal on its promise that hang on none yet. Returns
// whom to tell, who take it for the point; next_wait is to be updated then, and not before, so that
// no signal passes by those who still wait.
static waiter_t *waiters_hang(const signal_t *signal, bool *asks)
{
    keel_semaphore_t *semaphore = signal->point.semaphore;
    waiter_t *told = NULL;
    heap_node_t *first;
    while ((first = semaphore->waiters.root) && first->key <= signal->point.value) {
        heap_remove(&semaphore->waiters, first);
        if (waiter_promise(waiter_of(first), signal->promise, &told, asks)) continue;
        waiter_of(first)->hangs = true;
        heap_insert(&semaphore->hanging, first);
    }
    return told;
}

KEEL_HOT void timeline_promise(signal_t *signal)
{
    keel_semaphore_t *semaphore = signal->point.semaphore;
    promise_t *promise = signal->promise;
    waiter_t *told = NULL;
    outgoing_t *outgoing = NULL;
    bool asks = false;
    if (semaphore->outside && !(outgoing = outside_prepare(semaphore, promise))) return;
    lock_enter(&semaphore->lock);
    // A failed semaphore's bit is above all values. acquire: as in timeline_poll.
    uint64_t above = atomic_load_explicit(&semaphore->value, memory_order_acquire);
    if (semaphore->promised_last && semaphore->promised_last->point.value > above)
        above = semaphore->promised_last->point.value;
    signal->listed = signal->point.value > above;
    if (__builtin_expect(signal->listed, 1)) {
        signal->next = NULL;
        signal->previous = semaphore->promised_last;
        *(signal->previous ? &signal->previous->next : &semaphore->promised) = signal;
        semaphore->promised_last = signal;
        if (__builtin_expect(semaphore->waiters.root != NULL, 0))
            told = waiters_hang(signal, &asks);
        if (told || !signal->previous) next_wait_update(semaphore);
        // A signal that came meanwhile may not have seen it.
        signal->overtaken = signal->point.value <= timeline_value(semaphore);
        if (outgoing) outside_add(semaphore, outgoing, signal->point.value);
    }
    lock_leave(&semaphore->lock);
    if (outgoing && signal->listed)
        semaphore->outside->wake(semaphore->outside);
    else if (outgoing)
        outside_drop(outgoing);
    if (__builtin_expect(asks, 0)) promise->ops->ask(promise);
    if (__builtin_expect(told != NULL, 0)) waiters_fire(told, NULL);
}

// Under the lock.
static void timeline_unlist(signal_t *signal)
{
    keel_semaphore_t *semaphore = signal->point.semaphore;
    *(signal->previous ? &signal->previous->next : &semaphore->promised) = signal->next;
    *(signal->next ? &signal->next->previous : &semaphore->promised_last) = signal->previous;
    signal->listed = false;
    if (!signal->previous) next_wait_update(semaphore);
}

keel_status_t timeline_keep(signal_t *signal)
{
    keel_semaphore_t *semaphore = signal->point.semaphore;
    uint64_t value = signal->point.value;
    if (!signal->listed) return timeline_signal(semaphore, value);
    waiter_t *list = NULL;
    lock_enter(&semaphore->lock);
    timeline_unlist(signal);
    if (signal->overtaken && !semaphore->outside) {
        lock_leave(&semaphore->lock);
        return timeline_refusal(semaphore, value);
    }
    if (semaphore->outside) value = outside_due(semaphore, value);
    uint64_t old = atomic_load_explicit(&semaphore->value, memory_order_acquire);
    // release: as in timeline_signal. A failure does not undo what was promised before it.
    while (
        (old & ~TIMELINE_FAILED) < value &&
        !atomic_compare_exchange_weak(&semaphore->value, &old, (old & TIMELINE_FAILED) | value)) {
    }
    if ((old & ~TIMELINE_FAILED) < value) list = waiters_take(semaphore, value);
    lock_leave(&semaphore->lock);
    if (semaphore->outside) semaphore->outside->wake(semaphore->outside);
    waiters_fire(list, NULL);
    return NULL;
}

// Those who hung on it hang on the next one then. Only a lost device breaks promises, all of its
// own, so one of the same device is not asked.
void timeline_break(signal_t *signal)
{
    keel_semaphore_t *semaphore = signal->point.semaphore;
    promise_t *promise = NULL;
    waiter_t *told = NULL;
    bool asks = false;
    heap_node_t *first;
    if (!signal->listed) return;
    lock_enter(&semaphore->lock);
    const signal_t *next = signal->next;
    timeline_unlist(signal);
    while ((first = semaphore->hanging.root) && first->key <= signal->point.value) {
        heap_remove(&semaphore->hanging, first); // perhaps it hung on this one
        waiter_of(first)->hangs = false;
        heap_insert(&semaphore->waiters, first);
    }
    if (next) {
        promise = promise_retain(next->promise);
        told = waiters_hang(next, &asks);
        if (told) next_wait_update(semaphore);
    }
    lock_leave(&semaphore->lock);
    if (asks && promise->device != signal->promise->device) promise->ops->ask(promise);
    promise_release(promise);
    waiters_fire(told, NULL);
}

// Under the lock, of one that has failed: takes the waiters that a signal promised before the
// failure will not reach, out of the heap.
static waiter_t *waiters_take_failed(keel_semaphore_t *semaphore)
{
    uint64_t promised = semaphore->promised_last ? semaphore->promised_last->point.value : 0;
    atomic_store(&semaphore->granted, promised);
    waiter_t *list = waiters_take(semaphore, UINT64_MAX), *failed = NULL;
    while (list) {
        waiter_t *waiter = list;
        list = waiter->node.next ? waiter_of(waiter->node.next) : NULL;
        if (waiter->node.key <= promised) {
            waiters_add(semaphore, waiter);
            continue;
        }
        waiter->node.next = failed ? &failed->node : NULL;
        failed = waiter;
    }
    return failed;
}

void timeline_fail(keel_semaphore_t *semaphore, keel_status_t cause)
{
    keel_status_t none = NULL;
    waiter_t *well = NULL;
    lock_enter(&semaphore->lock);
    if (atomic_compare_exchange_strong(&semaphore->failure, &none, cause)) {
        uint64_t promised = semaphore->promised_last ? semaphore->promised_last->point.value : 0;
        atomic_store(&semaphore->granted, promised); // before the bit, which tells to look at it
        // release: pairs with the acquire of whoever sees the bit and reads the cause.
        well = waiters_take(semaphore, atomic_fetch_or(&semaphore->value, TIMELINE_FAILED));
    } else {
        keel_status_release(cause);
        cause = none;
    }
    waiter_t *failed = waiters_take_failed(semaphore);
    keel_status_retain(cause); // the last of them may release the semaphore, and the cause with it
    lock_leave(&semaphore->lock);
    waiters_fire(well, NULL);
    waiters_fire(failed, cause);
    keel_status_release(cause);
}

static point_state_t timeline_poll(keel_point_t point, keel_status_t *failure)
{
    // acquire: pairs with the signal's release. seq_cst for timeline_watch, see the top.
    uint64_t value = atomic_load(&point.semaphore->value);
    if ((value & ~TIMELINE_FAILED) >= point.value) return POINT_REACHED;
    if (!(value & TIMELINE_FAILED) || point.value <= atomic_load(&point.semaphore->granted))
        return POINT_PENDING;
    if (failure) *failure = timeline_failure(point.semaphore);
    return POINT_FAILED;
}

point_state_t timeline_watch(keel_semaphore_t *semaphore, waiter_t *waiter, keel_status_t *failure)
{
    keel_point_t point = {semaphore, waiter->node.key};
    lock_enter(&semaphore->lock);
    point_state_t state = timeline_poll(point, failure);
    promise_t *promise = state == POINT_PENDING ? timeline_promised(semaphore, point.value) : NULL;
    if (promise) promise_retain(promise);
    if (promise && promise_serves(promise, waiter->early)) {
        waiter->promise = promise;
        state = POINT_PROMISED;
    }
    if (state == POINT_PENDING) {
        waiter->hangs = promise;
        waiters_add(semaphore, waiter);
        state = timeline_poll(point, failure); // a signal that came meanwhile may not have seen us
        if (state != POINT_PENDING) waiters_remove(semaphore, waiter);
    }
    bool asks = waiter->asks && state == POINT_PENDING;
    lock_leave(&semaphore->lock);
    if (state == POINT_PROMISED) return state;
    if (promise && asks) promise->ops->ask(promise);
    promise_release(promise);
    if (semaphore->outside) semaphore->outside->wake(semaphore->outside);
    return state;
}

promise_t *point_promise(keel_point_t point)
{
    keel_semaphore_t *semaphore = point.semaphore;
    lock_enter(&semaphore->lock);
    promise_t *promise =
        semaphore->ledger ? ledger_promised(point) : timeline_promised(semaphore, point.value);
    if (promise) promise_retain(promise);
    lock_leave(&semaphore->lock);
    return promise;
}

void point_chase(keel_semaphore_t *semaphore)
{
    uint64_t value = atomic_load_explicit(&semaphore->value, memory_order_acquire);
    promise_t *promise = point_promise((keel_point_t){semaphore, value + 1});
    if (promise) promise->ops->poll(promise);
    promise_release(promise);
}

promise_t *point_ask(keel_point_t point, waiter_t *waiter)
{
    keel_semaphore_t *semaphore = point.semaphore;
    lock_enter(&semaphore->lock);
    waiter->asks = true;
    lock_leave(&semaphore->lock);
    return semaphore->ledger && waiter->for_all ? ledger_last_promised(point)
                                                : point_promise(point);
}

point_state_t point_poll(keel_point_t point, keel_status_t *failure)
{
    return point.semaphore->ledger ? ledger_poll(point, failure) : timeline_poll(point, failure);
}

bool point_is_past(keel_point_t point)
{
    if (point.semaphore->ledger) return ledger_is_past(point);
    // acquire: pairs with the signal's release.
    uint64_t value = atomic_load_explicit(&point.semaphore->value, memory_order_acquire);
    return (value & ~TIMELINE_FAILED) >= point.value;
}

point_state_t point_watch(keel_point_t point, waiter_t *waiter, keel_status_t *failure)
{
    waiter->node.key = point.value;
    return point.semaphore->ledger ? ledger_watch(point, waiter, failure)
                                   : timeline_watch(point.semaphore, waiter, failure);
}

bool point_unwatch(keel_point_t point, waiter_t *waiter)
{
    if (point.semaphore->ledger) return ledger_unwatch(point, waiter);
    lock_enter(&point.semaphore->lock);
    bool removed = waiters_remove(point.semaphore, waiter);
    lock_leave(&point.semaphore->lock);
    if (point.semaphore->outside) point.semaphore->outside->wake(point.semaphore->outside);
    return removed;
}
