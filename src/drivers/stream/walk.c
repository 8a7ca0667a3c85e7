// SPDX-License-Identifier: Apache-2.0
// The walk of a run over the commands of its submission. The issuer takes it as far as it goes; it
// stops where the stream is full, where the host has something to do, and at the end.
#include "base/status.h"
#include "drivers/stream/driver.h"

// Forgets the promises from that wait on, which the stream does not wait for: that the run ends
// says nothing of them.
static void promises_drop(stream_run_t *run, uint32_t from)
{
    for (uint32_t i = from; i < run->base.wait_count; i++) {
        promise_t **promise = &run->base.waits[i].waiter.promise;
        if (*promise) promise_release(*promise);
        *promise = NULL;
    }
}

// Puts the waits on the stream that are only promised, as far as it has room; run->waits is then
// how many are there. Promises of other queues are kept until the end: flight.c tells them first.
__attribute__((noinline)) static keel_status_t waits_issue(stream_run_t *run)
{
    stream_device_t *device = stream_run_device(run);
    stream_queue_t *queue = stream_run_queue(run);
    uint32_t room = device->limits.quirks.event_room;
    if (run->base.follows) {
        stream_run_follow(run, STREAM_TAIL_OTHERS);
        run->waits = run->base.wait_count;
        return NULL;
    }
    for (; run->waits < run->base.wait_count; run->waits++) {
        promise_t **promise = &run->base.waits[run->waits].waiter.promise;
        const stream_event_t *event = (const stream_event_t *)(void *)*promise;
        if (!event || atomic_load_explicit(&event->over, memory_order_acquire)) continue;
        if (event->queue == queue) { // its own order does the rest
            stream_run_follow(run, STREAM_TAIL_OTHERS);
            promise_release(*promise);
            *promise = NULL;
            continue;
        }
        if (room && stream_queue_lacks(queue, room)) return NULL;
        stream_run_mark_frees(run);
        stream_run_follow(run, STREAM_TAIL_OWN);
        stream_h stream = stream_queue_onto_for(queue, room);
        keel_status_t status = device->api->stream_wait(device->vendor, stream, event->handle);
        if (!status) continue;
        promises_drop(run, run->waits);
        return status;
    }
    return NULL;
}

// Whether nothing of the host's is left before the walk may pass a barrier. If not, the run is
// parked, and behind what it has issued: others may need to know that it is over (free.c,
// indirect.c). One that failed begins nothing more, and waits all the same for what is under way.
KEEL_HOT static bool stage_is_done(stream_run_t *run)
{
    if (!run->hosted) return true;
    if (atomic_load(&run->failure)) run->transfers.staged = NULL;
    bool keeps = run->tail == STREAM_TAIL_OWN && pending_has_any(&run->pending);
    if (!run->transfers.staged && !keeps) {
        if (!pending_is_over(&run->pending)) return false;
        if (!transfers_land(&run->transfers)) return true;
    }
    stream_run_park(run);
    return false;
}

// The run waits for memory no more.
static void run_feed(stream_run_t *run)
{
    if (run->hungry) atomic_fetch_sub(&stream_run_device(run)->reclaim.hungry, 1);
    run->hungry = false;
}

__attribute__((noinline)) static stream_step_t alloca_step(stream_run_t *run, keel_cmd_alloca_t *c)
{
    bool waits = false;
    pending_add(&run->pending);
    keel_status_t status = stream_alloca(run, c, &waits);
    if (!waits) {
        pending_drop(&run->pending);
        if (status) stream_run_fail(run, submission_blame(&run->base, NULL, &c->head, status));
        return STREAM_STEP_DONE;
    }
    run->hungry = true;
    atomic_fetch_add(&stream_run_device(run)->reclaim.hungry, 1);
    stream_frees_watch(stream_run_device(run));
    if (!pending_is_over(&run->pending)) return STREAM_STEP_PARKED;
    run_feed(run);
    return STREAM_STEP_AGAIN;
}

static stream_step_t execute_step(stream_run_t *run, const keel_cmd_execute_t *c)
{
    stream_step_t step = STREAM_STEP_DONE;
    stream_run_fail(run, stream_execute(run, c, &step)); // what fails in there names itself
    return step;
}

