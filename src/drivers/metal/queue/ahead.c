// SPDX-License-Identifier: Apache-2.0
// Submissions that go ahead: their command buffers are committed before what they wait for has
// ended, so that no thread of the host is between the two.
//
//     P, on one queue      work | done: slot := n | signal the slot's event to n
//     C, on another        wait for the event | guard: is the slot n? | work
//
// A command buffer that was committed cannot be taken back, and the event is raised also when P has
// died: by the host then, so that nothing waits for ever. So P proves on the GPU that it came to
// its end, by a number in a slot that it writes last. C looks at the slot before anything else: if
// the number is another, its guard makes the grids of all its dispatches empty, the last of which
// would write C's own slot. Blits have no grid, so a guarded submission uses kernels in their
// place. guard.c has that.
//
// C may be on another GPU: an event reaches that, and the pages of the slots become a buffer of its
// own there, a view. Views keep what P's device had of Metal's, which may close before C ends.
//
// On one queue a fence takes the place of the event. The host still hears of each end by a
// completed handler, and fails C with P's cause. A slot is used again when P, and all that went
// ahead of it, have ended: they keep its promise.
//
// All this costs a few messages, so a submission makes a promise only while the device has lately
// seen others that came to wait for work in flight.
#include "base/memory.h"
#include "base/status.h"
#include "drivers/metal/queue/promise.h"
#include "drivers/metal/queue/queue.h"
#include "kit/submission.h"

void metal_ahead_note(keel_submission_t *submission)
{
    metal_device_t *device = metal_device(submission->queue->device);
    for (uint32_t i = 0; i < submission->wait_count; i++) {
        const keel_point_t *point = &submission->waits[i].point;
        if (point_is_past(point) || metal_event_is(point->semaphore)) continue;
        metal_demand_wait(device, point->semaphore != submission->queue->timeline);
    }
}

static bool is_own(const metal_run_t *run, const metal_promise_t *promise)
{
    return promise->queue == metal_queue(run->base.submission.queue);
}

// One promise that the run went ahead of. False: it is over, with its failure or without.
static bool ahead_begin(metal_run_t *run, metal_ahead_t *ahead, metal_promise_t *promise)
{
    metal_device_t *device = metal_run_device(run);
    metal_slots_t *slots = promise->slots;
    bool foreign = slots != device->promises.slots;
    metal_view_t *view = foreign ? metal_view_take(device, slots) : NULL;
    lock_enter(&slots->lock);
    bool over = promise->over;
    if (!over) {
        id words = foreign ? (view ? view->words : NULL) : slots->words;
        *ahead = (metal_ahead_t){promise, run, promise->first, view, words};
        promise->first = ahead;
        run_ahead_begin(&run->base);
        metal_demand_ahead(promise->device, !is_own(run, promise)); // it is there still
    }
    lock_leave(&slots->lock);
    if (!over && foreign) metal_demand_between();
    if (over) metal_view_give_back(device, view);
    if (over && promise->failure) run_fail(&run->base, keel_status_retain(promise->failure));
    return !over;
}

void metal_ahead_begin(run_t *base)
{
    metal_run_t *run = (metal_run_t *)(void *)base;
    const keel_submission_t *submission = &base->submission;
    uint32_t count = 0;
    run->aheads = NULL;
    run->ahead_count = 0;
    run->guarded = run->stuck = false;
    run->replayed = NULL; // of another submission
    for (uint32_t i = 0; i < submission->wait_count; i++)
        count += submission->waits[i].waiter.promise != NULL;
    if (!count) return;
    run->aheads = count <= METAL_AHEAD ? run->few : mem_alloc(count * sizeof *run->aheads);
    if (!run->aheads) run_fail(base, status_no_memory());
    for (uint32_t i = 0; run->aheads && i < submission->wait_count; i++) {
        promise_t *promise = submission->waits[i].waiter.promise;
        metal_ahead_t *ahead = &run->aheads[run->ahead_count];
        if (promise && ahead_begin(run, ahead, metal_promise_of(promise))) run->ahead_count++;
    }
}

void metal_ahead_settle(metal_run_t *run)
{
    run->guarded = run->base.leads;
    run->stuck = false;
    run->table.left = 0;
    run->table.buffer = NULL;
    run->table.gone = NULL;
    for (uint32_t i = 0; i < run->ahead_count; i++) {
        const metal_promise_t *promise = run->aheads[i].promise;
        if (run->guarded)
            run->stuck |= !run->aheads[i].words || (!promise->signals && !is_own(run, promise));
        else if (promise->failure)
            run_fail(&run->base, keel_status_retain(promise->failure));
    }
}

void metal_ahead_finish(metal_run_t *run)
{
    for (uint32_t i = 0; i < run->ahead_count; i++)
        metal_view_give_back(metal_run_device(run), run->aheads[i].view);
    if (run->aheads != run->few) mem_free(run->aheads);
}

void metal_ahead_events(metal_run_t *run)
{
    for (uint32_t i = 0; run->guarded && i < run->ahead_count; i++) {
        const metal_promise_t *promise = run->aheads[i].promise;
        if (promise->signals && !is_own(run, promise))
            mtl_encode_wait(promise->slots->api, run->command, promise->event, promise->number);
    }
}

void metal_ahead_fences(metal_run_t *run)
{
    for (uint32_t i = 0; run->guarded && i < run->ahead_count; i++) {
        const metal_promise_t *promise = run->aheads[i].promise;
        if (is_own(run, promise))
            mtl_wait_for_fence(promise->slots->api, run->encoder, promise->fence);
    }
}
