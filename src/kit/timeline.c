// SPDX-License-Identifier: Apache-2.0
// A timeline's signal must not take the lock when no thread waits. It stores the value and then
// looks at next_wait; a waiter stores next_wait and then looks at the value. Both orders are
// sequentially consistent, so at least one of the two sees the other.
#include "kit/timeline.h"

#include "base/memory.h"
#include "base/status.h"

static void timeline_destroy(keel_semaphore_t *semaphore)
{
    mem_free_aligned(semaphore);
}

static const semaphore_ops_t timeline_ops = {
    .value = timeline_value,
    .signal = timeline_signal,
    .fail = timeline_fail,
    .watch = timeline_watch,
    .unwatch = timeline_unwatch,
    .promised = timeline_promised,
    .promise = timeline_promise,
    .settle = timeline_settle,
    .export = semaphore_not_exported,
    .destroy = timeline_destroy,
};

void timeline_init(keel_semaphore_t *semaphore, uint64_t initial)
{
    semaphore_init(semaphore, &timeline_ops, initial);
}

keel_status_t timeline_create(uint64_t initial, keel_semaphore_t **semaphore)
{
    keel_semaphore_t *s = mem_zalloc_aligned(sizeof *s, _Alignof(keel_semaphore_t));
    if (!s) return status_no_memory();
    timeline_init(s, initial);
    *semaphore = s;
    return NULL;
}

static keel_status_t timeline_failure(keel_semaphore_t *semaphore)
{
    // relaxed: ordered by the bit in the value.
    return keel_status_retain(atomic_load_explicit(&semaphore->failure, memory_order_relaxed));
}

keel_status_t timeline_value(keel_semaphore_t *semaphore, uint64_t *value)
{
    // acquire: pairs with the signal's release, and with timeline_fail.
    uint64_t now = atomic_load_explicit(&semaphore->value, memory_order_acquire);
    semaphore_chase(semaphore, now & ~SEMAPHORE_FAILED);
    now = atomic_load_explicit(&semaphore->value, memory_order_acquire);
    *value = now & ~SEMAPHORE_FAILED;
    return now & SEMAPHORE_FAILED ? timeline_failure(semaphore) : NULL;
}

keel_status_t timeline_refusal(keel_semaphore_t *semaphore, uint64_t value)
{
    // acquire: pairs with timeline_fail, whose cause is read if the bit is seen.
    uint64_t old = atomic_load_explicit(&semaphore->value, memory_order_acquire);
    if (old & SEMAPHORE_FAILED) return timeline_failure(semaphore);
    if (value > old) return NULL;
    return KEEL_ERROR(
        KEEL_FAILED_PRECONDITION, "semaphore '%s' cannot be signalled to %llu: it has reached %llu",
        semaphore->name ? semaphore->name : "", (unsigned long long)value, (unsigned long long)old);
}

// The rest of timeline_signal, when somewhere up to the value a thread waits or a signal is
// promised.
__attribute__((noinline)) static void signal_tell(keel_semaphore_t *semaphore, uint64_t old,
                                                  uint64_t value)
{
    lock_enter(&semaphore->lock);
    // Up to `old` a larger one that was promised, too, has come before: that is in order.
    for (signal_t *s = semaphore->promised; s && s->point.value <= value; s = s->next)
        if (s->point.value > old) s->overtaken = true;
    waiter_t *list = waiters_take(semaphore, value);
    lock_leave(&semaphore->lock);
    waiters_fire(list, NULL);
}

KEEL_HOT keel_status_t timeline_signal(keel_semaphore_t *semaphore, uint64_t value)
{
    uint64_t old = atomic_load_explicit(&semaphore->value, memory_order_relaxed);
    do {
        // A failed semaphore's bit is above all values.
        if (value <= old) return timeline_refusal(semaphore, value);
        // seq_cst: see the top; its release part also publishes the writes that the signal stands
        // for.
    } while (!atomic_compare_exchange_weak(&semaphore->value, &old, value));
    if (atomic_load(&semaphore->next_wait) <= value) signal_tell(semaphore, old, value);
    return NULL;
}

waiter_t *timeline_raise(keel_semaphore_t *semaphore, uint64_t value)
{
    // relaxed: the caller's lock orders all who move it.
    uint64_t old = atomic_load_explicit(&semaphore->value, memory_order_relaxed);
    if (value <= old) return NULL;          // a failed one's bit is above all values
    atomic_store(&semaphore->value, value); // release: as in timeline_signal
    return waiters_take(semaphore, value);
}

