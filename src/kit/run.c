// SPDX-License-Identifier: Apache-2.0
#include "kit/run.h"

#include <keel/driver/driver.h>
#include <sched.h>

#include "base/status.h"
#include "kit/submission.h"

static run_outcome_t barrier_step(run_t *run)
{
    if (run_is_busy(run)) return RUN_WAITS;
    if (run->now) run->before = run->barrier = true;
    run->now = false;
    return RUN_GOES_ON;
}

static run_outcome_t command_step(run_t *run, const keel_command_t *c,
                                  const keel_cmd_execute_t *execute, keel_status_t *status)
{
    bool has_value = command_has_value(c->kind);
    bool for_host = has_value || run_is_for_host(c->kind) || c->kind == KEEL_CMD_ACROSS;
    if (for_host && run->leads) return RUN_WAITS;
    if (has_value && (run->before || run->now || run_is_busy(run))) return RUN_WAITS;
    if (!has_value && keel_command_is_barrier(c->kind)) return barrier_step(run);
    if (run_is_for_host(c->kind)) return run_host(run, c, status);
    if (c->kind == KEEL_CMD_ACROSS) return run_across(run, c, status);
    return run->runs->ops->command(run, c, execute, status);
}

// Where the walk through a recording goes on.
static keel_status_t recording_step(run_t *run)
{
    const keel_commands_t *commands = run->execute->recording->commands;
    const uint32_t *words = run->words;
    run->words = NULL;
    if (words && command_has_value(run->inner->kind))
        return command_jump(commands, words[0], run->loops, &run->inner);
    return keel_command_step(commands, run->execute, run->loops, &run->inner);
}

// The commands of the recording that runs.
static run_outcome_t recording_walk(run_t *run)
{
    const keel_cmd_execute_t *execute = run->execute;
    while (run->inner != keel_commands_end(execute->recording->commands)) {
        const keel_command_t *c = run->inner;
        keel_status_t status = NULL;
        run_outcome_t outcome = command_step(run, c, execute, &status);
        if (outcome != RUN_GOES_ON) return outcome;
        if (!status) status = recording_step(run);
        if (status) {
            run_fail(run, submission_blame(&run->submission, execute, c, status));
            return RUN_GOES_ON;
        }
        if (submission_is_cancelled(&run->submission)) return RUN_GOES_ON;
    }
    run->execute = NULL;
    return RUN_GOES_ON;
}

static void recording_begin(run_t *run, const keel_cmd_execute_t *execute)
{
    run->execute = execute;
    run->inner = keel_commands_first(execute->recording->commands);
    for (int i = 0; i < RUN_MAX_DEPTH; i++) run->loops[i] = 0;
}

// One command of the submission, or all of a recording.
static run_outcome_t submission_step(run_t *run)
{
    if (run->execute) return recording_walk(run);
    const keel_command_t *c = run->at;
    if (c->kind == KEEL_CMD_EXECUTE) {
        run->at = keel_command_next(c);
        recording_begin(run, (const keel_cmd_execute_t *)(const void *)c);
        return RUN_GOES_ON;
    }
    keel_status_t status = NULL;
    run_outcome_t outcome = command_step(run, c, NULL, &status);
    if (outcome != RUN_GOES_ON) return outcome;
    run->words = NULL;
    run->at = keel_command_next(c);
    if (status) run_fail(run, submission_blame(&run->submission, NULL, c, status));
    return RUN_GOES_ON;
}

// Whether there is more to do; not when it has failed.
static bool has_more(run_t *run)
{
    if (atomic_load(&run->failure)) return false;
    if (!run->execute && run->at == keel_commands_end(&run->submission.commands)) return false;
    if (!submission_is_cancelled(&run->submission)) return true;
    run_fail(run, submission_cancelled(&run->submission));
    return false;
}

static run_outcome_t walk(run_t *run)
{
    run->leads = atomic_load(&run->ahead) != 0;
    run->runs->ops->settle(run);
    if (!run->before && !run->now) run_visits_end(run);
    run_outcome_t outcome = run_files(run);
    while (outcome == RUN_GOES_ON && has_more(run)) outcome = submission_step(run);
    return outcome == RUN_STARVES ? RUN_STARVES : RUN_WAITS;
}

