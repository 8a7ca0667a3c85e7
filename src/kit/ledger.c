// SPDX-License-Identifier: Apache-2.0
// The timeline of a queue: one point per submission, ended in any order.
//
//      value                     last
//        |                         |
//     ...E  p  E  p  p  E  E  p  p  p        E ended, p pending: a window of slots in a ring
//
// Up to `value` all have ended; semaphore->value holds it, so a finished point is usually seen
// without the lock. Which points failed is kept as ranges of values with one cause, few as failures
// are, for as long as the queue lives.
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "kit/semaphore.h"

typedef struct slot_t {
    waiter_t *waiters;        // doubly linked by node.next and node.previous
    keel_submission_t *owner; // NULL: it has ended
    promise_t *promise;       // of the submission, which keeps it; NULL: none
} slot_t;

typedef struct failed_range_t {
    uint64_t first, last;
    keel_status_t cause; // owned
} failed_range_t;

struct ledger_t {  // guarded by the semaphore's lock
    slot_t *slots; // owned; of value v: slots[v & mask], for value < v <= last
    uint64_t mask;
    _Atomic uint64_t last;  // written under the lock
    bool closed;            // takes no more
    failed_range_t *failed; // owned; sorted, apart from each other
    size_t failed_count, failed_capacity;
    _Atomic bool any_failed;
};

enum { FIRST_SLOTS = 256 };

keel_status_t ledger_create(keel_semaphore_t *semaphore)
{
    timeline_init(semaphore, 0);
    ledger_t *ledger = mem_zalloc(sizeof *ledger);
    if (!ledger) return status_no_memory();
    ledger->slots = mem_zalloc(FIRST_SLOTS * sizeof *ledger->slots);
    ledger->mask = FIRST_SLOTS - 1;
    semaphore->ledger = ledger;
    return ledger->slots ? NULL : status_no_memory();
}

void ledger_destroy(keel_semaphore_t *semaphore)
{
    ledger_t *ledger = semaphore->ledger;
    if (!ledger) return;
    for (size_t i = 0; i < ledger->failed_count; i++) keel_status_release(ledger->failed[i].cause);
    mem_free(ledger->failed);
    mem_free(ledger->slots);
    mem_free(ledger);
}

static uint64_t ledger_value(keel_semaphore_t *semaphore)
{
    return atomic_load_explicit(&semaphore->value, memory_order_relaxed); // under the lock
}

uint64_t ledger_last(keel_semaphore_t *semaphore)
{
    // relaxed: whoever has a value got it from somebody who knew that it was there.
    return atomic_load_explicit(&semaphore->ledger->last, memory_order_relaxed);
}

static bool ledger_grow(keel_semaphore_t *semaphore)
{
    ledger_t *ledger = semaphore->ledger;
    uint64_t mask = ledger->mask * 2 + 1;
    slot_t *slots = mem_zalloc((mask + 1) * sizeof *slots);
    if (!slots) return false;
    for (uint64_t v = ledger_value(semaphore) + 1; v <= ledger_last(semaphore); v++)
        slots[v & mask] = ledger->slots[v & ledger->mask];
    mem_free(ledger->slots);
    ledger->slots = slots;
    ledger->mask = mask;
    return true;
}

// Makes room for one more failure than there could be already: ending a point must not need memory.
static bool ledger_reserve(ledger_t *ledger, uint64_t pending)
{
    size_t need = ledger->failed_count + pending + 1;
    if (need <= ledger->failed_capacity) return true;
    size_t capacity = need < 64 ? 64 : need * 2;
    failed_range_t *failed = mem_resize(ledger->failed, capacity * sizeof *failed);
    if (!failed) return false;
    ledger->failed = failed;
    ledger->failed_capacity = capacity;
    return true;
}

ledger_result_t ledger_open(keel_semaphore_t *semaphore, keel_submission_t *owner, uint64_t *value)
{
    ledger_t *ledger = semaphore->ledger;
    uint64_t last = ledger_last(semaphore), pending = last - ledger_value(semaphore);
    if (ledger->closed) return LEDGER_CLOSED;
    bool room =
        (pending <= ledger->mask || ledger_grow(semaphore)) && ledger_reserve(ledger, pending);
    if (!room) return LEDGER_NO_MEMORY;
    *value = last + 1;
    ledger->slots[*value & ledger->mask] = (slot_t){.owner = owner};
    atomic_store_explicit(&ledger->last, *value, memory_order_relaxed);
    return LEDGER_OPENED;
}

