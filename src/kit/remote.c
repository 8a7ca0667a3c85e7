// SPDX-License-Identifier: Apache-2.0
// The host's side of a value that a device keeps.
//
// No notification is lost: a waiter is linked, then `watch` is called, then the host looks. What
// the device did before `watch` is found by that look; what it does later is notified. When a look
// finds news and waiters for more are left, the two steps are made again for these.
#include "kit/remote.h"

#include <keel/driver/submission.h>
#include <stddef.h>

#include "base/status.h"
#include "kit/object.h"
#include "kit/timeline.h"

enum { POLL_NS = 50000 }; // a host that waits longer had better sleep

static remote_t *remote_of(keel_semaphore_t *semaphore)
{
    return (remote_t *)(void *)semaphore;
}

// What the host knows, and SEMAPHORE_FAILED.
static uint64_t remote_known(remote_t *remote)
{
    // acquire: pairs with timeline_raise and timeline_fail.
    return atomic_load_explicit(&remote->semaphore.value, memory_order_acquire);
}

// The device has come that far, and failed if `failure` (consumed) is given. True: there was news,
// threads sleep for more, and the driver has to be told of these.
static bool remote_reach(remote_t *remote, uint64_t value, keel_status_t failure)
{
    keel_semaphore_t *semaphore = &remote->semaphore;
    lock_enter(&semaphore->lock);
    bool news = value > remote_known(remote);
    waiter_t *list = timeline_raise(semaphore, value);
    remote->asked &= waiters_first(semaphore) != UINT64_MAX;
    bool more = news && !failure && remote->asked && !remote->ops->lasts;
    lock_leave(&semaphore->lock);
    waiters_fire(list, NULL);
    if (failure) timeline_fail(semaphore, failure);
    return more;
}

void remote_look(remote_t *remote)
{
    for (uint64_t known; !((known = remote_known(remote)) & SEMAPHORE_FAILED);) {
        uint64_t value = known;
        keel_status_t failure = remote->ops->load(remote, &value);
        if (!failure && value <= known) return;
        if (!remote_reach(remote, value, failure)) return;
        remote->ops->watch(remote);
    }
}

point_state_t remote_poll(const keel_point_t *point, keel_status_t *failure)
{
    if (!point_is_past(point)) remote_look(remote_of(point->semaphore));
    return timeline_poll(point->semaphore, point->value, failure);
}

uint64_t remote_awaited(remote_t *remote)
{
    lock_enter(&remote->semaphore.lock);
    uint64_t value = waiters_first(&remote->semaphore);
    lock_leave(&remote->semaphore.lock);
    return value;
}

keel_status_t remote_refusal(remote_t *remote, uint64_t value)
{
    remote_look(remote);
    keel_status_t status = timeline_refusal(&remote->semaphore, value);
    if (status) return status;
    return KEEL_ERROR(KEEL_INTERNAL, "the device refuses to signal semaphore '%s' to %llu",
                      remote->semaphore.name ? remote->semaphore.name : "",
                      (unsigned long long)value);
}

static keel_status_t remote_value(keel_semaphore_t *semaphore, uint64_t *value)
{
    remote_look(remote_of(semaphore));
    uint64_t now = remote_known(remote_of(semaphore));
    *value = now & ~SEMAPHORE_FAILED;
    return now & SEMAPHORE_FAILED ? keel_status_retain(atomic_load(&semaphore->failure)) : NULL;
}

static keel_status_t remote_signal(keel_semaphore_t *semaphore, uint64_t value)
{
    remote_t *remote = remote_of(semaphore);
    KEEL_TRY(timeline_refusal(semaphore, value));
    KEEL_TRY(remote->ops->signal(remote, value));
    if (remote_reach(remote, value, NULL)) {
        remote->ops->watch(remote);
        remote_look(remote);
    }
    return NULL;
}

// The cause is noted first, so that a look that finds the device failed meanwhile takes this one.
static void remote_fail(keel_semaphore_t *semaphore, keel_status_t cause)
{
    remote_t *remote = remote_of(semaphore);
    keel_status_t none = NULL;
    if (remote_known(remote) & SEMAPHORE_FAILED) {
        keel_status_release(cause);
        return;
    }
    if (!atomic_compare_exchange_strong(&semaphore->failure, &none, cause)) {
        keel_status_release(cause);
        cause = none;
    }
    keel_status_retain(cause);
    remote->ops->fail(remote, cause);
    remote_look(remote); // where it stands still
    timeline_fail(semaphore, cause);
}

static void remote_ask(remote_t *remote)
{
    remote->ops->watch(remote);
    remote_look(remote);
}

static point_state_t remote_watch(keel_semaphore_t *semaphore, waiter_t *waiter,
                                  keel_status_t *failure)
{
    remote_t *remote = remote_of(semaphore);
    bool asks = false;
    lock_enter(&semaphore->lock);
    point_state_t state = timeline_poll(semaphore, waiter->node.key, failure);
    // A device that waits for a value fails with it: who waits for the end is told by the host.
    bool serves = !waiter->ended && promise_serves(&remote->promise, waiter->early);
    if (state == POINT_PENDING && serves) {
        waiter->promise = promise_retain(&remote->promise);
        state = POINT_PROMISED;
    } else if (state == POINT_PENDING) {
        waiter->hangs = false;
        waiters_add(semaphore, waiter);
        asks = waiter->asks;
        remote->asked |= asks;
    }
    lock_leave(&semaphore->lock);
    if (asks) remote_ask(remote);
    return state;
}

