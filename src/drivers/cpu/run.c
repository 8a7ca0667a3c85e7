// SPDX-License-Identifier: Apache-2.0
// Workers on a submission.
//
//            start              a stage takes long              nothing to claim for a while
//     ready -------> alone (1) ----------------> shared (n) -----------------------------+
//       ^             |  ^                          |                                    |
//       |   yields    |  +--------------------------+                                    v
//       +-------------+     last chunk before a barrier      parked: no worker, operations
//       |                                                    such as a read go on by themselves
//       +------------------- the last of them ends ----------------------+
//
// Alone, a worker owns the run's fields. Shared, they belong to the holder of the lock; a worker
// that finds `open` unset under the lock must not touch them, for another goes on alone.
#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "drivers/cpu/cpu.h"
#include "kit/call.h"

// Remembers what a unit takes. Getting at the chunk is not counted: with many workers it is most of
// a short one.
static void run_learn(const cpu_run_t *run, const cpu_chunk_t *chunk, uint64_t took)
{
    uint64_t overhead = cpu_run_device(run)->share_ticks / 4;
    cpu_command_learn(chunk->command, chunk->count, took > overhead ? took - overhead : 0);
}

// Sizes the next chunk by what the last one took: long enough not to notice the claiming, short
// enough to be interrupted.
static void run_adapt(cpu_run_t *run, const cpu_chunk_t *chunk, uint64_t took)
{
    uint64_t share = cpu_run_device(run)->share_ticks;
    run_learn(run, chunk, took);
    if (took < share * 16 && chunk->count == run->claim && run->claim < UINT32_MAX)
        run->claim *= 4;
    else if (took > share * 128 && run->claim > 1)
        run->claim /= 2;
}

// One worker less, under the lock, which it leaves. The last one of a finished run takes its memory
// back.
static void run_leave(cpu_run_t *run)
{
    bool last = --run->workers == 0 && atomic_load_explicit(&run->finished, memory_order_relaxed);
    lock_leave(&run->lock);
    if (last) submission_recycle(&run->base);
}

static void run_finish(cpu_run_t *run, cpu_worker_t *worker)
{
    if (!run->listed_once) { // no other worker has ever known it
        worker->ending = true;
        submission_end(&run->base, run->failure);
        worker->ending = false;
        return;
    }
    if (run->listed) cpu_node_close(cpu_run_node(run), run);
    // release: pollers that see it leave, and the last one recycles.
    atomic_store_explicit(&run->finished, 1, memory_order_release);
    worker->ending = true;
    submission_signal(&run->base, run->failure);
    worker->ending = false;
    lock_enter(&run->lock);
    run_leave(run);
}

// Nothing to claim. Polls for a while; true if there may be something again, false if the worker
// has left.
static bool run_poll(cpu_run_t *run, const cpu_worker_t *worker)
{
    uint64_t start = clock_ticks(), most = worker->guest ? 0 : cpu_run_device(run)->spin_ticks;
    for (;;) {
        // acquire: pairs with run_finish and with the worker that opened it.
        if (cpu_run_is_open(run)) return true;
        bool over = atomic_load_explicit(&run->finished, memory_order_acquire);
        bool other = atomic_load_explicit(&cpu_run_node(run)->ready_mask, memory_order_relaxed) >>
                     cpu_run_level(run);
        if (over || other || clock_ticks() - start >= most) break;
        cpu_relax();
    }
    lock_enter(&run->lock);
    bool again = cpu_run_is_open(run);
    if (again)
        lock_leave(&run->lock);
    else
        run_leave(run);
    return again;
}

// Puts a run that the worker has for itself back on the list, before the others of its queue if it
// gives way to a more urgent one. Some who have joined it may still be polling.
static void run_put_back(cpu_run_t *run)
{
    cpu_node_t *node = cpu_run_node(run);
    lock_enter(&run->lock);
    run->workers--;
    lock_leave(&run->lock);
    cpu_node_push(node, run, cpu_node_is_above(node, cpu_run_level(run)));
}

