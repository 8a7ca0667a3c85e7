// SPDX-License-Identifier: Apache-2.0
// A run: the walk over the commands of a submission. What the GPU does becomes packets, what the
// host does begins at once. Where something must wait until all before has ended, the packets so
// far get their last one and the thread leaves; the last one to end has the run gone on with.
#include "base/status.h"
#include "drivers/amdgpu/host/scheduler.h"
#include "kit/submission.h"

enum { TRANSFERS = 64 }; // files that a run moves at a time: each may need two packets

typedef enum outcome_t {
    GOES_ON, // with the next command
    WAITS,   // until all that was begun has ended; then the same command again
    STARVES, // there is no room in the ring: the run may be gone on with already
} outcome_t;

void amdgpu_run_fail(amdgpu_run_t *run, keel_status_t status)
{
    keel_status_t none = NULL;
    if (!atomic_compare_exchange_strong(&run->failure, &none, status)) keel_status_release(status);
}

void amdgpu_run_begin(amdgpu_run_t *run)
{
    atomic_fetch_add(&run->pending, 1);
}

void amdgpu_run_done(amdgpu_run_t *run)
{
    if (atomic_fetch_sub(&run->pending, 1) == 1) amdgpu_resume(run);
}

// Whether something was begun that has not ended, besides packets.
static bool is_busy(amdgpu_run_t *run)
{
    return run->moving || atomic_load(&run->pending) > 1;
}

static outcome_t barrier_step(amdgpu_run_t *run)
{
    if (is_busy(run)) return WAITS;
    if (run->now) run->before = run->barrier = true;
    run->now = false;
    return GOES_ON;
}

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
static outcome_t room_take(amdgpu_run_t *run)
{
    if (run->packets >= AMDGPU_SEGMENT - 1 - 2 * TRANSFERS) return WAITS;
    return amdgpu_slot_take(run) ? GOES_ON : STARVES;
}

// The words that a command depends on: the host has them when this goes on.
static outcome_t words_step(amdgpu_run_t *run, const keel_command_t *c,
                            const keel_cmd_execute_t *execute, keel_status_t *status)
{
    const keel_ref_t *ref = amdgpu_peek_ref(c);
    bool sees = true;
    if (!ref || run->peeked) return GOES_ON;
    if (run->before) return WAITS;
    *status = amdgpu_peek_sees(ref, execute, &sees);
    if (*status || sees) return GOES_ON;
    outcome_t outcome = room_take(run);
    if (outcome != GOES_ON) return outcome;
    *status = amdgpu_peek(run, ref, execute);
    return *status ? GOES_ON : WAITS;
}

static outcome_t host_step(amdgpu_run_t *run, const keel_command_t *c, keel_status_t *status)
{
    bool file = c->kind == KEEL_CMD_READ || c->kind == KEEL_CMD_WRITE;
    if (run->before || (file && run->moving >= TRANSFERS)) return WAITS;
    if (c->kind == KEEL_CMD_WRITE && !amdgpu_slot_take(run)) return STARVES;
    *status = amdgpu_host(run, c);
    return GOES_ON;
}

static outcome_t gpu_step(amdgpu_run_t *run, const keel_command_t *c,
                          const keel_cmd_execute_t *execute, keel_status_t *status)
{
    outcome_t outcome = words_step(run, c, execute, status);
    if (outcome != GOES_ON || *status) return outcome;
    outcome = room_take(run);
    if (outcome == GOES_ON) *status = amdgpu_issue(run, c, execute);
    return outcome;
}

static outcome_t command_step(amdgpu_run_t *run, const keel_command_t *c,
                              const keel_cmd_execute_t *execute, keel_status_t *status)
{
    if (command_has_value(c->kind)) {
        if (run->before || run->now || is_busy(run)) return WAITS;
        return words_step(run, c, execute, status);
    }
    if (keel_command_is_barrier(c->kind)) return barrier_step(run);
    if (is_for_host(c->kind)) return host_step(run, c, status);
    return is_for_gpu(c->kind) ? gpu_step(run, c, execute, status) : GOES_ON;
}

// Where the walk through a recording goes on.
static keel_status_t recording_step(amdgpu_run_t *run)
{
    const keel_commands_t *commands = run->execute->recording->commands;
    bool peeked = run->peeked;
    run->peeked = false;
    if (peeked && command_has_value(run->inner->kind))
        return command_jump(commands, run->peek[0], run->loops, &run->inner);
    return keel_command_step(commands, run->execute, run->loops, &run->inner);
}