static promise_t *remote_promised(keel_semaphore_t *semaphore, uint64_t value, bool all)
{
    (void)value, (void)all;
    remote_t *remote = remote_of(semaphore);
    return remote_known(remote) & SEMAPHORE_FAILED ? NULL : promise_retain(&remote->promise);
}

static void remote_promise(signal_t *signal)
{
    (void)signal; // queues of the device wait for the semaphore itself
}

void remote_leave(keel_submission_t *submission, uint32_t index)
{
    for (uint32_t i = index; i < submission->signal_count; i++)
        submission->signals[i].native = false;
}

// The device has made or failed it, unless it was lost. Returns why it is not made, though its
// submission has ended well.
static keel_status_t native_settle(const signal_t *signal, keel_status_t failure)
{
    keel_semaphore_t *semaphore = signal->point.semaphore;
    keel_status_t known = NULL;
    point_state_t state = remote_poll(&signal->point, &known);
    keel_status_release(known);
    if (state != POINT_PENDING) return NULL;
    if (!failure)
        return KEEL_ERROR(KEEL_INTERNAL, "the device has not signalled semaphore '%s' to %llu",
                          semaphore->name ? semaphore->name : "",
                          (unsigned long long)signal->point.value);
    remote_fail(semaphore, keel_status_retain(failure));
    return NULL;
}

static keel_status_t remote_settle(signal_t *signal, keel_status_t failure)
{
    keel_semaphore_t *semaphore = signal->point.semaphore;
    if (signal->native) return native_settle(signal, failure);
    if (failure) {
        remote_fail(semaphore, keel_status_retain(failure));
        return NULL;
    }
    keel_status_t refusal = remote_signal(semaphore, signal->point.value);
    return refusal ? signal_refused(signal, refusal) : NULL;
}

static keel_status_t remote_export(keel_semaphore_t *semaphore, keel_external_semaphore_t *external)
{
    remote_t *remote = remote_of(semaphore);
    return remote->ops->export ? remote->ops->export(remote, external)
                               : semaphore_not_exported(semaphore, external);
}

static void remote_destroy(keel_semaphore_t *semaphore)
{
    remote_of(semaphore)->ops->destroy(remote_of(semaphore));
}

static const semaphore_ops_t remote_semaphore_ops = {
    .value = remote_value,
    .signal = remote_signal,
    .fail = remote_fail,
    .watch = remote_watch,
    .unwatch = timeline_unwatch,
    .promised = remote_promised,
    .promise = remote_promise,
    .settle = remote_settle,
    .export = remote_export,
    .destroy = remote_destroy,
};

static remote_t *promise_remote(promise_t *promise)
{
    return (remote_t *)(void *)((char *)promise - offsetof(remote_t, promise));
}

static void promise_end(promise_t *promise)
{
    (void)promise; // the semaphore has the last reference
}

static void promise_poll(promise_t *promise)
{
    remote_look(promise_remote(promise));
}

static void promise_ask(promise_t *promise)
{
    remote_t *remote = promise_remote(promise);
    lock_enter(&remote->semaphore.lock);
    remote->asked = true;
    lock_leave(&remote->semaphore.lock);
    remote_ask(remote);
}

static const promise_ops_t remote_promise_ops = {
    .destroy = promise_end, .poll = promise_poll, .ask = promise_ask, .poll_ns = POLL_NS};

void remote_init(remote_t *remote, const remote_ops_t *ops, const keel_device_t *device,
                 uint64_t initial)
{
    semaphore_init(&remote->semaphore, &remote_semaphore_ops, initial);
    remote->ops = ops;
    remote->promise = (promise_t){.refs = 1, .device = device, .ops = &remote_promise_ops};
}

remote_t *remote_with(keel_semaphore_t *semaphore, const remote_ops_t *ops)
{
    if (semaphore->ops != &remote_semaphore_ops) return NULL;
    return remote_of(semaphore)->ops == ops ? remote_of(semaphore) : NULL;
}

remote_t *remote_here(keel_semaphore_t *semaphore, const keel_device_t *device)
{
    if (semaphore->ops != &remote_semaphore_ops) return NULL;
    remote_t *remote = remote_of(semaphore);
    return promise_serves(&remote->promise, device) ? remote : NULL;
}

bool remote_list_add(remote_list_t *list, remote_t *remote)
{
    if (remote->poll.listed) return false;
    remote->poll.next = NULL;
    remote->poll.previous = list->last;
    *(list->last ? &list->last->poll.next : &list->first) = remote;
    list->last = remote;
    remote->poll.listed = true;
    list->count++;
    return true;
}

void remote_list_remove(remote_list_t *list, remote_t *remote)
{
    if (!remote->poll.listed) return;
    *(remote->poll.previous ? &remote->poll.previous->poll.next : &list->first) = remote->poll.next;
    *(remote->poll.next ? &remote->poll.next->poll.previous : &list->last) = remote->poll.previous;
    remote->poll.listed = false;
    list->count--;
}

remote_t *remote_list_take(remote_list_t *list)
{
    remote_t *remote = list->first;
    if (!remote) return NULL;
    remote_list_remove(list, remote);
    return object_hold(&remote->semaphore.object) ? remote : NULL;
}
