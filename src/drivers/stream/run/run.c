// SPDX-License-Identifier: Apache-2.0
// The state of a run, from its first command to its end.
//
//     start --> [waits] commands [event] --> over: end
//                          |        ^
//                          v        |
//                      operations of the host: parked until they are done
//
// Commands between two barriers are ordered by nothing, so the stream's own order will do for them,
// and barriers need nothing either. An operation of the host begins when all that was issued is
// over, and the walk (walk.c) stops at the next barrier until it is done.
#include <stddef.h>

#include "base/status.h"
#include "drivers/stream/run/run.h"
#include "kit/pool.h"

void stream_run_fail(stream_run_t *run, keel_status_t status)
{
    keel_status_t none = NULL;
    if (__builtin_expect(status != NULL, 0) &&
        !atomic_compare_exchange_strong(&run->failure, &none, status))
        keel_status_release(status);
}

keel_status_t stream_stage(stream_run_t *run, uint64_t size, void **data, uint64_t *address)
{
    ring_t *ring = &stream_run_queue(run)->ring;
    uint64_t before = ring->head;
    // What a run with operations of the host took would not come back in the order of the ring.
    KEEL_TRY(blocks_piece(&stream_run_device(run)->blocks, run->hosted ? NULL : ring, &run->blocks,
                          size, data, address));
    if (ring->head != before) run->ring_end = ring->head;
    return NULL;
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

static void deallocas_end(stream_run_t *run)
{
    run->deallocates = false;
    KEEL_EACH_COMMAND (c, &run->base.commands) {
        keel_cmd_alloca_t *dealloca = (keel_cmd_alloca_t *)(uintptr_t)c;
        if (c->kind == KEEL_CMD_DEALLOCA && dealloca->piece.open)
            pool_dealloca_end(dealloca->buffer, &dealloca->piece);
    }
}

// The copies that use memory of other devices are over.
static void visits_end(stream_run_t *run)
{
    run->reach = (stream_reach_t){0};
    KEEL_EACH_COMMAND (command, &run->base.commands) {
        keel_cmd_across_t *c = (keel_cmd_across_t *)(uintptr_t)command;
        if (command->kind != KEEL_CMD_ACROSS || !c->visits) continue;
        c->visits = false;
        device_leave(c->other->device);
        if (!--run->visits) break;
    }
}

// All that was issued is over, and so are the deallocas in it.
static void run_settle(stream_run_t *run)
{
    uint32_t frees = run->frees;
    if (__builtin_expect(run->stamps != NULL, 0)) stream_stamps_record(run);
    run->frees = 0;
    run->segment.frees = false;
    run->tail = STREAM_TAIL_NONE;
    if (run->deallocates) deallocas_end(run);
    if (run->visits) visits_end(run);
    if (run->indirects) stream_indirects_return(stream_run_queue(run), &run->indirects);
    if (frees) reclaim_end(&stream_run_device(run)->reclaim, frees);
}

// Gives back what it took, before it ends.
static void run_clear(stream_run_t *run, keel_status_t status)
{
    run_settle(run);
    if (run->blocks) stream_blocks_return(stream_run_device(run), run->blocks);
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
                               ? stream_grid_refuse(stream_run_device(run), (const void *)c, groups)
                               : command_loop_refuse((const void *)c);
    return submission_blame(&run->base, execute, c, status);
}

bool stream_run_over(stream_segment_t *segment)
{
    stream_run_t *run = (stream_run_t *)(void *)segment;
    if (run->segment.last) {
        keel_status_t status = run_reported(run);
        if (__builtin_expect(run->stamps != NULL, 0)) stream_stamps_record(run);
        // Only here, in the stream's order: what went before may still use the ring.
        if (run->ring_end) ring_return(&stream_run_queue(run)->ring, run->ring_end);
        run_clear(run, status);
        // relaxed: no other thread has it.
        atomic_store_explicit(&run->base.failure, atomic_load(&run->failure), memory_order_relaxed);
        run->base.next = NULL;
        return true;
    }
    run_settle(run);
    transfers_staged(&run->transfers);
    stream_run_done(run);
    return false;
}

void stream_run_lost(stream_segment_t *segment)
{
    stream_run_t *run = (stream_run_t *)(void *)segment;
    stream_run_fail(run, stream_device_lost(stream_run_device(run)));
    run->stamps = NULL;
    run_settle(run);
    if (run->segment.last)
        run_end(run, NULL);
    else
        stream_run_done(run);
}

void stream_run_done(stream_run_t *run)
{
    if (pending_end(&run->pending)) stream_queue_push(stream_run_queue(run), &run->segment);
}

// Nothing can be recorded behind what was issued: it has to be waited for, by the queue's own
// thread, which tries again first. False if it is that thread's turn.
KEEL_COLD static bool run_drain(stream_run_t *run, keel_status_t status)
{
    stream_device_t *device = stream_run_device(run);
    run->put_off = keel_status_code(status) != KEEL_DEVICE_LOST &&
                   stream_queue_puts_off(stream_run_queue(run));
    if (run->put_off) {
        keel_status_release(status);
        inbox_put_back(&stream_run_queue(run)->inbox, &run->base);
        return false;
    }
    stream_run_fail(run, stream_device_note(device, status));
    status = stream_device_drain(device, stream_run_queue(run)->stream);
    keel_status_release(stream_device_note(device, status));
    run_settle(run);
    atomic_store(&stream_run_queue(run)->unmarked,
                 false); // nothing is left there, nor of stream_run_mark_frees
    stream_queue_retire(stream_run_queue(run), stream_run_queue(run)->recorded);
    return true;
}

// Whether the device is lost. Then its stream is not touched any more: what was issued before has
// ended, and the run has failed.
static bool run_is_lost(stream_run_t *run)
{
    stream_device_t *device = stream_run_device(run);
    if (__builtin_expect(!stream_device_is_lost(device), 1)) return false;
    stream_run_fail(run, stream_device_lost(device));
    run->stamps = NULL;
    stream_queue_retire(stream_run_queue(run), 0);
    run_settle(run);
    return true;
}

void stream_run_park(stream_run_t *run)
{
    if (run_is_lost(run)) {
        stream_run_done(run);
        return;
    }
    keel_status_t status =
        stream_queue_record(stream_run_queue(run), &run->segment, STREAM_MARK_PARKS);
    if (status && run_drain(run, status)) stream_run_done(run);
}

KEEL_HOT void stream_run_finish(stream_run_t *run)
{
    stream_queue_t *queue = stream_run_queue(run);
    // A run that may still fail makes no promises.
    bool sure = __builtin_expect(!atomic_load(&run->failure) && !run->reports, 1);
    run->segment.last = true;
    bool unmarked = atomic_load_explicit(&queue->unmarked, memory_order_relaxed);
    bool joins = __builtin_expect(sure && run->tail != STREAM_TAIL_OWN && !unmarked, 0);
    if (run->tail && !(joins && stream_queue_is_quiet(queue)) && !run_is_lost(run)) {
        if (joins && stream_queue_join(queue, &run->segment)) return;
        keel_status_t status = stream_queue_record(queue, &run->segment,
                                                   sure ? STREAM_MARK_PROMISES : STREAM_MARK_ENDS);
        if (!status || !run_drain(run, status)) return;
    }
    run_end(run, NULL);
}

KEEL_HOT void stream_run_mark_frees(stream_run_t *run)
{
    stream_device_t *device = stream_run_device(run);
    if (kept_handle(&stream_run_queue(run)->returns.kept)) stream_kept_free(stream_run_queue(run));
    if (!atomic_load_explicit(&stream_run_queue(run)->returns.unmarked, memory_order_relaxed) ||
        !device->limits.quirks.pool_lags)
        return;
    stream_run_follow(run, STREAM_TAIL_OWN); // or the queue might go before that event
    reclaim_begin(&device->reclaim);
    keel_status_t status = stream_queue_record(stream_run_queue(run), NULL, STREAM_MARK_FREES);
    if (status) reclaim_end(&device->reclaim, 1);
    keel_status_release(stream_device_note(device, status));
}
