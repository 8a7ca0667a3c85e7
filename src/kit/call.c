// SPDX-License-Identifier: Apache-2.0
#include "kit/call.h"

#include <pthread.h>
#include <string.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/thread.h"
#include "kit/submission.h"

// What the application knows a call by is a number, not where it lies: that memory is recycled, and
// a call that is completed twice must not be taken for another. Deferred calls are found by it.
enum { BUCKETS = 256 };
static struct {
    lock_t lock;
    keel_call_state_t *buckets[BUCKETS]; // linked by `next`
    pthread_once_t once;
} deferred = {.once = PTHREAD_ONCE_INIT};
static _Atomic uint64_t numbers;                  // given so far
static THREAD_LOCAL keel_call_state_t *innermost; // of the calls that this thread is in

static void deferred_lock(void)
{
    lock_enter(&deferred.lock);
}

static void deferred_unlock(void)
{
    lock_leave(&deferred.lock);
}

// The child has none of the parent's.
static void deferred_forget(void)
{
    memset(deferred.buckets, 0, sizeof deferred.buckets);
    lock_leave(&deferred.lock);
}

static void deferred_init(void)
{
    pthread_atfork(deferred_lock, deferred_unlock, deferred_forget);
}

static void deferred_add(keel_call_state_t *state)
{
    pthread_once(&deferred.once, deferred_init);
    lock_enter(&deferred.lock);
    keel_call_state_t **bucket = &deferred.buckets[state->number % BUCKETS];
    state->next = *bucket;
    *bucket = state;
    lock_leave(&deferred.lock);
}

// Takes it off the list: of several threads one gets it.
static keel_call_state_t *deferred_take(uint64_t number)
{
    lock_enter(&deferred.lock);
    keel_call_state_t **link = &deferred.buckets[number % BUCKETS];
    while (*link && (*link)->number != number) link = &(*link)->next;
    keel_call_state_t *state = *link;
    if (state) *link = state->next;
    lock_leave(&deferred.lock);
    return state;
}

bool call_defer(keel_host_call_t *call)
{
    keel_call_state_t *state = innermost;
    while (state && state->number != (uintptr_t)call) state = state->outer;
    if (state && !state->deferred) {
        state->deferred = true;
        deferred_add(state);
    }
    return state;
}

bool call_complete(keel_host_call_t *call, keel_status_t status)
{
    keel_call_state_t *state = deferred_take((uintptr_t)call);
    if (!state) return false;
    state->status = status;
    // acq_rel: pairs with call_make; if the call has returned already, it is ours to end.
    uint32_t before =
        atomic_fetch_or_explicit(&state->end, KEEL_CALL_COMPLETED, memory_order_acq_rel);
    if (before & KEEL_CALL_RETURNED) state->done(state, status);
    return true;
}

// `state` is NULL for a detached one.
static keel_status_t call(const keel_device_t *device, const keel_call_t *call,
                          keel_call_state_t *state)
{
    nest_t nest;
    keel_call_state_t *outer = innermost;
    if (state) {
        // relaxed: only that they differ matters.
        state->number = atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed) + 1;
        state->outer = outer;
    }
    innermost = state;
    submission_nest(&nest, device);
    keel_status_t status =
        call->fn(call->user, state ? (keel_host_call_t *)(uintptr_t)state->number : NULL);
    submission_unnest(&nest);
    innermost = outer;
    return status;
}

static void lose(const char *what, keel_status_t status)
{
    if (status) log_say(KEEL_LOG_ERROR, "%s: %s", what, keel_status_message(status));
    keel_status_release(status);
}

bool call_make(const keel_device_t *device, keel_cmd_call_t *c, keel_status_t *status)
{
    keel_call_state_t *state = &c->state;
    c->made = true;
    *status = call(device, &c->call, state);
    if (!state->deferred) return true;
    if (*status && deferred_take(state->number)) return true; // none can complete it any more
    lose("a host call that was completed returned an error, which is lost", *status);
    *status = NULL;
    // acq_rel: pairs with call_complete; the later of the two ends the call.
    uint32_t before =
        atomic_fetch_or_explicit(&state->end, KEEL_CALL_RETURNED, memory_order_acq_rel);
    if (!(before & KEEL_CALL_COMPLETED)) return false;
    *status = state->status;
    return true;
}

void call_make_detached(const keel_device_t *device, const keel_call_t *detached)
{
    lose("a detached host call failed", call(device, detached, NULL));
}

typedef struct posted_t {
    chore_t chore;
    keel_queue_t *queue; // retained: it keeps the device
    keel_cmd_call_t *c;  // NULL: detached, and the command may be gone
    keel_call_t call;
} posted_t;

static void posted_make(void *owner, chore_t *chore)
{
    const posted_t *posted = (const posted_t *)chore;
    const keel_device_t *device = posted->queue->device;
    keel_cmd_call_t *c = posted->c;
    keel_status_t status;
    if (!c)
        call_make_detached(device, &posted->call);
    else if (call_make(device, c, &status))
        c->state.done(&c->state, status);
    keel_queue_release(posted->queue);
}

keel_status_t call_post(chores_t *calls, keel_queue_t *queue, keel_cmd_call_t *c)
{
    posted_t *posted = mem_zalloc(sizeof *posted);
    if (!posted) return status_no_memory();
    *posted = (posted_t){
        .chore.run = posted_make,
        .queue = keel_queue_retain(queue),
        .c = c->call.detached ? NULL : c,
        .call = c->call,
    };
    c->made = true;
    chores_add(calls, &posted->chore);
    return NULL;
}

static void *posted_run(void *posted)
{
    posted_make(NULL, posted);
    mem_free(posted);
    return NULL;
}

keel_status_t call_post_detached(keel_queue_t *queue, keel_cmd_call_t *c)
{
    posted_t *posted = mem_zalloc(sizeof *posted);
    if (!posted) return status_no_memory();
    *posted = (posted_t){.queue = keel_queue_retain(queue), .call = c->call};
    c->made = thread_detach("keel-call", posted_run, posted);
    if (c->made) return NULL;
    keel_queue_release(posted->queue);
    mem_free(posted);
    return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "there is no thread for a detached host call");
}
