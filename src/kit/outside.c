// SPDX-License-Identifier: Apache-2.0
#include "kit/outside.h"

#include "base/memory.h"
#include "base/status.h"
#include "kit/object.h"

void outside_init(outside_t *outside, keel_semaphore_t *semaphore, void (*wake)(outside_t *))
{
    outside->wake = wake;
    outside->fd = -1;
    outside->semaphore = semaphore;
    outside->last = &outside->first;
    outside->sent = outside->reached = atomic_load(&semaphore->value);
    semaphore->outside = outside;
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
    if (semaphore) lock_enter(&semaphore->lock); // else nobody else has the list
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

outgoing_t *outside_prepare(const keel_semaphore_t *semaphore, promise_t *promise)
{
    // Only the device itself knows what it promises; others come by way of the host.
    if (promise && promise->device != semaphore->device) return NULL;
    outgoing_t *outgoing = mem_zalloc(sizeof *outgoing);
    if (outgoing && promise) outgoing->promise = promise_retain(promise);
    return outgoing;
}

void outside_add(keel_semaphore_t *semaphore, outgoing_t *outgoing, uint64_t value)
{
    outside_t *outside = semaphore->outside;
    outgoing->value = outside->sent = value;
    *outside->last = outgoing;
    outside->last = &outgoing->next;
}

// Under the lock: moves the value up, unless it has failed. Returns whom to tell.
static waiter_t *value_raise(keel_semaphore_t *semaphore, uint64_t value)
{
    uint64_t old = atomic_load_explicit(&semaphore->value, memory_order_relaxed);
    // Under the lock nobody else moves it. release: as in timeline_signal.
    if (value <= old) return NULL; // a failed one's bit is above all values
    atomic_store(&semaphore->value, value);
    return waiters_take(semaphore, value);
}

keel_status_t outside_signal(keel_semaphore_t *semaphore, uint64_t value)
{
    outside_t *outside = semaphore->outside;
    outgoing_t *outgoing = outside_prepare(semaphore, NULL);
    if (!outgoing) return status_no_memory();
    lock_enter(&semaphore->lock);
    keel_status_t status = timeline_refusal(semaphore, value);
    waiter_t *list = NULL;
    if (!status) {
        // One below what is promised was not ordered; the other side sees the larger one.
        if (value > outside->sent) {
            outside_add(semaphore, outgoing, value);
            outgoing = NULL;
        }
        list = value_raise(semaphore, value);
    }
    lock_leave(&semaphore->lock);
    if (!status && !outgoing) outside->wake(outside);
    outside_drop(outgoing);
    waiters_fire(list, NULL);
    return status;
}

uint64_t outside_due(const keel_semaphore_t *semaphore, uint64_t value)
{
    uint64_t reached = semaphore->outside->reached;
    bool held = semaphore->promised && semaphore->promised->point.value <= reached;
    return reached > value && !held ? reached : value;
}

void outside_reach(keel_semaphore_t *semaphore, uint64_t value)
{
    promise_t *promise = NULL;
    lock_enter(&semaphore->lock);
    if (value > semaphore->outside->reached) semaphore->outside->reached = value;
    waiter_t *list = value_raise(semaphore, outside_due(semaphore, 0));
    if (!list && semaphore->promised && semaphore->promised->point.value <= value)
        promise = promise_retain(semaphore->promised->promise);
    lock_leave(&semaphore->lock);
    if (promise) promise->ops->ask(promise); // its end tells the rest
    promise_release(promise);
    waiters_fire(list, NULL);
}

uint64_t outside_awaited(const keel_semaphore_t *semaphore)
{
    uint64_t value = atomic_load(&semaphore->next_wait);
    return value > semaphore->outside->reached ? value : UINT64_MAX;
}