// A worker on a run, and the chunk it has just run while others were on it too.
typedef struct drive_t {
    cpu_run_t *run;
    cpu_worker_t *worker;
    bool alone;
    bool held;            // in_flight counts one too many, so that no other worker goes on
    bool has_ended;       // a chunk is to be counted as ended ...
    keel_status_t status; // ... with this status
    cpu_chunk_t chunk;
    uint64_t start; // when it began
    uint64_t since; // when the worker came
} drive_t;

// Whether others should have the worker now.
static bool drive_should_yield(const drive_t *d, uint64_t now)
{
    uint32_t level = cpu_run_level(d->run);
    uint32_t ready =
        atomic_load_explicit(&cpu_run_node(d->run)->ready_mask, memory_order_relaxed) >> level;
    return ready >> 1 || (ready && now - d->since > cpu_run_device(d->run)->slice_ticks);
}

// In shuffle mode, lets other threads go first now and then. On a busy machine that takes some
// milliseconds each time: as long is then spent on work.
static void drive_shuffle(cpu_worker_t *worker)
{
    uint64_t now = clock_ticks();
    if (now & 3 || now < worker->yield_at) return;
    sched_yield();
    uint64_t back = clock_ticks();
    worker->yield_at = back + (back - now);
}

static void drive_chunk(drive_t *d)
{
    d->status = NULL;
    if (cpu_run_device(d->run)->shuffle) drive_shuffle(d->worker);
    d->has_ended = cpu_chunk_run(d->run, d->worker, &d->chunk, &d->status) == CPU_ENDED;
}

// Ends the chunk at hand and takes the next step.
static cpu_step_t drive_step(drive_t *d)
{
    cpu_run_t *run = d->run;
    uint64_t now = clock_ticks();
    bool bound = d->has_ended || d->held; // to tell the others something
    if (!bound && !atomic_load_explicit(&run->open, memory_order_relaxed)) return CPU_STEP_WAIT;
    lock_enter(&run->lock);
    if (d->has_ended) {
        run->in_flight--;
        if (d->status) cpu_walk_fail(run, d->status);
        if (!d->chunk.deal) run_adapt(run, &d->chunk, now - d->start);
        d->has_ended = false;
    } else if (d->held) {
        run->in_flight--;
        d->held = false;
    } else if (!atomic_load_explicit(&run->open, memory_order_relaxed)) {
        lock_leave(&run->lock);
        return CPU_STEP_WAIT;
    }
    bool more = cpu_walk_has_more(run);
    bool yield = drive_should_yield(d, now);
    if (yield && run->workers > 1 && (more || run->in_flight)) { // others go on with it
        atomic_store_explicit(&run->open, more, memory_order_release);
        run_leave(run);
        return CPU_STEP_LEFT;
    }
    // Alone with it, it can be put back on the list.
    cpu_step_t step =
        yield && !run->in_flight ? CPU_STEP_ALONE : cpu_walk_next(run, false, &d->chunk);
    d->start = now;
    // release: pairs with run_poll.
    atomic_store_explicit(&run->open, step == CPU_STEP_CHUNK && cpu_walk_has_more(run),
                          memory_order_release);
    bool dealt = step == CPU_STEP_WAIT && cpu_deal_left(run) > run->workers;
    lock_leave(&run->lock);
    if (dealt) cpu_node_call(cpu_run_node(run));
    return step;
}

// A dealt chunk has ended. If it was the deal's last, has_ended is left set: the deal is to be
// counted as ended.
static void drive_end_dealt(drive_t *d, uint64_t now)
{
    cpu_run_t *run = d->run;
    run_learn(run, &d->chunk, now - d->start);
    if (d->status) {
        lock_enter(&run->lock);
        cpu_walk_fail(run, d->status);
        lock_leave(&run->lock);
        d->status = NULL;
    }
    d->has_ended = cpu_deal_end(run, d->chunk.deal, d->chunk.count);
}

// Gives the worker to others although units are dealt out: those who are on the run too go on with
// them, or the run is put back on the list as it is. False if another worker has just come, or
// ended them all.
static bool drive_leave_dealt(drive_t *d)
{
    cpu_run_t *run = d->run;
    cpu_node_t *node = cpu_run_node(run);
    lock_enter(&run->lock);
    if (run->workers > 1) {
        run_leave(run);
        return true;
    }
    lock_leave(&run->lock);
    if (!cpu_node_leave(node, run)) return false;
    cpu_node_push(node, run, cpu_node_is_above(node, cpu_run_level(run)));
    return true;
}