static stream_step_t run_step(stream_run_t *run, keel_command_t *c)
{
    keel_status_t status = NULL;
    stream_step_t step = STREAM_STEP_DONE;
    // Most often a recording is all there is.
    if (__builtin_expect(c->kind == KEEL_CMD_EXECUTE, 1))
        return execute_step(run, (const keel_cmd_execute_t *)(void *)c);
    switch ((keel_cmd_t)c->kind) {
    case KEEL_CMD_BARRIER: return stage_is_done(run) ? STREAM_STEP_DONE : STREAM_STEP_PARKED;
    case KEEL_CMD_READ:
    case KEEL_CMD_HOST_CALL:
        if (run->tail) {
            stream_run_park(run);
            return STREAM_STEP_PARKED;
        }
        pending_add(&run->pending);
        stream_host_begin(run, c);
        return STREAM_STEP_DONE;
    case KEEL_CMD_WRITE: status = stream_host_write(run, c); break;
    case KEEL_CMD_ACROSS: status = stream_across(run, (void *)c, &step); break;
    case KEEL_CMD_ALLOCA: return alloca_step(run, (keel_cmd_alloca_t *)(void *)c);
    case KEEL_CMD_DEALLOCA: {
        keel_cmd_alloca_t *dealloca = (keel_cmd_alloca_t *)(void *)c;
        if (!dealloca->settled) status = stream_dealloca(run, dealloca); // it may have gone first
        break;
    }
    default: status = stream_issue(run, NULL, c, &step); break;
    }
    if (status) stream_run_fail(run, submission_blame(&run->base, NULL, c, status));
    return step;
}

// It issues nothing more; what it has issued runs to its end. If that was all, it ends well.
KEEL_COLD static keel_status_t run_cancelled(stream_run_t *run)
{
    if (run->at == keel_commands_end(&run->base.commands)) return NULL;
    if (!run->begun) promises_drop(run, run->waits);
    return submission_cancelled(&run->base);
}

// Begins, or goes on with what was put back: between the rounds of a loop, too. On a lost device
// nothing may be issued.
static void run_begin(stream_run_t *run)
{
    stream_device_t *device = stream_run_device(run);
    keel_status_t status = NULL;
    if (stream_device_is_lost(device))
        status = stream_device_lost(device);
    else if (submission_is_cancelled(&run->base))
        status = run_cancelled(run);
    else if (__builtin_expect((run->base.commands.kinds & ~STREAM_BRIEF_KINDS) != 0, 1))
        stream_run_mark_frees(run);
    if (run->base.wait_count && !run->begun && !status) status = waits_issue(run);
    run->begun = status || run->waits == run->base.wait_count || run->begun;
    if (status) stream_run_fail(run, stream_device_note(device, status));
}

KEEL_HOT bool stream_run_go(stream_segment_t *segment)
{
    stream_run_t *run = (stream_run_t *)(void *)segment;
    stream_queue_t *queue = stream_run_queue(run);
    const keel_command_t *end = keel_commands_end(&run->base.commands);
    if (__builtin_expect(run->put_off, 0)) {
        run->put_off = false;
        if (run->segment.last)
            stream_run_finish(run);
        else
            stream_run_park(run);
        return true;
    }
    if (run->hosted) pending_begin(&run->pending);
    run_begin(run);
    if (__builtin_expect(!run->begun, 0)) return false;
    run_feed(run);
    while (run->at != end && !atomic_load_explicit(&run->failure, memory_order_relaxed)) {
        if (stream_queue_is_full(queue)) return false;
        stream_step_t step = run_step(run, (keel_command_t *)(uintptr_t)run->at);
        if (step == STREAM_STEP_PARKED) return true;
        if (step == STREAM_STEP_DONE) run->at = keel_command_next(run->at);
        if (run->aside) {
            run->aside = false;
            return false;
        }
    }
    if (run->at != end && run->at->kind == KEEL_CMD_ALLOCA)
        stream_alloca_drop((keel_cmd_alloca_t *)(uintptr_t)run->at);
    if (stage_is_done(run)) stream_run_finish(run);
    return true;
}
