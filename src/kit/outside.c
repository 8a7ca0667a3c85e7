// SPDX-License-Identifier: Apache-2.0
#include "kit/outside.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/status.h"
#include "kit/object.h"
#include "kit/timeline.h"

typedef struct imported_t {
    keel_semaphore_t semaphore;
    outside_t *outside; // the driver's
    int fd;             // owned: what it was imported by
} imported_t;

static imported_t *imported_of(keel_semaphore_t *semaphore)
{
    return (imported_t *)(void *)semaphore;
}

static void outside_wake(keel_semaphore_t *semaphore)
{
    outside_t *outside = imported_of(semaphore)->outside;
    outside->ops->wake(outside);
}

bool outside_detach(outside_t *outside)
{
    lock_enter(&outside->lock);
    outside->semaphore = NULL;
    bool closed = outside->closed;
    lock_leave(&outside->lock);
    return closed;
}

bool outside_close(outside_t *outside)
{
    lock_enter(&outside->lock);
    outside->closed = true;
    bool released = !outside->semaphore;
    lock_leave(&outside->lock);
    return released;
}

void outside_finish(outside_t *outside)
{
    while (outside->first) {
        outgoing_t *outgoing = outside->first;
        outside->first = outgoing->next;
        outside_drop(outgoing);
    }
}

keel_semaphore_t *outside_hold(outside_t *outside, bool *released)
{
    lock_enter(&outside->lock); // which the release takes too, before the memory goes
    keel_semaphore_t *semaphore = outside->semaphore;
    *released = !semaphore;
    if (semaphore && !object_hold(&semaphore->object)) semaphore = NULL;
    lock_leave(&outside->lock);
    return semaphore;
}

outgoing_t *outside_take(outside_t *outside, keel_semaphore_t *semaphore)
{
    if (semaphore) lock_enter(&semaphore->lock); // else no other thread has the list
    outgoing_t *list = outside->first;
    outside->first = NULL;
    outside->last = &outside->first;
    if (semaphore) lock_leave(&semaphore->lock);
    return list;
}

void outside_drop(outgoing_t *outgoing)
{
    if (!outgoing) return;
    promise_release(outgoing->promise);
    mem_free(outgoing);
}

// What is needed to send a signal with its promise, or at once; NULL: it cannot be promised.
static outgoing_t *outgoing_create(const keel_semaphore_t *semaphore, promise_t *promise)
{
    // Only the device itself knows what it promises; others come by way of the host.
    if (promise && promise->device != semaphore->device) return NULL;
    outgoing_t *outgoing = mem_zalloc(sizeof *outgoing);
    if (outgoing && promise) outgoing->promise = promise_retain(promise);
    return outgoing;
}

// Under the semaphore's lock: puts it on the list.
static void outgoing_add(outside_t *outside, outgoing_t *outgoing, uint64_t value)
{
    outgoing->value = outside->sent = value;
    *outside->last = outgoing;
    outside->last = &outgoing->next;
}

static keel_status_t outside_signal(keel_semaphore_t *semaphore, uint64_t value)
{
    outside_t *outside = imported_of(semaphore)->outside;
    outgoing_t *outgoing = outgoing_create(semaphore, NULL);
    if (!outgoing) return status_no_memory();
    lock_enter(&semaphore->lock);
    keel_status_t status = timeline_refusal(semaphore, value);
    waiter_t *list = NULL;
    if (!status) {
        // One below what is promised was not ordered; the other side sees the larger one.
        if (value > outside->sent) {
            outgoing_add(outside, outgoing, value);
            outgoing = NULL;
        }
        list = timeline_raise(semaphore, value);
    }
    lock_leave(&semaphore->lock);
    if (!status && !outgoing) outside_wake(semaphore);
    outside_drop(outgoing);
    waiters_fire(list, NULL);
    return status;
}

static point_state_t outside_watch(keel_semaphore_t *semaphore, waiter_t *waiter,
                                   keel_status_t *failure)
{
    point_state_t state = timeline_watch(semaphore, waiter, failure);
    if (state != POINT_PROMISED) outside_wake(semaphore);
    return state;
}

static bool outside_unwatch(keel_semaphore_t *semaphore, waiter_t *waiter)
{
    bool removed = timeline_unwatch(semaphore, waiter);
    outside_wake(semaphore);
    return removed;
}

