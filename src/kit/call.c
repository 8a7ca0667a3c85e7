// SPDX-License-Identifier: Apache-2.0
#include "kit/call.h"

#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/thread.h"
#include "kit/submission.h"

static keel_status_t call(const keel_device_t *device, const keel_call_t *call,
                          keel_host_call_t *state)
{
    nest_t nest;
    submission_nest(&nest, device);
    keel_status_t status = call->fn(call->user, state);
    submission_unnest(&nest);
    return status;
}

static void lose(const char *what, keel_status_t status)
{
    if (status) log_say(KEEL_LOG_ERROR, "%s: %s", what, keel_status_message(status));
    keel_status_release(status);
}

bool call_make(const keel_device_t *device, keel_cmd_call_t *c, keel_status_t *status)
{
    *status = call(device, &c->call, &c->state);
    if (!c->state.deferred) return true;
    lose("a deferred host call returned an error, which is lost", *status);
    *status = NULL;
    // acq_rel: pairs with keel_call_complete; the later of the two ends the call.
    uint32_t before =
        atomic_fetch_or_explicit(&c->state.end, KEEL_CALL_RETURNED, memory_order_acq_rel);
    if (!(before & KEEL_CALL_COMPLETED)) return false;
    *status = c->state.status;
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
    chores_add(calls, &posted->chore);
    return NULL;
}

static void *posted_run(void *posted)
{
    posted_make(NULL, posted);
    mem_free(posted);
    return NULL;
}

keel_status_t call_post_detached(keel_queue_t *queue, const keel_call_t *detached)
{
    posted_t *posted = mem_zalloc(sizeof *posted);
    if (!posted) return status_no_memory();
    *posted = (posted_t){.queue = keel_queue_retain(queue), .call = *detached};
    if (thread_detach("keel-call", posted_run, posted)) return NULL;
    keel_queue_release(posted->queue);
    mem_free(posted);
    return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "there is no thread for a detached host call");
}
