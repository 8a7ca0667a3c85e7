// SPDX-License-Identifier: Apache-2.0
// A run: a submission on its way through the stream.
//
//     start --> [waits] commands [event] --> over: end
//                          |        ^
//                          v        |
//                      operations of the host: parked until they are done
//
// Commands between two barriers are ordered by nothing, so the stream's own order will do for them,
// and barriers need nothing either. An operation of the host begins when all that was issued is
// over, and the walk stops at the next barrier until it is done.
#include <stddef.h>

#include "base/status.h"
#include "drivers/stream/stream.h"
#include "kit/pool.h"

static stream_queue_t *queue_of(const stream_run_t *run)
{
    return stream_queue(run->base.queue);
}

static stream_device_t *device_of(const stream_run_t *run)
{
    return stream_device(run->base.queue->device);
}

void stream_run_fail(stream_run_t *run, keel_status_t status)
{
    keel_status_t none = NULL;
    if (__builtin_expect(status != NULL, 0) &&
        !atomic_compare_exchange_strong(&run->failure, &none, status))
        keel_status_release(status);
}

keel_status_t stream_run_report(stream_run_t *run, const keel_cmd_execute_t *execute,
                                uint64_t *address)
{
    stream_report_t *report = run->reports;
    while (report && report->execute != execute) report = report->next;
    if (!report) {
        void *data;
        uint64_t at;
        KEEL_TRY(stream_stage(run, sizeof *report, &data, &at));
        report = data;
        *report = (stream_report_t){.next = run->reports, .execute = execute};
        report->address = at + offsetof(stream_report_t, words);
        run->reports = report;
    }
    *address = report->address;
    return NULL;
}

// All that was issued is over, and so are the deallocas in it.
static void run_settle(stream_run_t *run)
{
    uint32_t frees = run->frees;
    run->frees = 0;
    run->issued = run->placed = false;
    if (run->deallocates) stream_deallocas_end(run);
    if (run->onces) stream_onces_end(run);
    if (frees) stream_frees_tell(device_of(run), frees);
}

// Gives back what it took, before it ends.
static void run_clear(stream_run_t *run, keel_status_t status)
{
    run_settle(run);
    if (run->blocks) stream_blocks_return(device_of(run), run->blocks);
    if (status) stream_run_fail(run, status);
}

static void run_end(stream_run_t *run, keel_status_t status)
{
    run_clear(run, status);
    submission_end(&run->base, atomic_load(&run->failure));
}

// What the device found out, if anything: a grid that is too large, or rounds that are too many.
static keel_status_t run_reported(const stream_run_t *run)
{
    const stream_report_t *report = run->reports;
    while (report && !report->words[0]) report = report->next;
    if (!report) return NULL;
    const keel_cmd_execute_t *execute = report->execute;
    const keel_command_t *c = keel_commands_at(
        execute ? execute->recording->commands : &run->base.commands, report->words[0] - 1);
    uint32_t groups[3] = {report->words[1], report->words[2], report->words[3]};
    keel_status_t status = c->kind == KEEL_CMD_DISPATCH
                               ? stream_grid_refuse(device_of(run), (const void *)c, groups)
                               : command_loop_refuse((const void *)c);
    return submission_blame(&run->base, execute, c, status);
}

bool stream_run_over(stream_run_t *run)
{
    if (run->ending) {
        keel_status_t status = run_reported(run);
        // Only here, in the stream's order: what went before may still use the ring.
        if (run->ring_end) ring_return(&queue_of(run)->ring, run->ring_end);
        run_clear(run, status);
        // relaxed: nobody else has it.
        atomic_store_explicit(&run->base.failure, atomic_load(&run->failure), memory_order_relaxed);
        run->base.next = NULL;
        return true;
    }
    run_settle(run);
    transfers_staged(&run->transfers);
    stream_run_done(run);
    return false;
}