static void outside_promise(signal_t *signal)
{
    keel_semaphore_t *semaphore = signal->point.semaphore;
    promise_t *promise = signal->promise;
    bool asks = false;
    outgoing_t *outgoing = outgoing_create(semaphore, promise);
    if (!outgoing) return;
    lock_enter(&semaphore->lock);
    waiter_t *told = timeline_list(signal, &asks);
    if (signal->listed) {
        outgoing_add(imported_of(semaphore)->outside, outgoing, signal->point.value);
        outgoing = NULL;
    }
    lock_leave(&semaphore->lock);
    if (!outgoing) outside_wake(semaphore);
    outside_drop(outgoing);
    if (asks) promise->ops->ask(promise);
    waiters_fire(told, NULL);
}

// Under the lock: the value to go to when nothing that is promised is in the way; `value` at least.
static uint64_t outside_due(keel_semaphore_t *semaphore, uint64_t value)
{
    uint64_t reached = imported_of(semaphore)->outside->reached;
    bool held = semaphore->promised && semaphore->promised->point.value <= reached;
    return reached > value && !held ? reached : value;
}

// A promised signal has come.
static void outside_keep(signal_t *signal)
{
    keel_semaphore_t *semaphore = signal->point.semaphore;
    uint64_t value = signal->point.value;
    lock_enter(&semaphore->lock);
    timeline_unlist(signal);
    waiter_t *list = timeline_raise_promised(semaphore, outside_due(semaphore, value));
    lock_leave(&semaphore->lock);
    outside_wake(semaphore);
    waiters_fire(list, NULL);
}

static keel_status_t outside_settle(signal_t *signal, keel_status_t failure)
{
    keel_status_t refusal = NULL;
    if (failure) return timeline_settle(signal, failure);
    if (signal->listed)
        outside_keep(signal);
    else
        refusal = outside_signal(signal->point.semaphore, signal->point.value);
    return refusal ? signal_refused(signal, refusal) : NULL;
}

void outside_reach(outside_t *outside, keel_semaphore_t *semaphore, uint64_t value)
{
    promise_t *promise = NULL;
    lock_enter(&semaphore->lock);
    if (value > outside->reached) outside->reached = value;
    waiter_t *list = timeline_raise(semaphore, outside_due(semaphore, 0));
    if (!list && semaphore->promised && semaphore->promised->point.value <= value)
        promise = promise_retain(semaphore->promised->promise);
    lock_leave(&semaphore->lock);
    if (promise) promise->ops->ask(promise); // its end tells the rest
    promise_release(promise);
    waiters_fire(list, NULL);
}

uint64_t outside_awaited(outside_t *outside, keel_semaphore_t *semaphore)
{
    lock_enter(&semaphore->lock);
    uint64_t value = waiters_first(semaphore);
    lock_leave(&semaphore->lock);
    return value > outside->reached ? value : UINT64_MAX;
}

static keel_status_t outside_export(keel_semaphore_t *semaphore,
                                    keel_external_semaphore_t *external)
{
    if (external->kind != KEEL_SEMAPHORE_TIMELINE_FD)
        return semaphore_not_exported(semaphore, external);
    external->handle.fd = fcntl(imported_of(semaphore)->fd, F_DUPFD_CLOEXEC, 0);
    if (external->handle.fd >= 0) return NULL;
    return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "the process has no file descriptor left");
}

static void outside_destroy(keel_semaphore_t *semaphore)
{
    imported_t *imported = imported_of(semaphore);
    close(imported->fd);
    imported->outside->ops->forget(imported->outside, !object_is_ours(&semaphore->object));
    mem_free_aligned(imported);
}

static const semaphore_ops_t outside_semaphore_ops = {
    .value = timeline_value,
    .signal = outside_signal,
    .fail = timeline_fail,
    .watch = outside_watch,
    .unwatch = outside_unwatch,
    .promised = timeline_promised,
    .promise = outside_promise,
    .settle = outside_settle,
    .export = outside_export,
    .destroy = outside_destroy,
};

keel_status_t outside_create(outside_t *outside, const outside_ops_t *ops, uint64_t initial, int fd,
                             keel_semaphore_t **semaphore)
{
    imported_t *imported = mem_zalloc_aligned(sizeof *imported, _Alignof(imported_t));
    if (!imported) return status_no_memory();
    semaphore_init(&imported->semaphore, &outside_semaphore_ops, initial);
    imported->outside = outside;
    imported->fd = fd;
    outside->ops = ops;
    outside->semaphore = &imported->semaphore;
    outside->last = &outside->first;
    outside->sent = outside->reached = initial;
    *semaphore = &imported->semaphore;
    return NULL;
}