keel_submission_t *ledger_next(keel_semaphore_t *semaphore, uint64_t *value)
{
    const ledger_t *ledger = semaphore->ledger;
    uint64_t all = ledger_value(semaphore), v = *value > all ? *value : all;
    while (v < ledger_last(semaphore)) {
        keel_submission_t *owner = ledger->slots[++v & ledger->mask].owner;
        *value = v;
        if (owner) return owner;
    }
    return NULL;
}

void ledger_close(keel_semaphore_t *semaphore)
{
    lock_enter(&semaphore->lock);
    semaphore->ledger->closed = true;
    lock_leave(&semaphore->lock);
}

// The range that holds `value`, or else where it would be inserted.
static size_t ledger_find(const ledger_t *ledger, uint64_t value)
{
    size_t low = 0, high = ledger->failed_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ledger->failed[middle].last < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void ledger_note_failure(ledger_t *ledger, uint64_t value, keel_status_t cause)
{
    size_t i = ledger_find(ledger, value);
    failed_range_t *failed = ledger->failed;
    if (i > 0 && failed[i - 1].last + 1 == value && failed[i - 1].cause == cause) {
        failed[i - 1].last = value; // a chain that fails with one cause takes one range
    } else {
        memmove(&failed[i + 1], &failed[i], (ledger->failed_count - i) * sizeof *failed);
        failed[i] = (failed_range_t){value, value, keel_status_retain(cause)};
        ledger->failed_count++;
    }
    // release: pairs with the acquire in ledger_poll through `value`, which is stored afterwards.
    atomic_store_explicit(&ledger->any_failed, true, memory_order_release);
}

static keel_status_t ledger_failure(const ledger_t *ledger, uint64_t value)
{
    size_t i = ledger_find(ledger, value);
    bool failed = i < ledger->failed_count && ledger->failed[i].first <= value;
    return failed ? ledger->failed[i].cause : NULL;
}

ledger_ended_t ledger_end(keel_semaphore_t *semaphore, uint64_t value, keel_status_t failure)
{
    ledger_t *ledger = semaphore->ledger;
    slot_t *slot = &ledger->slots[value & ledger->mask];
    ledger_ended_t ended = {.waiters = slot->waiters};
    for (waiter_t *w = ended.waiters; w; w = (waiter_t *)(void *)w->node.next) w->linked = false;
    *slot = (slot_t){0};
    if (failure) ledger_note_failure(ledger, value, failure);
    uint64_t all = ledger_value(semaphore);
    while (all < ledger_last(semaphore) && !ledger->slots[(all + 1) & ledger->mask].owner) all++;
    // release: pairs with the acquire in ledger_poll; the submission's writes come before.
    atomic_store_explicit(&semaphore->value, all, memory_order_release);
    if (semaphore->waiters.root && semaphore->waiters.root->key <= all)
        ended.for_all = waiters_take(semaphore, all);
    return ended;
}

static point_state_t ledger_state(keel_point_t point, keel_status_t *failure)
{
    ledger_t *ledger = point.semaphore->ledger;
    bool ended = point.value <= ledger_value(point.semaphore) ||
                 (point.value <= ledger_last(point.semaphore) &&
                  !ledger->slots[point.value & ledger->mask].owner);
    if (!ended) return POINT_PENDING;
    keel_status_t cause = ledger_failure(ledger, point.value);
    if (!cause) return POINT_REACHED;
    if (failure) *failure = keel_status_retain(cause);
    return POINT_FAILED;
}

bool ledger_is_past(keel_point_t point)
{
    // acquire: pairs with ledger_end.
    uint64_t all = atomic_load_explicit(&point.semaphore->value, memory_order_acquire);
    return point.value <= all &&
           !atomic_load_explicit(&point.semaphore->ledger->any_failed, memory_order_acquire);
}

point_state_t ledger_poll(keel_point_t point, keel_status_t *failure)
{
    if (ledger_is_past(point)) return POINT_REACHED;
    lock_enter(&point.semaphore->lock);
    point_state_t state = ledger_state(point, failure);
    lock_leave(&point.semaphore->lock);
    return state;
}

static void slot_add(slot_t *slot, waiter_t *waiter)
{
    waiter->node.previous = NULL;
    waiter->node.next = slot->waiters ? &slot->waiters->node : NULL;
    if (slot->waiters) slot->waiters->node.previous = &waiter->node;
    slot->waiters = waiter;
    waiter->linked = true;
}

static void slot_remove(slot_t *slot, waiter_t *waiter)
{
    if (waiter->node.previous)
        waiter->node.previous->next = waiter->node.next;
    else
        slot->waiters = (waiter_t *)(void *)waiter->node.next;
    if (waiter->node.next) waiter->node.next->previous = waiter->node.previous;
    waiter->linked = false;
}

promise_t *ledger_promised(keel_point_t point)
{
    ledger_t *ledger = point.semaphore->ledger;
    bool pending =
        point.value > ledger_value(point.semaphore) && point.value <= ledger_last(point.semaphore);
    return pending ? ledger->slots[point.value & ledger->mask].promise : NULL;
}

void ledger_ask_all(keel_point_t point)
{
    keel_point_t one = {point.semaphore, 0};
    // acquire: pairs with ledger_end. What is promised later asks by itself.
    one.value = atomic_load_explicit(&point.semaphore->value, memory_order_acquire);
    while (++one.value <= point.value) {
        promise_t *promise = point_promise(one);
        if (promise) promise->ops->ask(promise);
        promise_release(promise);
    }
}

void ledger_promise(keel_point_t point, promise_t *promise)
{
    keel_semaphore_t *semaphore = point.semaphore;
    lock_enter(&semaphore->lock);
    slot_t *slot = &semaphore->ledger->slots[point.value & semaphore->ledger->mask];
    slot->promise = promise;
    bool asks = semaphore->waiters.root != NULL; // of those who wait for all, some may sleep
    waiter_t *rest = slot->waiters;
    waiter_t *told = rest ? waiters_promise(&rest, promise, &asks) : NULL;
    for (waiter_t *w = told; w; w = (waiter_t *)(void *)w->node.next) w->linked = false;
    slot->waiters = NULL;
    while (rest) {
        waiter_t *waiter = rest;
        rest = (waiter_t *)(void *)waiter->node.next;
        slot_add(slot, waiter);
    }
    lock_leave(&semaphore->lock);
    if (asks) promise->ops->ask(promise);
    waiters_fire(told, NULL);
}

bool ledger_link(keel_point_t point, waiter_t *waiter)
{
    ledger_t *ledger = point.semaphore->ledger;
    if (ledger_state(point, NULL) != POINT_PENDING || ledger_promised(point)) return false;
    slot_add(&ledger->slots[point.value & ledger->mask], waiter);
    return true;
}

point_state_t ledger_watch(keel_point_t point, waiter_t *waiter, keel_status_t *failure)
{
    ledger_t *ledger = point.semaphore->ledger;
    promise_t *promise = NULL;
    lock_enter(&point.semaphore->lock);
    point_state_t state;
    if (waiter->for_all) {
        state = point.value <= ledger_value(point.semaphore) ? POINT_REACHED : POINT_PENDING;
        if (state == POINT_PENDING) waiters_add(point.semaphore, waiter);
    } else {
        state = ledger_state(point, failure);
        promise = state == POINT_PENDING ? ledger_promised(point) : NULL;
        if (promise) promise_retain(promise);
        if (promise && waiter->early == promise->device) {
            waiter->promise = promise;
            state = POINT_PROMISED;
        } else if (state == POINT_PENDING) {
            slot_add(&ledger->slots[point.value & ledger->mask], waiter);
        }
    }
    bool asks = waiter->asks, asks_all = asks && waiter->for_all && state == POINT_PENDING;
    lock_leave(&point.semaphore->lock);
    if (state == POINT_PROMISED) return state;
    if (asks_all) ledger_ask_all(point);
    if (promise && asks) promise->ops->ask(promise);
    promise_release(promise);
    return state;
}

bool ledger_unwatch(keel_point_t point, waiter_t *waiter)
{
    ledger_t *ledger = point.semaphore->ledger;
    lock_enter(&point.semaphore->lock);
    bool linked = waiter->linked;
    if (linked && waiter->for_all)
        waiters_remove(point.semaphore, waiter);
    else if (linked)
        slot_remove(&ledger->slots[point.value & ledger->mask], waiter);
    lock_leave(&point.semaphore->lock);
    return linked;
}
