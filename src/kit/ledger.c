// SPDX-License-Identifier: Apache-2.0
#include "kit/ledger.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"

enum {
    FIRST_SLOTS = 256,
    FORGOTTEN = LEDGER_FAILURES / 4, // failures at a time, so that it costs little for each
    MOST_FAILED = LEDGER_FAILURES + FORGOTTEN,
};

static void ledger_destroy(keel_semaphore_t *semaphore)
{
    ledger_t *ledger = ledger_of(semaphore);
    for (size_t i = 0; i < ledger->failed_count; i++) keel_status_release(ledger->failed[i].cause);
    keel_status_release(ledger->first.cause);
    marks_finish(&ledger->forgotten);
    mem_free(ledger->failed);
    mem_free(ledger->late);
    mem_free(ledger->slots);
    mem_free_aligned(ledger);
}

static bool slots_grow(keel_semaphore_t *semaphore)
{
    ledger_t *ledger = ledger_of(semaphore);
    uint64_t mask = ledger->mask * 2 + 1;
    slot_t *slots = mem_zalloc((mask + 1) * sizeof *slots);
    if (!slots) return false;
    for (uint64_t v = ledger->base + 1; v <= ledger_last(semaphore); v++)
        slots[v & mask] = ledger->slots[v & ledger->mask];
    mem_free(ledger->slots);
    ledger->slots = slots;
    ledger->mask = mask;
    return true;
}

