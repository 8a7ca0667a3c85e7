// SPDX-License-Identifier: Apache-2.0
// keel_on and completion queues: two owners of waits without a thread (kit/on.h).
#include <keel/completion.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/live.h"
#include "base/lock.h"
#include "base/memory.h"
#include "base/notify.h"
#include "core/check.h"
#include "core/device_ref.h"
#include "kit/chores.h"
#include "kit/on.h"
#include "kit/submission.h"

// A call. Two may hold it: the wait, until it has ended, and the handle.
struct keel_on_t {
    chore_t chore; // first: its turn on the device's thread
    on_t on;
    _Atomic uint32_t refs;
    uint32_t generation; // of fork
    keel_on_fn fn;
    void *user;
    keel_device_t *device; // whose thread makes the call; borrowed
    on_entry_t entries[];
};

static void handle_release(keel_on_t *call)
{
    // acq_rel: what the other did with it comes before.
    if (atomic_fetch_sub_explicit(&call->refs, 1, memory_order_acq_rel) == 1) mem_free(call);
}

// Nothing of the wait is left when the function is called: it may look.
static void handle_call(keel_on_t *call, keel_device_t *device)
{
    keel_on_fn fn = call->fn;
    void *user = call->user;
    keel_status_t status = call->on.failure;
    nest_t nest;
    on_release(&call->on);
    handle_release(call);
    live_add(LIVE_COMPLETION, -1);
    submission_nest(&nest, device);
    fn(user, status);
    submission_unnest(&nest);
}

static void handle_run(void *device, chore_t *chore)
{
    handle_call((keel_on_t *)chore, device);
}

static keel_on_t *handle_of(on_t *on)
{
    return (keel_on_t *)(void *)((char *)on - offsetof(keel_on_t, on));
}

static void handle_ended(on_t *on, keel_device_t *device)
{
    keel_on_t *call = handle_of(on);
    if (atomic_load(&on->fate) == ON_DROPPED) {
        on_release(on);
        handle_release(call);
        live_add(LIVE_COMPLETION, -1);
        return;
    }
    chores_t *calls = device ? atomic_load(&device->calls) : NULL;
    if (!calls) {
        handle_call(call, device);
        return;
    }
    device_hold(device); // the semaphores, which keep it, go before the call
    chores_add(calls, &call->chore);
    device_drop(device);
}

// Sees to it that the device can make calls. A closed one cannot: the thread that ends a wait makes
// them.
static keel_status_t calls_ready(keel_device_t *device)
{
    if (atomic_load(&device->calls)) return NULL;
    chores_t *calls = mem_zalloc(sizeof *calls), *none = NULL;
    if (!calls) return status_no_memory();
    chores_init(calls, "keel-on", NULL, device);
    lock_enter(device_lock(device));
    bool taken = !atomic_load(&device->closed) &&
                 atomic_compare_exchange_strong(&device->calls, &none, calls);
    lock_leave(device_lock(device));
    if (!taken) mem_free(calls);
    return NULL;
}

keel_status_t keel_on(keel_points_t points, keel_wait_mode_t mode, keel_on_fn fn, void *user,
                      keel_on_t **handle)
{
    if (handle) *handle = NULL;
    CHECK(fn, KEEL_INVALID_ARGUMENT, "fn is NULL");
    KEEL_TRY(wait_check(points, mode));
    for (size_t i = 0; i < points.count; i++)
        KEEL_TRY(calls_ready(points.points[i].semaphore->device));
    keel_on_t *call = mem_alloc(sizeof *call + points.count * sizeof call->entries[0]);
    if (!call) return status_no_memory();
    call->chore = (chore_t){.run = handle_run, .kept = true};
    atomic_init(&call->refs, handle ? 2 : 1);
    call->generation = fork_generation();
    call->fn = fn;
    call->user = user;
    live_add(LIVE_COMPLETION, 1);
    if (handle) *handle = call;
    on_begin(&call->on, points, mode, call->entries, handle_ended);
    return NULL;
}

// In the child of a fork: the wait stayed with the parent, and what it holds here goes.
static bool handle_forget(keel_on_t *call)
{
    bool pending = atomic_load(&call->on.left);
    if (pending) {
        on_release(&call->on);
        live_add(LIVE_COMPLETION, -1);
        handle_release(call);
    }
    handle_release(call);
    return pending;
}