void stream_run_lost(stream_run_t *run)
{
    stream_run_fail(run, stream_device_lost(device_of(run)));
    run_settle(run);
    if (run->ending)
        run_end(run, NULL);
    else
        stream_run_done(run);
}

void stream_run_done(stream_run_t *run)
{
    if (pending_end(&run->pending)) stream_queue_push(queue_of(run), run);
}

void stream_run_start(keel_submission_t *submission)
{
    stream_run_t *run = (stream_run_t *)(void *)submission;
    stream_queue_push(queue_of(run), run);
}

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

// What comes now may take long. If there are frees behind the last event, they get one of their own
// before that (settle.c), and whoever waits for memory waits for it, too.
KEEL_HOT static void frees_mark(stream_run_t *run)
{
    stream_device_t *device = device_of(run);
    if (kept_handle(&queue_of(run)->kept)) stream_kept_free(queue_of(run));
    if (!atomic_load_explicit(&queue_of(run)->loose, memory_order_relaxed) ||
        !device->limits.quirks.pool_lags)
        return;
    run->issued = true; // or the queue might go before that event
    atomic_fetch_add(&device->frees, 1);
    keel_status_t status = stream_queue_record(queue_of(run), NULL, STREAM_SETTLES);
    if (status) stream_frees_tell(device, 1);
    keel_status_release(stream_device_note(device, status));
}

// Puts the waits on the stream that are only promised. Promises of other queues are kept until the
// end: flight.c tells them first.
__attribute__((noinline)) static keel_status_t waits_issue(stream_run_t *run)
{
    stream_device_t *device = device_of(run);
    stream_queue_t *queue = queue_of(run);
    if (run->base.follows) {
        run->placed = true;
        return NULL;
    }
    for (uint32_t i = 0; i < run->base.wait_count; i++) {
        promise_t **promise = &run->base.waits[i].waiter.promise;
        const stream_event_t *event = (const stream_event_t *)(void *)*promise;
        if (!event || atomic_load_explicit(&event->over, memory_order_acquire)) continue;
        if (event->queue == queue) { // its own order does the rest
            run->placed = true;
            promise_release(*promise);
            *promise = NULL;
            continue;
        }
        frees_mark(run);
        run->issued = true;
        atomic_store_explicit(&queue->unmarked, true, memory_order_relaxed);
        keel_status_t status =
            device->api->stream_wait(device->vendor, queue->stream, event->handle);
        if (!status) continue;
        promises_drop(run, i);
        return status;
    }
    return NULL;
}

// Nothing can be recorded behind what was issued: it has to be waited for, by the queue's own
// thread, which tries again first. False if it is that thread's turn.
KEEL_COLD static bool run_drain(stream_run_t *run, keel_status_t status)
{
    stream_device_t *device = device_of(run);
    run->put_off =
        keel_status_code(status) != KEEL_DEVICE_LOST && stream_queue_puts_off(queue_of(run));
    if (run->put_off) {
        keel_status_release(status);
        inbox_put_back(&queue_of(run)->inbox, &run->base);
        return false;
    }
    stream_run_fail(run, stream_device_note(device, status));
    status = stream_device_drain(device, queue_of(run)->stream);
    keel_status_release(stream_device_note(device, status));
    run_settle(run);
    atomic_store(&queue_of(run)->unmarked, false); // nothing is left there, nor of frees_mark
    stream_queue_retire(queue_of(run), queue_of(run)->recorded);
    return true;
}

void stream_run_park(stream_run_t *run)
{
    keel_status_t status = stream_queue_record(queue_of(run), run, STREAM_PARKS);
    if (status && run_drain(run, status)) stream_run_done(run);
}