static bool is_over(run_t *run)
{
    return !has_more(run) && !run->before && !run->now && !run->files;
}

// True: the thread has the run for itself, and all that was begun has ended.
static bool wait_for_all(run_t *run)
{
    run->runs->ops->commit(run);
    if (!run->before && !run->now) run_room_give_back(run); // nothing was handed over
    run->driven = false; // before another thread may go on with it
    return atomic_fetch_sub(&run->pending, 1) == 1;
}

// The device stays until the promise is over, though the caller may have no reference to it.
static void end(run_t *run)
{
    runs_t *runs = run->runs;
    promise_t *promise = run->promise;
    keel_status_t failure = atomic_load(&run->failure);
    if (!promise) {
        submission_end(&run->submission, failure);
        return;
    }
    keel_status_retain(failure);
    atomic_fetch_add(&runs->handlers, 1);
    submission_end(&run->submission, failure);
    runs->ops->kept(promise, failure);
    atomic_fetch_sub(&runs->handlers, 1);
    keel_status_release(failure);
}

static void drive(run_t *run)
{
    bool over = false;
    while (!over) {
        if (!run->driven) run_begin(run);
        run->driven = true;
        if (walk(run) == RUN_STARVES || !wait_for_all(run)) return;
        over = is_over(run);
    }
    run_visits_end(run);
    run_room_give_back(run);
    run->runs->ops->finish(run);
    end(run);
}

bool run_is_last(run_t *run)
{
    bool at_end = !run->execute && run->at == keel_commands_end(&run->submission.commands);
    return at_end && !atomic_load(&run->failure) && !run_is_busy(run);
}

void run_start(runs_t *runs, run_queue_t *queue, keel_submission_t *submission)
{
    run_t *run = (run_t *)(void *)submission;
    keel_status_t ended = atomic_load(&runs->device->ended);
    if (ended) { // what waits for nothing still comes here
        submission_end(submission, keel_status_retain(ended));
        return;
    }
    run->runs = runs;
    run->queue = queue;
    run->at = keel_commands_first(&submission->commands);
    run->execute = NULL;
    run->files = 0;
    run->transfers.staged = NULL;
    atomic_store(&run->transfers.landed, NULL);
    run->words = NULL;
    run->before = run->now = run->barrier = false;
    atomic_store(&run->failure, NULL);
    atomic_store(&run->ahead, 0);
    run->promise = NULL;
    run_begin(run);
    run->driven = true;
    if (runs->ops->begin) runs->ops->begin(run);
    drive(run);
}

void runs_init(runs_t *runs, const run_ops_t *ops, keel_device_t *device, const char *name,
               const char *aid, uint64_t (*work)(void *))
{
    runs->ops = ops;
    runs->device = device;
    helper_init(&runs->worker, name, work, device);
    chores_init(&runs->errands, aid, NULL, runs);
}

keel_status_t runs_start(runs_t *runs)
{
    KEEL_TRY(aio_create(&runs->aio));
    if (helper_wake(&runs->worker)) return NULL;
    return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "there is no thread for the device");
}

void runs_stop(runs_t *runs)
{
    chores_stop(&runs->errands);
    helper_stop(&runs->worker);
    while (atomic_load(&runs->handlers)) sched_yield();
    runs_free(runs);
}

void runs_free(runs_t *runs)
{
    aio_destroy(runs->aio);
    runs->aio = NULL;
}

static run_t *take_ready(runs_t *runs)
{
    run_t *run = atomic_exchange(&runs->ready, NULL), *oldest = NULL;
    while (run) {
        run_t *next = run->next;
        run->next = oldest;
        oldest = run;
        run = next;
    }
    return oldest;
}

void runs_work(runs_t *runs)
{
    run_t *next;
    for (run_t *run = take_ready(runs); run; run = next) {
        next = run->next;
        if (runs->ops->drive)
            runs->ops->drive(run, drive);
        else
            drive(run);
    }
}