bool keel_on_cancel(keel_on_t *handle)
{
    if (!handle) return false;
    if (!fork_is_ours(handle->generation)) return handle_forget(handle);
    bool dropped = on_pin(&handle->on) && on_drop(&handle->on);
    handle_release(handle);
    return dropped;
}

enum {
    FEW = 4,           // points that a recycled wait has room for
    MAX_SPARES = 1024, // waits kept for reuse: a burst must not hold memory for ever
};

typedef struct item_t {
    struct item_t *next, *previous;
    keel_completion_t *queue;
    void *user;
    bool listed; // among those that wait
    on_t on;
    on_entry_t entries[];
} item_t;

struct keel_completion_t {
    lock_t lock;           // for what follows
    bool closed;           // no more ends are taken
    bool polled;           // the descriptor was asked for
    uint32_t generation;   // of fork
    size_t pending;        // waits that have not ended, and the call that closes
    item_t *waiting;       // owned
    item_t *first, **last; // ended, in order; owned
    item_t *spare;         // owned
    uint32_t spare_count;
    uint32_t sleepers;
    _Atomic uint32_t ends; // so far: what they sleep on; written under the lock
    notify_t notify;       // readable while there is an end, if `polled`
};

static keel_status_t completion_check(const keel_completion_t *queue)
{
    CHECK_NOT_NULL(queue);
    CHECK(fork_is_ours(queue->generation), KEEL_DEVICE_LOST,
          "the completion queue was made before fork and stayed with the parent process");
    return NULL;
}

keel_status_t keel_completion_create(keel_completion_t **queue)
{
    CHECK_NOT_NULL(queue);
    *queue = NULL;
    keel_completion_t *q = mem_zalloc(sizeof *q);
    if (!q) return status_no_memory();
    keel_status_t status = notify_init(&q->notify);
    if (status) {
        mem_free(q);
        return status;
    }
    q->generation = fork_generation();
    q->last = &q->first;
    live_add(LIVE_COMPLETION, 1);
    *queue = q;
    return NULL;
}

static void items_free(item_t *list)
{
    for (item_t *item = list, *next; item; item = next) {
        next = item->next;
        mem_free(item);
    }
}

static void items_drop(item_t *list)
{
    for (item_t *item = list; item; item = item->next) keel_status_release(item->on.failure);
    items_free(list);
}

static void completion_destroy(keel_completion_t *queue)
{
    notify_finish(&queue->notify);
    items_drop(queue->first);
    items_free(queue->spare);
    mem_free(queue);
}

// One wait less; the last one of a closed queue frees it. Leaves the lock.
static void completion_leave(keel_completion_t *queue)
{
    bool last = --queue->pending == 0 && queue->closed;
    lock_leave(&queue->lock);
    if (last) completion_destroy(queue);
}

// Under the lock: it has an end to take, or has none any more.
static void completion_show(keel_completion_t *queue, bool any)
{
    if (!queue->polled) return;
    if (any)
        notify_set(&queue->notify);
    else
        notify_clear(&queue->notify);
}

static item_t *item_of(on_t *on)
{
    return (item_t *)(void *)((char *)on - offsetof(item_t, on));
}

// Under the lock.
static void item_append(keel_completion_t *queue, item_t *item)
{
    if (!queue->first) completion_show(queue, true);
    item->next = NULL;
    *queue->last = item;
    queue->last = &item->next;
    // relaxed: the lock orders it.
    atomic_fetch_add_explicit(&queue->ends, 1, memory_order_relaxed);
}

static void item_ended(on_t *on, keel_device_t *device)
{
    (void)device;
    item_t *item = item_of(on);
    keel_completion_t *queue = item->queue;
    _Atomic uint32_t *ends = &queue->ends;
    on_release(on);
    lock_enter(&queue->lock);
    if (item->listed) LIST_REMOVE(queue->waiting, item);
    bool closed = queue->closed, asleep = queue->sleepers;
    if (closed) {
        item->next = NULL;
        items_drop(item);
    } else {
        item_append(queue, item);
    }
    completion_leave(queue);
    if (!closed && asleep) futex_wake(ends, 1); // the queue may be gone: the address will do
}