// The end of the walk: all is issued, or nothing more will be.
KEEL_HOT static void run_finish(stream_run_t *run)
{
    stream_queue_t *queue = queue_of(run);
    // A run that may still fail makes no promises.
    bool sure = __builtin_expect(!atomic_load(&run->failure) && !run->reports, 1);
    run->ending = true;
    bool unmarked = atomic_load_explicit(&queue->unmarked, memory_order_relaxed);
    bool joins = __builtin_expect(sure && !run->issued && !unmarked, 0);
    if ((run->issued || run->placed) && !(joins && stream_queue_is_quiet(queue))) {
        if (joins && stream_queue_join(queue, run)) return;
        keel_status_t status =
            stream_queue_record(queue, run, sure ? STREAM_PROMISES : STREAM_ENDS);
        if (!status || !run_drain(run, status)) return;
    }
    run_end(run, NULL);
}

// Whether nothing of the host's is left before the walk may pass a barrier. If not, the run is
// parked, and behind what it has issued: others may need to know that it is over (free.c,
// graph_once.c). One that failed begins nothing more, and waits all the same for what is under way.
KEEL_HOT static bool stage_is_done(stream_run_t *run)
{
    if (!run->phased) return true;
    if (atomic_load(&run->failure)) run->transfers.staged = NULL;
    bool keeps = run->issued && pending_has_any(&run->pending);
    if (!run->transfers.staged && !keeps) {
        if (!pending_is_over(&run->pending)) return false;
        if (!transfers_land(&run->transfers)) return true;
    }
    stream_run_park(run);
    return false;
}

// It waits for memory no more.
static void run_feed(stream_run_t *run)
{
    if (run->hungry) atomic_fetch_sub(&device_of(run)->hungry, 1);
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
    atomic_fetch_add(&device_of(run)->hungry, 1);
    stream_frees_watch(device_of(run));
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
        if (run->issued || run->placed) {
            stream_run_park(run);
            return STREAM_STEP_PARKED;
        }
        pending_add(&run->pending);
        stream_host_begin(run, c);
        return STREAM_STEP_DONE;
    case KEEL_CMD_WRITE: status = stream_host_write(run, c); break;
    case KEEL_CMD_ALLOCA: return alloca_step(run, (keel_cmd_alloca_t *)(void *)c);
    case KEEL_CMD_DEALLOCA: status = stream_dealloca(run, (keel_cmd_alloca_t *)(void *)c); break;
    default: status = stream_issue(run, NULL, c, &step); break;
    }
    if (status) stream_run_fail(run, submission_blame(&run->base, NULL, c, status));
    return step;
}

// Begins, or goes on with what was put back. On a lost device nothing may be issued.
static void run_begin(stream_run_t *run)
{
    stream_device_t *device = device_of(run);
    keel_status_t status = NULL;
    if (stream_device_is_lost(device))
        status = stream_device_lost(device);
    else if (__builtin_expect((run->base.commands.kinds & ~STREAM_BRIEF_KINDS) != 0, 1))
        frees_mark(run);
    if (run->base.wait_count && !run->begun && !status) status = waits_issue(run);
    run->begun = true;
    if (status) stream_run_fail(run, stream_device_note(device, status));
}

KEEL_HOT bool stream_run_go(stream_run_t *run)
{
    stream_queue_t *queue = queue_of(run);
    const keel_command_t *end = keel_commands_end(&run->base.commands);
    if (__builtin_expect(run->put_off, 0)) {
        run->put_off = false;
        if (run->ending)
            run_finish(run);
        else
            stream_run_park(run);
        return true;
    }
    if (run->phased) pending_begin(&run->pending);
    run_begin(run);
    run_feed(run);
    while (run->at != end && !atomic_load_explicit(&run->failure, memory_order_relaxed)) {
        if (stream_queue_is_full(queue)) return false;
        stream_step_t step = run_step(run, (keel_command_t *)(uintptr_t)run->at);
        if (step == STREAM_STEP_PARKED) return true;
        if (step == STREAM_STEP_DONE) run->at = keel_command_next(run->at);
    }
    if (run->at != end && run->at->kind == KEEL_CMD_ALLOCA)
        stream_alloca_drop((keel_cmd_alloca_t *)(uintptr_t)run->at);
    if (stage_is_done(run)) run_finish(run);
    return true;
}