waiter_t *timeline_raise_promised(keel_semaphore_t *semaphore, uint64_t value)
{
    // A signal may come meanwhile. release: as in timeline_signal.
    uint64_t old = atomic_load_explicit(&semaphore->value, memory_order_relaxed);
    while (
        (old & ~SEMAPHORE_FAILED) < value &&
        !atomic_compare_exchange_weak(&semaphore->value, &old, (old & SEMAPHORE_FAILED) | value)) {
    }
    return (old & ~SEMAPHORE_FAILED) < value ? waiters_take(semaphore, value) : NULL;
}

// Under the lock: the promised signal that covers the value; NULL: there is none. One that was
// listed before a failure still comes.
static const signal_t *signal_find(const keel_semaphore_t *semaphore, uint64_t value)
{
    const signal_t *first = semaphore->promised, *signal = semaphore->promised_last;
    if (!signal || signal->point.value < value) return NULL;
    if (first->point.value >= value) return first;
    // Most who wait for another than the oldest wait for one of the newest.
    while (signal->previous->point.value >= value) signal = signal->previous;
    return signal;
}

promise_t *timeline_promised(keel_semaphore_t *semaphore, uint64_t value, bool all)
{
    (void)all; // they come in order
    lock_enter(&semaphore->lock);
    const signal_t *signal = signal_find(semaphore, value);
    promise_t *promise = signal ? promise_retain(signal->promise) : NULL;
    lock_leave(&semaphore->lock);
    return promise;
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
        if (waiter_promise(waiter_of(first), signal->promise, signal->point.value, &told, asks))
            continue;
        waiter_of(first)->hangs = true;
        heap_insert(&semaphore->hanging, first);
    }
    return told;
}

// Where the promise before it may fail, or it may itself, a signal is listed only if it hangs on
// that one: else the semaphore could be raised by it after the other has failed.
static bool is_behind(const signal_t *signal, const signal_t *last)
{
    if (!last || __builtin_expect(!last->promise->may_fail && !signal->promise->may_fail, 1))
        return true;
    return signal->after >= last->point.value;
}

KEEL_HOT waiter_t *timeline_list(signal_t *signal, bool *asks)
{
    keel_semaphore_t *semaphore = signal->point.semaphore;
    waiter_t *told = NULL;
    // A failed semaphore's bit is above all values. acquire: as in timeline_poll.
    uint64_t above = atomic_load_explicit(&semaphore->value, memory_order_acquire);
    if (semaphore->promised_last && semaphore->promised_last->point.value > above)
        above = semaphore->promised_last->point.value;
    signal->listed = signal->point.value > above && is_behind(signal, semaphore->promised_last);
    if (__builtin_expect(!signal->listed, 0)) return NULL;
    signal->next = NULL;
    signal->previous = semaphore->promised_last;
    *(signal->previous ? &signal->previous->next : &semaphore->promised) = signal;
    semaphore->promised_last = signal;
    if (__builtin_expect(semaphore->waiters.root != NULL, 0)) told = waiters_hang(signal, asks);
    if (told || !signal->previous) waiters_update(semaphore);
    // A signal that came meanwhile may not have seen it. seq_cst: see the top.
    uint64_t now = atomic_load(&semaphore->value) & ~SEMAPHORE_FAILED;
    signal->overtaken = signal->point.value <= now;
    return told;
}

KEEL_HOT void timeline_promise(signal_t *signal)
{
    keel_semaphore_t *semaphore = signal->point.semaphore;
    promise_t *promise = signal->promise; // the signal may be gone when the lock is left
    bool asks = false;
    lock_enter(&semaphore->lock);
    waiter_t *told = timeline_list(signal, &asks);
    lock_leave(&semaphore->lock);
    if (__builtin_expect(asks, 0)) promise->ops->ask(promise);
    if (__builtin_expect(told != NULL, 0)) waiters_fire(told, NULL);
}

void timeline_unlist(signal_t *signal)
{
    keel_semaphore_t *semaphore = signal->point.semaphore;
    *(signal->previous ? &signal->previous->next : &semaphore->promised) = signal->next;
    *(signal->next ? &signal->next->previous : &semaphore->promised_last) = signal->previous;
    signal->listed = false;
    if (!signal->previous) waiters_update(semaphore);
}