// A wait with room for so many points.
static item_t *item_take(keel_completion_t *queue, size_t count)
{
    item_t *item = NULL;
    size_t room = count <= FEW ? FEW : count;
    lock_enter(&queue->lock);
    if (count <= FEW && queue->spare) {
        item = queue->spare;
        queue->spare = item->next;
        queue->spare_count--;
    }
    lock_leave(&queue->lock);
    return item ? item : mem_alloc(sizeof *item + room * sizeof item->entries[0]);
}

keel_status_t keel_completion_add(keel_completion_t *queue, keel_points_t points,
                                  keel_wait_mode_t mode, void *user)
{
    KEEL_TRY(completion_check(queue));
    KEEL_TRY(wait_check(points, mode));
    item_t *item = item_take(queue, points.count);
    if (!item) return status_no_memory();
    item->queue = queue;
    item->user = user;
    item->listed = true;
    item->on.count = 0; // nothing is retained yet, if the process forks now
    lock_enter(&queue->lock);
    LIST_ADD(queue->waiting, item);
    queue->pending++;
    lock_leave(&queue->lock);
    on_begin(&item->on, points, mode, item->entries, item_ended);
    return NULL;
}

// Under the lock: the next end, copied. True if its memory is to be freed.
static bool item_shift(keel_completion_t *queue, item_t **taken, void **user, keel_status_t *status)
{
    item_t *item = *taken = queue->first;
    if (!item) return false;
    queue->first = item->next;
    if (!queue->first) {
        queue->last = &queue->first;
        completion_show(queue, false);
    }
    *user = item->user;
    *status = item->on.failure;
    if (item->on.count > FEW || queue->spare_count >= MAX_SPARES) return true;
    item->next = queue->spare;
    queue->spare = item;
    queue->spare_count++;
    return false;
}

keel_status_t keel_completion_next(keel_completion_t *queue, uint64_t timeout_ns, void **user,
                                   keel_status_t *status)
{
    CHECK_NOT_NULL(user);
    CHECK_NOT_NULL(status);
    *user = NULL;
    *status = NULL;
    KEEL_TRY(completion_check(queue));
    uint64_t deadline_ns = timeout_ns ? clock_deadline(timeout_ns) : 0;
    item_t *item = NULL;
    bool in_time = timeout_ns != 0, surplus;
    lock_enter(&queue->lock);
    while (!(surplus = item_shift(queue, &item, user, status)) && !item && in_time) {
        uint32_t ends = atomic_load_explicit(&queue->ends, memory_order_relaxed);
        queue->sleepers++;
        lock_leave(&queue->lock);
        in_time = futex_wait(&queue->ends, ends, deadline_ns);
        lock_enter(&queue->lock);
        queue->sleepers--;
    }
    lock_leave(&queue->lock);
    if (surplus) mem_free(item);
    return item ? NULL : status_timed_out();
}

int keel_completion_fd(keel_completion_t *queue)
{
    if (!fork_is_ours(queue->generation)) return queue->notify.read_fd;
    lock_enter(&queue->lock);
    if (!queue->polled && queue->first) notify_set(&queue->notify);
    queue->polled = true;
    lock_leave(&queue->lock);
    return queue->notify.read_fd;
}

// Takes the next wait off the list, pinned unless it is about to end. Under the lock.
static item_t *waiting_shift(keel_completion_t *queue, bool *pinned)
{
    item_t *item = queue->waiting;
    if (!item) return NULL;
    LIST_REMOVE(queue->waiting, item);
    item->listed = false;
    *pinned = on_pin(&item->on);
    return item;
}

// In the child of a fork: all waits stayed with the parent.
static void completion_forget(keel_completion_t *queue)
{
    for (item_t *item = queue->waiting; item; item = item->next) on_release(&item->on);
    items_free(queue->waiting);
    completion_destroy(queue);
}

void keel_completion_release(keel_completion_t *queue)
{
    if (!queue) return;
    live_add(LIVE_COMPLETION, -1);
    if (!fork_is_ours(queue->generation)) {
        completion_forget(queue);
        return;
    }
    item_t *item;
    bool pinned;
    lock_enter(&queue->lock);
    queue->closed = true;
    queue->pending++; // ourselves
    while ((item = waiting_shift(queue, &pinned))) {
        lock_leave(&queue->lock);
        if (pinned) on_drop(&item->on);
        lock_enter(&queue->lock);
    }
    completion_leave(queue);
}