// Takes part in a deal for as long as there is something to claim. False if the worker has left the
// run.
static bool drive_deal(drive_t *d)
{
    uint32_t index = d->worker->index - d->worker->node->first_worker;
    uint64_t now = clock_ticks();
    while (!d->has_ended && !d->held && cpu_deal_claim(d->run, index, &d->chunk)) {
        d->start = now;
        drive_chunk(d);
        now = clock_ticks();
        drive_end_dealt(d, now);
        if (!d->has_ended && drive_should_yield(d, now) && drive_leave_dealt(d)) return false;
    }
    return true;
}

// Works on a run together with others. True if it is to be gone on with alone, false if the worker
// has left it.
static bool drive_shared(drive_t *d)
{
    for (;;) {
        if (!drive_deal(d)) return false;
        switch (drive_step(d)) {
        case CPU_STEP_CHUNK: drive_chunk(d); break;
        case CPU_STEP_ALONE: d->alone = true; return true;
        case CPU_STEP_DONE: run_finish(d->run, d->worker); return false;
        case CPU_STEP_SHARE: // which is only for a worker alone
        case CPU_STEP_LEFT: return false;
        case CPU_STEP_WAIT:
            if (!run_poll(d->run, d->worker)) return false;
            break;
        }
    }
}

static void drive_open(drive_t *d)
{
    cpu_node_open(cpu_run_node(d->run), d->run);
    d->alone = false;
}

// Before a chunk with more of the stage to come: whether others are let in first. A command known
// to be short is not worth it; of others it would be too late to find out when the chunk has ended.
static void drive_open_early(drive_t *d)
{
    cpu_run_t *run = d->run;
    uint64_t units = d->chunk.count + run->units - run->unit;
    uint32_t cost = cpu_command_cost(d->chunk.command);
    if (cost && units < 4 * cpu_run_device(run)->share_ticks / cost) return;
    run->stage_start = d->start;
    drive_open(d);
    d->start = clock_ticks(); // waking others is not the kernel's time
}

// After a chunk: true if the worker is to go on as before.
static bool drive_weigh(drive_t *d, bool more)
{
    cpu_run_t *run = d->run;
    const cpu_device_t *device = cpu_run_device(run);
    uint64_t now = clock_ticks();
    if (!run->stage_start) run->stage_start = d->start;
    run_adapt(run, &d->chunk, now - d->start);
    d->start = now;
    if (!more) return true;
    if (drive_should_yield(d, now)) {
        run_put_back(run);
        return false;
    }
    if (cpu_run_node(run)->worker_count < 2) return true;
    uint32_t cost = cpu_command_cost(run->at);
    bool nearly = run->units && run->units - run->unit < 2 * device->share_ticks / (cost + 1);
    bool worth = now - run->stage_start > device->share_ticks && !nearly;
    if (!worth && !device->shuffle) return true;
    drive_open(d);
    return false;
}

// Works on a run alone. True if it is to be gone on with together with others, false if the worker
// has left it.
static bool drive_alone(drive_t *d)
{
    cpu_run_t *run = d->run;
    uint32_t peers = cpu_run_node(run)->worker_count;
    cpu_step_t step;
    while ((step = cpu_walk_next(run, true, &d->chunk)) != CPU_STEP_DONE) {
        if (step == CPU_STEP_SHARE) {
            drive_open(d);
            return true;
        }
        bool more = cpu_walk_has_more(run), timed = peers && (more || d->chunk.count > 1);
        if (timed) {
            d->start = clock_ticks();
            if (more && peers > 1) drive_open_early(d);
        }
        if (d->alone) run->in_flight++;
        drive_chunk(d);
        if (!d->alone) return true;
        // It goes on by itself, and may have ended by now: were it not held, those who still poll
        // the run would have gone on, and opening it would come too late.
        if (!d->has_ended) {
            if (more) cpu_node_open(cpu_run_node(run), run);
            d->held = true;
            d->alone = false;
            return true;
        }
        d->has_ended = false;
        run->in_flight -= 2;
        if (d->status) cpu_walk_fail(run, d->status);
        if (timed && !drive_weigh(d, cpu_walk_has_more(run))) return !d->alone;
    }
    run_finish(run, d->worker);
    return false;
}

