// SPDX-License-Identifier: Apache-2.0
// A run: the walk over the commands of a submission. What the GPU does is encoded, what the host
// does begins at once. Where something must wait until all before has ended, what is encoded is
// committed and the thread leaves; the last one to end has the run gone on with.
#include "base/status.h"
#include "drivers/metal/metal.h"
#include "kit/submission.h"

typedef enum outcome_t {
    GOES_ON, // with the next command
    WAITS,   // until all that was begun has ended; then the same command again
    STARVES, // there is no command buffer to be had: the run may be gone on with already
} outcome_t;

void metal_run_fail(metal_run_t *run, keel_status_t status)
{
    keel_status_t none = NULL;
    if (!atomic_compare_exchange_strong(&run->failure, &none, status)) keel_status_release(status);
}

void metal_run_begin(metal_run_t *run)
{
    atomic_fetch_add(&run->pending, 1);
}

void metal_run_done(metal_run_t *run)
{
    if (atomic_fetch_sub(&run->pending, 1) == 1) metal_resume(run);
}

// Whether something was begun that has not ended, besides what is being encoded.
static bool is_busy(metal_run_t *run)
{
    return atomic_load(&run->pending) > 1;
}

static outcome_t barrier_step(metal_run_t *run)
{
    if (is_busy(run)) return WAITS;
    if (run->now) run->before = run->barrier = true;
    run->now = false;
    return GOES_ON;
}

static bool is_for_host(uint32_t kind)
{
    switch (kind) {
    case KEEL_CMD_TIMESTAMP:
    case KEEL_CMD_ALLOCA:
    case KEEL_CMD_DEALLOCA:
    case KEEL_CMD_READ:
    case KEEL_CMD_WRITE:
    case KEEL_CMD_HOST_CALL: return true;
    default: return false;
    }
}

static bool is_for_gpu(uint32_t kind)
{
    return kind == KEEL_CMD_FILL || kind == KEEL_CMD_UPDATE || kind == KEEL_CMD_COPY ||
           kind == KEEL_CMD_DISPATCH;
}

// Whether the host reads what commands before it may have written.
static bool reads(const keel_command_t *c)
{
    return c->kind == KEEL_CMD_DISPATCH && metal_dispatch_reads((const void *)c);
}

static outcome_t command_step(metal_run_t *run, const keel_command_t *c,
                              const keel_cmd_execute_t *execute, keel_status_t *status)
{
    if (c->kind >= KEEL_CMD_IF) return run->before || run->now || is_busy(run) ? WAITS : GOES_ON;
    if (keel_command_is_barrier(c->kind)) return barrier_step(run);
    if (is_for_host(c->kind)) {
        if (run->before) return WAITS;
        *status = metal_host(run, c, execute);
    } else if (is_for_gpu(c->kind)) {
        if (run->before && reads(c)) return WAITS;
        if (!metal_slot_take(run)) return STARVES;
        *status = metal_encode(run, c, execute);
    }
    return GOES_ON;
}

// The commands of the recording that runs.
static outcome_t recording_walk(metal_run_t *run)
{
    const keel_cmd_execute_t *execute = run->execute;
    const keel_commands_t *commands = execute->recording->commands;
    while (run->inner != keel_commands_end(commands)) {
        const keel_command_t *c = run->inner;
        keel_status_t status = NULL;
        outcome_t outcome = command_step(run, c, execute, &status);
        if (outcome != GOES_ON) return outcome;
        if (!status) status = keel_command_step(commands, execute, run->loops, &run->inner);
        if (status) {
            metal_run_fail(run, submission_blame(&run->base, execute, c, status));
            return GOES_ON;
        }
        if (submission_is_cancelled(&run->base)) return GOES_ON;
    }
    run->execute = NULL;
    return GOES_ON;
}

static void recording_begin(metal_run_t *run, const keel_cmd_execute_t *execute)
{
    run->execute = execute;
    run->inner = keel_commands_first(execute->recording->commands);
    for (int i = 0; i < METAL_MAX_DEPTH; i++) run->loops[i] = 0;
}

// One command of the submission, or all of a recording.
static outcome_t submission_step(metal_run_t *run)
{
    if (run->execute) return recording_walk(run);
    const keel_command_t *c = run->at;
    if (c->kind == KEEL_CMD_EXECUTE) {
        run->at = keel_command_next(c);
        recording_begin(run, (const keel_cmd_execute_t *)(const void *)c);
        return GOES_ON;
    }
    keel_status_t status = NULL;
    outcome_t outcome = command_step(run, c, NULL, &status);
    if (outcome != GOES_ON) return outcome;
    run->at = keel_command_next(c);
    if (status) metal_run_fail(run, submission_blame(&run->base, NULL, c, status));
    return GOES_ON;
}

// Whether there is more to do; not when it has failed.
static bool has_more(metal_run_t *run)
{
    if (atomic_load(&run->failure)) return false;
    if (!run->execute && run->at == keel_commands_end(&run->base.commands)) return false;
    if (!submission_is_cancelled(&run->base)) return true;
    metal_run_fail(run, submission_cancelled(&run->base));
    return false;
}

static outcome_t run_walk(metal_run_t *run)
{
    while (has_more(run)) {
        outcome_t outcome = submission_step(run);
        if (outcome != GOES_ON) return outcome;
    }
    if (atomic_load(&run->failure)) metal_discard(run);
    return WAITS;
}

static bool is_over(metal_run_t *run)
{
    return !has_more(run) && !run->command;
}

// True: the thread has the run for itself, and all that was begun has ended.
static bool run_wait(metal_run_t *run)
{
    metal_commit(run);
    run->driven = false; // before another thread may go on with it
    return atomic_fetch_sub(&run->pending, 1) == 1;
}

void metal_run_drive(metal_run_t *run)
{
    const metal_api_t *api = metal_run_device(run)->api;
    void *pool = metal_enter(api);
    bool over = false, left = false;
    while (!over && !left) {
        if (!run->driven) metal_run_begin(run);
        run->driven = true;
        metal_settle(run);
        outcome_t outcome = run_walk(run);
        left = outcome == STARVES || !run_wait(run);
        over = !left && is_over(run);
    }
    if (over) {
        metal_slot_give_back(run);
        metal_fence_give_back(run);
    }
    metal_leave(api, pool);
    if (over) submission_end(&run->base, atomic_load(&run->failure));
}

static void run_start(keel_submission_t *submission)
{
    metal_run_t *run = (metal_run_t *)(void *)submission;
    run->at = keel_commands_first(&submission->commands);
    run->execute = NULL;
    atomic_store(&run->failure, NULL);
    run->before = run->now = false;
    metal_run_drive(run);
}

void metal_queue_submit(keel_queue_t *queue, keel_submission_t *submission)
{
    (void)queue;
    submission_wait(submission, run_start);
}
