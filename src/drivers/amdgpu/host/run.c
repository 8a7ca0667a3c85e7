// SPDX-License-Identifier: Apache-2.0
// What becomes of the commands of a run: what the GPU does becomes packets, what the host does
// begins at once. kit/run.c walks over them.
#include "base/status.h"
#include "drivers/amdgpu/host/scheduler.h"
#include "kit/submission.h"

enum { TRANSFERS = 64 }; // files that a run moves at a time: each may need two packets

static bool is_for_host(uint32_t kind)
{
    switch (kind) {
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
    switch (kind) {
    case KEEL_CMD_FILL:
    case KEEL_CMD_UPDATE:
    case KEEL_CMD_COPY:
    case KEEL_CMD_TIMESTAMP:
    case KEEL_CMD_DISPATCH: return true;
    default: return false;
    }
}

// Room for one more packet besides the last one, and for those of files.
static run_outcome_t room_take(amdgpu_run_t *run)
{
    if (run->packets >= AMDGPU_SEGMENT - 1 - 2 * TRANSFERS) return RUN_WAITS;
    return run_room_take(amdgpu_room(run), &run->base) ? RUN_GOES_ON : RUN_STARVES;
}

// The words that a command depends on: the host has them when this goes on.
static run_outcome_t words_step(amdgpu_run_t *run, const keel_command_t *c,
                                const keel_cmd_execute_t *execute, keel_status_t *status)
{
    const keel_ref_t *ref = amdgpu_peek_ref(c);
    bool sees = true;
    if (!ref || run->peeked) return RUN_GOES_ON;
    if (run->base.before) return RUN_WAITS;
    *status = amdgpu_peek_sees(ref, execute, &sees);
    if (*status || sees) return RUN_GOES_ON;
    run_outcome_t outcome = room_take(run);
    if (outcome != RUN_GOES_ON) return outcome;
    *status = amdgpu_peek(run, ref, execute);
    return *status ? RUN_GOES_ON : RUN_WAITS;
}

static run_outcome_t host_step(amdgpu_run_t *run, const keel_command_t *c, keel_status_t *status)
{
    bool file = c->kind == KEEL_CMD_READ || c->kind == KEEL_CMD_WRITE;
    if (run->base.before || (file && run->moving >= TRANSFERS)) return RUN_WAITS;
    if (c->kind == KEEL_CMD_WRITE && !run_room_take(amdgpu_room(run), &run->base))
        return RUN_STARVES;
    *status = amdgpu_host(run, c);
    return RUN_GOES_ON;
}

static run_outcome_t gpu_step(amdgpu_run_t *run, const keel_command_t *c,
                              const keel_cmd_execute_t *execute, keel_status_t *status)
{
    run_outcome_t outcome = words_step(run, c, execute, status);
    if (outcome != RUN_GOES_ON || *status) return outcome;
    outcome = room_take(run);
    if (outcome == RUN_GOES_ON) *status = amdgpu_issue(run, c, execute);
    return outcome;
}

// As if it were the GPU's, if that can make the copy; else it is the host's.
static run_outcome_t across_step(amdgpu_run_t *run, const keel_command_t *c, keel_status_t *status)
{
    keel_cmd_across_t *across = (keel_cmd_across_t *)(uintptr_t)c; // it keeps state
    amdgpu_across_t how;
    if (run_is_busy(&run->base)) return RUN_WAITS;
    run_outcome_t outcome = room_take(run);
    if (outcome != RUN_GOES_ON) return outcome;
    *status = amdgpu_across(run, across, &how);
    if (*status || how == AMDGPU_ACROSS_DONE) return RUN_GOES_ON;
    if (how == AMDGPU_ACROSS_PREPARES || run->base.before || run->base.now) return RUN_WAITS;
    run_room_give_back(amdgpu_room(run), &run->base); // those that make it need some
    *status = amdgpu_across_pass_on(run, across);
    return RUN_GOES_ON;
}

static run_outcome_t kind_step(amdgpu_run_t *run, const keel_command_t *c,
                               const keel_cmd_execute_t *execute, keel_status_t *status)
{
    if (command_has_value(c->kind)) return words_step(run, c, execute, status);
    if (is_for_host(c->kind)) return host_step(run, c, status);
    if (c->kind == KEEL_CMD_ACROSS) return across_step(run, c, status);
    return is_for_gpu(c->kind) ? gpu_step(run, c, execute, status) : RUN_GOES_ON;
}

static run_outcome_t command_step(run_t *base, const keel_command_t *c,
                                  const keel_cmd_execute_t *execute, keel_status_t *status)
{
    amdgpu_run_t *run = (amdgpu_run_t *)(void *)base;
    run_outcome_t outcome = kind_step(run, c, execute, status);
    if (outcome != RUN_GOES_ON) return outcome;
    base->has_value = run->peeked && command_has_value(c->kind);
    if (base->has_value) base->value = run->peek[0];
    run->peeked = false;
    return RUN_GOES_ON;
}

// Files: the copies and the steps that were begun are over, and the next ones begin.
static run_outcome_t files_step(amdgpu_run_t *run)
{
    if (!run->moving) return RUN_GOES_ON;
    if (!atomic_load(&run->base.failure)) {
        if (!run_room_take(amdgpu_room(run), &run->base)) return RUN_STARVES;
        if (run->transfers.staged) {
            transfers_staged(&run->transfers);
            return RUN_WAITS;
        }
        if (transfers_land(&run->transfers)) return RUN_WAITS;
    }
    run->transfers.staged = NULL;
    atomic_store(&run->transfers.landed, NULL);
    run->moving = 0;
    run->base.unfinished = false;
    return RUN_GOES_ON;
}

static run_outcome_t run_resume(run_t *base)
{
    amdgpu_run_t *run = (amdgpu_run_t *)(void *)base;
    amdgpu_settle(run);
    return files_step(run);
}

const run_ops_t amdgpu_run_ops = {run_resume, command_step, amdgpu_commit, amdgpu_run_finish};

static void host_start(keel_submission_t *submission)
{
    run_start(&amdgpu_device(submission->queue->device)->runs, submission);
}

void amdgpu_queue_submit(keel_queue_t *queue, keel_submission_t *submission)
{
    (void)queue;
    if (amdgpu_record_suits(submission))
        keel_submission_wait_remote(submission, amdgpu_record_start);
    else
        submission_wait(submission, host_start);
}