static void detached_call(cpu_worker_t *worker)
{
    // They may wait for what the run has set off.
    if (worker->detached.count && worker->next) {
        cpu_node_push(worker->node, worker->next, false);
        worker->next = NULL;
    }
    for (size_t i = 0; i < worker->detached.count; i++) {
        cpu_detached_t detached = worker->detached.calls[i];
        call_make_detached(detached.queue->device, &detached.call);
        keel_queue_release(detached.queue);
    }
    worker->detached.count = 0;
}

void cpu_run_drive(cpu_run_t *run, cpu_worker_t *worker, bool alone)
{
    drive_t d = {.run = run, .worker = worker, .alone = alone, .start = clock_ticks()};
    d.since = d.start;
    if (alone && run->held) {
        run->held = false;
        d.held = true;
        drive_open(&d);
    }
    while (d.alone ? drive_alone(&d) : drive_shared(&d)) {
    }
    detached_call(worker);
}

// Runs it on a thread that is no worker.
static void run_as_guest(cpu_run_t *run)
{
    cpu_worker_t guest = {.node = cpu_run_node(run), .guest = true};
    run->workers = 1;
    cpu_run_drive(run, &guest, true);
    mem_free_aligned(guest.local);
    mem_free(guest.detached.calls);
}

void cpu_run_go_on(keel_submission_t *submission)
{
    run_as_guest((cpu_run_t *)(void *)submission);
}

static void run_init(cpu_run_t *run)
{
    run->commands = &run->base.commands;
    run->at = keel_commands_first(run->commands);
    run->execute = NULL;
    run->unit = run->units = 0;
    run->claim = cpu_run_node(run)->worker_count ? 1 : UINT64_MAX;
    run->stage_start = 0;
    run->in_flight = run->workers = 0;
    run->failure = NULL;
    run->rotation.first = run->rotation.end = run->rotation.pivot = NULL;
    run->random = cpu_run_device(run)->seed + run->base.id;
    memset(run->loops, 0, sizeof run->loops);
    run->listed = run->listed_once = run->held = false;
    run->lock = (lock_t){0};
    atomic_store_explicit(&run->open, 0, memory_order_relaxed);
    atomic_store_explicit(&run->finished, 0, memory_order_relaxed);
    // All deals of the run that had the memory before have ended: their shares are empty.
    atomic_store_explicit(&run->dealt, 0, memory_order_relaxed);
    atomic_store_explicit(&run->exhausted, 0, memory_order_relaxed);
    run->deal_slot = 0;
}

// Commands that touch no memory of the application and run no code of it: not worth a thread.
#define LIGHT                                                                                      \
    (1u << KEEL_CMD_BARRIER | 1u << KEEL_CMD_GROUP_BEGIN | 1u << KEEL_CMD_GROUP_END |              \
     1u << KEEL_CMD_ALLOCA | 1u << KEEL_CMD_DEALLOCA)

KEEL_COLD __attribute__((noinline)) static void run_trace(const keel_submission_t *submission)
{
    trace_ready(submission_traced(submission));
}

void cpu_run_start(keel_submission_t *submission)
{
    cpu_run_t *run = (cpu_run_t *)(void *)submission;
    cpu_node_t *node = cpu_run_node(run);
    if (trace_is_on()) run_trace(submission);
    if (!submission->commands.count) { // nothing but waits and signals
        submission_end(submission, NULL);
        return;
    }
    const keel_command_t *first = keel_commands_first(&submission->commands);
    if (submission->commands.count == 1 && first->kind == KEEL_CMD_DEALLOCA) {
        cpu_chunk_t chunk = {.command = first, .commands = &submission->commands, .count = 1};
        keel_status_t status = NULL;
        cpu_chunk_run(run, NULL, &chunk, &status); // which neither waits nor takes long
        submission_end(submission, status);
        return;
    }
    run_init(run);
    cpu_worker_t *worker = cpu_this_worker;
    if (!node->worker_count || !(submission->commands.kinds & ~LIGHT)) {
        run_as_guest(run);
    } else if (worker && worker->node == node && worker->ending && !worker->next) {
        worker->next = run;
    } else {
        cpu_node_push(node, run, false);
    }
}