// The first late one that is not before `value`, ended or not.
static size_t late_find(const ledger_t *ledger, uint64_t value)
{
    size_t low = ledger->late_first, high = ledger->late_end;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ledger->late[middle].value < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

slot_t *ledger_late(const ledger_t *ledger, uint64_t value)
{
    size_t i = late_find(ledger, value);
    return i < ledger->late_end && ledger->late[i].value == value ? &ledger->late[i].slot : NULL;
}

uint64_t ledger_late_value(ledger_t *ledger)
{
    while (ledger->late_first < ledger->late_end && !ledger->late[ledger->late_first].slot.owner)
        ledger->late_first++;
    if (ledger->late_first < ledger->late_end) return ledger->late[ledger->late_first].value - 1;
    ledger->late_first = ledger->late_end = 0;
    return ledger->base;
}

// Makes room for so many more late ones.
static bool late_grow(ledger_t *ledger, size_t count)
{
    if (ledger->late_end + count <= ledger->late_capacity) return true;
    size_t left = 0; // those that have ended go first
    for (size_t i = ledger->late_first; i < ledger->late_end; i++)
        if (ledger->late[i].slot.owner) ledger->late[left++] = ledger->late[i];
    ledger->late_first = 0;
    ledger->late_end = left;
    uint32_t last = (uint32_t)(2 * left + count - 1); // so that it is not done again soon
    late_t *late = mem_reserve(ledger->late, &ledger->late_capacity, last, sizeof *late);
    if (late) ledger->late = late;
    return late;
}

// Takes the pending ones out of the older half of a full ring, if they are few. False: they are
// not.
static bool late_take(keel_semaphore_t *semaphore)
{
    ledger_t *ledger = ledger_of(semaphore);
    uint64_t half = (ledger->mask + 1) / 2, first = ledger->base + 1, count = 0;
    for (uint64_t v = first; v < first + half; v++)
        count += ledger->slots[v & ledger->mask].owner != NULL;
    if (count > half / 4 || !late_grow(ledger, count)) return false;
    for (uint64_t v = first; v < first + half; v++) {
        slot_t *slot = &ledger->slots[v & ledger->mask];
        if (slot->owner) ledger->late[ledger->late_end++] = (late_t){v, *slot};
    }
    ledger->base += half;
    ledger_advance(semaphore);
    return true;
}

// Room for one more failure than there could be already: ending a point must not need memory.
static bool failed_grow(ledger_t *ledger, uint64_t pending)
{
    size_t late = ledger->late_end - ledger->late_first;
    size_t need = ledger->failed_count + late + pending + 1;
    if (need > MOST_FAILED) need = MOST_FAILED;
    if (need <= ledger->failed_capacity) return true;
    size_t capacity = need < 64 ? 64 : need * 2;
    if (capacity > MOST_FAILED) capacity = MOST_FAILED;
    failed_range_t *failed = mem_resize(ledger->failed, capacity * sizeof *failed);
    if (!failed) return false;
    ledger->failed = failed;
    ledger->failed_capacity = capacity;
    return true;
}

static void room_update(ledger_t *ledger)
{
    size_t failures = ledger->failed_count + ledger->late_end - ledger->late_first;
    size_t capacity = ledger->failed_capacity, left = capacity > failures ? capacity - failures : 0;
    ledger->room = ledger->closed ? 0 : ledger->mask + 1;
    if (capacity < MOST_FAILED && left < ledger->room) ledger->room = left;
}

ledger_result_t ledger_grow(keel_semaphore_t *semaphore)
{
    ledger_t *ledger = ledger_of(semaphore);
    if (ledger->closed) return LEDGER_CLOSED;
    bool full = ledger_last(semaphore) - ledger->base > ledger->mask;
    bool grown = !full || late_take(semaphore) || slots_grow(semaphore);
    grown = grown && failed_grow(ledger, ledger_last(semaphore) - ledger->base);
    room_update(ledger);
    return grown ? LEDGER_OPENED : LEDGER_NO_MEMORY;
}

keel_submission_t *ledger_next(keel_semaphore_t *semaphore, uint64_t *value)
{
    const ledger_t *ledger = ledger_of(semaphore);
    keel_submission_t *owner = NULL;
    for (size_t i = late_find(ledger, *value + 1); i < ledger->late_end && !owner; i++) {
        owner = ledger->late[i].slot.owner;
        *value = ledger->late[i].value;
    }
    if (!owner && *value < ledger->base) *value = ledger->base;
    while (!owner && *value < ledger_last(semaphore))
        owner = ledger->slots[++*value & ledger->mask].owner;
    return owner;
}

void ledger_close(keel_semaphore_t *semaphore)
{
    lock_enter(&semaphore->lock);
    ledger_of(semaphore)->closed = true;
    room_update(ledger_of(semaphore));
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

// Takes ranges out, and puts one there if given.
static void failed_replace(ledger_t *ledger, size_t at, size_t count, const failed_range_t *range)
{
    failed_range_t *from = &ledger->failed[at];
    size_t put = range ? 1 : 0, behind = ledger->failed_count - at - count;
    for (size_t i = 0; i < count; i++) keel_status_release(from[i].cause);
    memmove(from + put, from + count, behind * sizeof *from);
    if (range) *from = *range;
    ledger->failed_count += put - count;
}

// Lets go of the oldest causes.
static void failed_forget(ledger_t *ledger)
{
    for (size_t i = 0; i < FORGOTTEN; i++) {
        const failed_range_t *range = &ledger->failed[i];
        if (!marks_add(&ledger->forgotten, range->first, range->last))
            ledger->unknown = range->last > ledger->unknown ? range->last : ledger->unknown;
    }
    failed_replace(ledger, 0, FORGOTTEN, NULL);
}

static void first_note(ledger_t *ledger, uint64_t value, keel_status_t cause)
{
    if (ledger->first.cause && ledger->first.value < value) return;
    keel_status_release(ledger->first.cause);
    ledger->first.cause = keel_status_retain(cause);
    ledger->first.value = value;
}

void ledger_note_failure(ledger_t *ledger, uint64_t value, keel_status_t cause)
{
    first_note(ledger, value, cause);
    if (ledger->failed_count == MOST_FAILED) failed_forget(ledger);
    const failed_range_t *failed = ledger->failed;
    size_t i = ledger_find(ledger, value), joined = 0;
    failed_range_t range = {value, value, keel_status_retain(cause)};
    // What fails with one cause takes one range, in whatever order.
    if (i < ledger->failed_count && failed[i].first == value + 1 && failed[i].cause == cause) {
        range.last = failed[i].last;
        joined++;
    }
    if (i > 0 && failed[i - 1].last + 1 == value && failed[i - 1].cause == cause) {
        range.first = failed[--i].first;
        joined++;
    }
    failed_replace(ledger, i, joined, &range);
    room_update(ledger);
}

static keel_status_t ledger_failure(const ledger_t *ledger, uint64_t value)
{
    size_t i = ledger_find(ledger, value);
    if (i < ledger->failed_count && ledger->failed[i].first <= value)
        return ledger->failed[i].cause;
    if (marks_has(&ledger->forgotten, value)) return status_forgotten();
    return value <= ledger->unknown ? status_no_memory() : NULL;
}

// The slot of a pending point; NULL: it is not.
static slot_t *ledger_pending(keel_semaphore_t *semaphore, uint64_t value)
{
    slot_t *slot =
        value <= ledger_last(semaphore) ? ledger_slot(ledger_of(semaphore), value) : NULL;
    return slot && slot->owner ? slot : NULL;
}

static point_state_t ledger_state(keel_semaphore_t *semaphore, uint64_t value,
                                  keel_status_t *failure)
{
    if (value > ledger_last(semaphore) || ledger_pending(semaphore, value)) return POINT_PENDING;
    if (value_is_past(semaphore, value)) return POINT_REACHED; // before the first that failed
    keel_status_t cause = ledger_failure(ledger_of(semaphore), value);
    if (!cause) return POINT_REACHED;
    if (failure) *failure = keel_status_retain(cause);
    return POINT_FAILED;
}

// The same for all up to the point.
static point_state_t ledger_state_all(const ledger_t *ledger, uint64_t value,
                                      keel_status_t *failure)
{
    if (value > ledger->ended) return POINT_PENDING;
    if (!ledger->first.cause || value < ledger->first.value) return POINT_REACHED;
    *failure = keel_status_retain(ledger->first.cause);
    return POINT_FAILED;
}

void ledger_take_all(keel_semaphore_t *semaphore, ledger_ended_t *ended)
{
    const ledger_t *ledger = ledger_of(semaphore);
    bool failed = ledger->first.cause && ledger->first.value <= ledger->ended;
    ended->for_all = waiters_take(semaphore, failed ? ledger->first.value - 1 : ledger->ended);
    if (!failed) return;
    ended->behind = waiters_take(semaphore, ledger->ended);
    ended->cause = ended->behind ? keel_status_retain(ledger->first.cause) : NULL;
}

point_state_t ledger_poll(keel_semaphore_t *semaphore, uint64_t value, keel_status_t *failure)
{
    if (value_is_past(semaphore, value)) return POINT_REACHED;
    lock_enter(&semaphore->lock);
    point_state_t state = ledger_state(semaphore, value, failure);
    lock_leave(&semaphore->lock);
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

// Which of the two comes later; NULL: none.
static promise_t *promise_later(promise_t *one, promise_t *other)
{
    if (!one || !other) return one ? one : other;
    return other->number > one->number ? other : one;
}

// Of all that is promised up to the point the last to come true; a new reference, or NULL.
static promise_t *ledger_last_promised(keel_semaphore_t *semaphore, uint64_t value)
{
    const ledger_t *ledger = ledger_of(semaphore);
    promise_t *last = NULL;
    lock_enter(&semaphore->lock);
    uint64_t end = ledger_last(semaphore);
    if (end > value) end = value;
    for (size_t i = ledger->late_first; i < ledger->late_end && ledger->late[i].value <= end; i++)
        last = promise_later(last, ledger->late[i].slot.promise);
    for (uint64_t v = ledger->base + 1; v <= end; v++)
        last = promise_later(last, ledger->slots[v & ledger->mask].promise);
    if (last) promise_retain(last);
    lock_leave(&semaphore->lock);
    return last;
}

// Whether what the slot stands for has ended, or will with a promise that does for the device;
// *last is the last of these.
static bool slot_is_promised(const slot_t *slot, const keel_device_t *early, promise_t **last)
{
    if (!slot->owner) return true;
    if (!slot->promise || !promise_serves(slot->promise, early)) return false;
    if (slot->promise->may_fail) return false; // the last would not tell of the others
    *last = promise_later(*last, slot->promise);
    return true;
}

// What a waiter for all up to a pending point may take for it: the last promise, if all that is
// pending is promised, and what has ended is no failure for it. Borrowed, under the lock; NULL:
// there is none.
static promise_t *ledger_promise_all(const ledger_t *ledger, const waiter_t *waiter)
{
    uint64_t value = waiter->node.key;
    bool failed = ledger->first.cause && ledger->first.value <= value;
    bool promised = waiter->early && (waiter->ended || !failed);
    promise_t *last = NULL;
    for (size_t i = ledger->late_first; promised && i < ledger->late_end; i++)
        if (ledger->late[i].value <= value)
            promised = slot_is_promised(&ledger->late[i].slot, waiter->early, &last);
    for (uint64_t v = ledger->base + 1; promised && v <= value; v++)
        promised = slot_is_promised(&ledger->slots[v & ledger->mask], waiter->early, &last);
    return promised ? last : NULL;
}

// Takes the waiters out that the promise will do for. Sets *asks if one of the others wants to be
// told of its end.
static waiter_t *slot_take_promised(slot_t *slot, bool *asks)
{
    waiter_t *list = slot->waiters, *told = NULL;
    slot->waiters = NULL;
    while (list) {
        waiter_t *waiter = list;
        list = (waiter_t *)(void *)waiter->node.next;
        if (!waiter_promise(waiter, slot->promise, waiter->node.key, &told, asks))
            slot_add(slot, waiter);
    }
    return told;
}

// The rest of ledger_promise, if anybody waits. Leaves the lock.
__attribute__((noinline)) static void waiters_tell(keel_semaphore_t *semaphore, slot_t *slot)
{
    promise_t *promise = slot->promise;
    bool asks = semaphore->waiters.root != NULL; // of those who wait for all, some may sleep
    waiter_t *told = slot_take_promised(slot, &asks);
    lock_leave(&semaphore->lock);
    if (asks) promise->ops->ask(promise);
    waiters_fire(told, NULL);
}

KEEL_HOT void ledger_promise(keel_semaphore_t *semaphore, uint64_t value, promise_t *promise)
{
    lock_enter(&semaphore->lock);
    slot_t *slot = ledger_slot(ledger_of(semaphore), value);
    slot->promise = promise;
    if (__builtin_expect(slot->waiters || semaphore->waiters.root, 0))
        waiters_tell(semaphore, slot);
    else
        lock_leave(&semaphore->lock);
}

bool ledger_link(keel_semaphore_t *semaphore, waiter_t *waiter)
{
    slot_t *slot = ledger_pending(semaphore, waiter->node.key);
    if (!slot || slot->promise) return false;
    slot_add(slot, waiter);
    return true;
}

static point_state_t ledger_watch(keel_semaphore_t *semaphore, waiter_t *waiter,
                                  keel_status_t *failure)
{
    const ledger_t *ledger = ledger_of(semaphore);
    uint64_t value = waiter->node.key;
    bool all = waiter->for_all;
    lock_enter(&semaphore->lock);
    point_state_t state =
        all ? ledger_state_all(ledger, value, failure) : ledger_state(semaphore, value, failure);
    promise_t *promise = NULL;
    if (state == POINT_PENDING)
        promise = all ? ledger_promise_all(ledger, waiter) : ledger_promise_of(semaphore, value);
    if (promise) promise_retain(promise);
    if (promise && promise_does(promise, value, waiter)) {
        waiter->promise = promise;
        state = POINT_PROMISED;
    } else if (state == POINT_PENDING && all) {
        waiter->hangs = false;
        waiters_add(semaphore, waiter);
    } else if (state == POINT_PENDING) {
        slot_add(ledger_slot(ledger, value), waiter);
    }
    bool asks = waiter->asks, asks_all = asks && all && state == POINT_PENDING;
    lock_leave(&semaphore->lock);
    if (state == POINT_PROMISED) return state;
    if (asks_all) promise = ledger_last_promised(semaphore, value);
    if (promise && asks) promise->ops->ask(promise);
    promise_release(promise);
    return state;
}

static bool ledger_unwatch(keel_semaphore_t *semaphore, waiter_t *waiter)
{
    lock_enter(&semaphore->lock);
    bool linked = waiter->linked;
    if (linked && waiter->for_all)
        waiters_remove(semaphore, waiter);
    else if (linked)
        slot_remove(ledger_slot(ledger_of(semaphore), waiter->node.key), waiter);
    lock_leave(&semaphore->lock);
    return linked;
}

static promise_t *ledger_promised(keel_semaphore_t *semaphore, uint64_t value, bool all)
{
    if (all) return ledger_last_promised(semaphore, value);
    lock_enter(&semaphore->lock);
    promise_t *promise = ledger_promise_of(semaphore, value);
    if (promise) promise_retain(promise);
    lock_leave(&semaphore->lock);
    return promise;
}

static uint64_t ledger_ended(keel_semaphore_t *semaphore)
{
    lock_enter(&semaphore->lock);
    uint64_t ended = ledger_of(semaphore)->ended;
    lock_leave(&semaphore->lock);
    return ended;
}

static keel_status_t ledger_value(keel_semaphore_t *semaphore, uint64_t *value)
{
    semaphore_chase(semaphore, ledger_ended(semaphore));
    *value = ledger_ended(semaphore);
    return NULL;
}

static const semaphore_ops_t ledger_ops = {
    .value = ledger_value,
    .watch = ledger_watch,
    .unwatch = ledger_unwatch,
    .promised = ledger_promised,
    .export = semaphore_not_exported,
    .destroy = ledger_destroy,
    .one_queue = true,
};

keel_status_t ledger_create(keel_semaphore_t **semaphore)
{
    ledger_t *ledger = mem_zalloc_aligned(sizeof *ledger, _Alignof(ledger_t));
    if (!ledger) return status_no_memory();
    semaphore_init(&ledger->semaphore, &ledger_ops, 0);
    atomic_init(&ledger->semaphore.last, 0);
    ledger->slots = mem_zalloc(FIRST_SLOTS * sizeof *ledger->slots);
    ledger->mask = FIRST_SLOTS - 1;
    if (!ledger->slots) {
        mem_free_aligned(ledger);
        return status_no_memory();
    }
    *semaphore = &ledger->semaphore;
    return NULL;
}