keel_status_t timeline_keep(signal_t *signal)
{
    keel_semaphore_t *semaphore = signal->point.semaphore;
    uint64_t value = signal->point.value;
    if (!signal->listed) return timeline_signal(semaphore, value);
    waiter_t *list = NULL;
    lock_enter(&semaphore->lock);
    timeline_unlist(signal);
    bool overtaken = signal->overtaken;
    if (!overtaken) list = timeline_raise_promised(semaphore, value);
    lock_leave(&semaphore->lock);
    waiters_fire(list, NULL);
    return overtaken ? timeline_refusal(semaphore, value) : NULL;
}

// Those who hung on it hang on the next one then. One of the same device is not asked: either the
// device is lost, which breaks all its promises, or they may fail, and those come to an end
// unasked.
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
        if (told) waiters_update(semaphore);
    }
    lock_leave(&semaphore->lock);
    if (asks && promise->device != signal->promise->device) promise->ops->ask(promise);
    promise_release(promise);
    waiters_fire(told, NULL);
}

KEEL_HOT keel_status_t timeline_settle(signal_t *signal, keel_status_t failure)
{
    if (__builtin_expect(failure != NULL, 0)) {
        timeline_break(signal);
        timeline_fail(signal->point.semaphore, keel_status_retain(failure));
        return NULL;
    }
    keel_status_t refusal = timeline_keep(signal);
    return __builtin_expect(refusal != NULL, 0) ? signal_refused(signal, refusal) : NULL;
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
    if (!atomic_compare_exchange_strong(&semaphore->failure, &none, cause)) {
        keel_status_release(cause);
        cause = none;
    }
    // relaxed: only under the lock is the bit set.
    if (!(atomic_load_explicit(&semaphore->value, memory_order_relaxed) & SEMAPHORE_FAILED)) {
        uint64_t promised = semaphore->promised_last ? semaphore->promised_last->point.value : 0;
        atomic_store(&semaphore->granted, promised); // before the bit, which tells to look at it
        // release: pairs with the acquire of those who see the bit and read the cause.
        well = waiters_take(semaphore, atomic_fetch_or(&semaphore->value, SEMAPHORE_FAILED));
    }
    waiter_t *failed = waiters_take_failed(semaphore);
    keel_status_retain(cause); // the last of them may release the semaphore, and the cause with it
    lock_leave(&semaphore->lock);
    waiters_fire(well, NULL);
    waiters_fire(failed, cause);
    keel_status_release(cause);
}

point_state_t timeline_poll(keel_semaphore_t *semaphore, uint64_t value, keel_status_t *failure)
{
    // acquire: pairs with the signal's release. seq_cst for timeline_watch, see the top.
    uint64_t now = atomic_load(&semaphore->value);
    if ((now & ~SEMAPHORE_FAILED) >= value) return POINT_REACHED;
    if (!(now & SEMAPHORE_FAILED) || value <= atomic_load(&semaphore->granted))
        return POINT_PENDING;
    if (failure) *failure = timeline_failure(semaphore);
    return POINT_FAILED;
}

point_state_t timeline_watch(keel_semaphore_t *semaphore, waiter_t *waiter, keel_status_t *failure)
{
    uint64_t value = waiter->node.key;
    lock_enter(&semaphore->lock);
    point_state_t state = timeline_poll(semaphore, value, failure);
    const signal_t *signal = state == POINT_PENDING ? signal_find(semaphore, value) : NULL;
    promise_t *promise = signal ? promise_retain(signal->promise) : NULL;
    if (signal && promise_does(promise, signal->point.value, waiter)) {
        waiter->promise = promise;
        state = POINT_PROMISED;
    }
    if (state == POINT_PENDING) {
        waiter->hangs = promise;
        waiters_add(semaphore, waiter);
        // A signal that came meanwhile may not have seen us.
        state = timeline_poll(semaphore, value, failure);
        if (state != POINT_PENDING) waiters_remove(semaphore, waiter);
    }
    bool asks = waiter->asks && state == POINT_PENDING;
    lock_leave(&semaphore->lock);
    if (state == POINT_PROMISED) return state;
    if (promise && asks) promise->ops->ask(promise);
    promise_release(promise);
    return state;
}

bool timeline_unwatch(keel_semaphore_t *semaphore, waiter_t *waiter)
{
    lock_enter(&semaphore->lock);
    bool removed = waiters_remove(semaphore, waiter);
    lock_leave(&semaphore->lock);
    return removed;
}