// The commands of the recording that runs.
static outcome_t recording_walk(amdgpu_run_t *run)
{
    const keel_cmd_execute_t *execute = run->execute;
    const keel_commands_t *commands = execute->recording->commands;
    while (run->inner != keel_commands_end(commands)) {
        const keel_command_t *c = run->inner;
        keel_status_t status = NULL;
        outcome_t outcome = command_step(run, c, execute, &status);
        if (outcome != GOES_ON) return outcome;
        if (!status) status = recording_step(run);
        if (status) {
            amdgpu_run_fail(run, submission_blame(&run->base, execute, c, status));
            return GOES_ON;
        }
        if (submission_is_cancelled(&run->base)) return GOES_ON;
    }
    run->execute = NULL;
    return GOES_ON;
}

static void recording_begin(amdgpu_run_t *run, const keel_cmd_execute_t *execute)
{
    run->execute = execute;
    run->inner = keel_commands_first(execute->recording->commands);
    for (int i = 0; i < AMDGPU_MAX_DEPTH; i++) run->loops[i] = 0;
}

// One command of the submission, or all of a recording.
static outcome_t submission_step(amdgpu_run_t *run)
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
    run->peeked = false;
    run->at = keel_command_next(c);
    if (status) amdgpu_run_fail(run, submission_blame(&run->base, NULL, c, status));
    return GOES_ON;
}

// Whether there is more to do; not when it has failed.
static bool has_more(amdgpu_run_t *run)
{
    if (atomic_load(&run->failure)) return false;
    if (!run->execute && run->at == keel_commands_end(&run->base.commands)) return false;
    if (!submission_is_cancelled(&run->base)) return true;
    amdgpu_run_fail(run, submission_cancelled(&run->base));
    return false;
}

// Files: the copies and the steps that were begun are over, and the next ones begin.
static outcome_t files_step(amdgpu_run_t *run)
{
    if (!run->moving) return GOES_ON;
    if (!atomic_load(&run->failure)) {
        if (!amdgpu_slot_take(run)) return STARVES;
        if (run->transfers.staged) {
            transfers_staged(&run->transfers);
            return WAITS;
        }
        if (transfers_land(&run->transfers)) return WAITS;
    }
    run->transfers.staged = NULL;
    atomic_store(&run->transfers.landed, NULL);
    run->moving = 0;
    return GOES_ON;
}

static outcome_t run_walk(amdgpu_run_t *run)
{
    outcome_t outcome = files_step(run);
    if (outcome != GOES_ON) return outcome;
    while (has_more(run)) {
        outcome = submission_step(run);
        if (outcome != GOES_ON) return outcome;
    }
    return WAITS;
}

static bool is_over(amdgpu_run_t *run)
{
    return !has_more(run) && !run->packets && !run->moving;
}

// True: the thread has the run for itself, and all that was begun has ended.
static bool run_wait(amdgpu_run_t *run)
{
    amdgpu_commit(run);
    run->driven = false; // before another thread may go on with it
    return atomic_fetch_sub(&run->pending, 1) == 1;
}

void amdgpu_run_drive(amdgpu_run_t *run)
{
    bool over = false, left = false;
    while (!over && !left) {
        if (!run->driven) amdgpu_run_begin(run);
        run->driven = true;
        amdgpu_settle(run);
        left = run_walk(run) == STARVES || !run_wait(run);
        over = !left && is_over(run);
    }
    if (!over) return;
    amdgpu_run_finish(run);
    submission_end(&run->base, atomic_load(&run->failure));
}

static void run_start(keel_submission_t *submission)
{
    amdgpu_run_t *run = (amdgpu_run_t *)(void *)submission;
    run->at = keel_commands_first(&submission->commands);
    run->execute = NULL;
    atomic_store(&run->failure, NULL);
    amdgpu_run_drive(run);
}

void amdgpu_queue_submit(keel_queue_t *queue, keel_submission_t *submission)
{
    (void)queue;
    if (amdgpu_record_suits(submission))
        keel_submission_wait_remote(submission, amdgpu_record_start);
    else
        submission_wait(submission, run_start);
}
