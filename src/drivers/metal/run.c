// SPDX-License-Identifier: Apache-2.0
// What becomes of the commands of a run: what the GPU does is encoded, what the host does begins at
// once. kit/run.c walks over them.
#include "base/status.h"
#include "drivers/metal/metal.h"
#include "kit/submission.h"

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

static bool room_take(run_t *run)
{
    return run_room_take(&metal_queue(run->submission.queue)->room, run);
}

// What the host does may have the GPU bring bytes to where they belong.
static run_outcome_t host_step(metal_run_t *run, const keel_command_t *c,
                               const keel_cmd_execute_t *execute, keel_status_t *status)
{
    bool file = c->kind == KEEL_CMD_READ || c->kind == KEEL_CMD_WRITE;
    if (run->base.before || (file && run->moving >= METAL_TRANSFERS)) return RUN_WAITS;
    bool copies = c->kind == KEEL_CMD_WRITE || c->kind == KEEL_CMD_TIMESTAMP;
    if (copies && metal_run_device(run)->discrete && !room_take(&run->base)) return RUN_STARVES;
    *status = metal_host(run, c, execute);
    return RUN_GOES_ON;
}

static run_outcome_t gpu_step(metal_run_t *run, const keel_command_t *c,
                              const keel_cmd_execute_t *execute, keel_status_t *status)
{
    run_outcome_t outcome = metal_peek(run, c, execute, status);
    if (outcome != RUN_GOES_ON || *status) return outcome;
    if (run->base.before && reads(c)) return RUN_WAITS;
    if (run->counted == METAL_COUNTED) return RUN_WAITS;
    if (!room_take(&run->base)) return RUN_STARVES;
    *status = metal_encode(run, c, execute);
    return RUN_GOES_ON;
}

// As if it were the GPU's, if that can make the copy; else it is the host's.
static run_outcome_t across_step(metal_run_t *run, const keel_command_t *c, keel_status_t *status)
{
    keel_cmd_across_t *across = (keel_cmd_across_t *)(uintptr_t)c; // it keeps state
    metal_across_t how;
    if (run_is_busy(&run->base)) return RUN_WAITS;
    if (!room_take(&run->base)) return RUN_STARVES;
    *status = metal_across(run, across, &how);
    if (*status || how == METAL_ACROSS_DONE) return RUN_GOES_ON;
    if (how == METAL_ACROSS_PREPARES || run->base.before || run->base.now) return RUN_WAITS;
    // Those that make it need some.
    run_room_give_back(&metal_queue(run->base.submission.queue)->room, &run->base);
    *status = metal_across_pass_on(run, across);
    return RUN_GOES_ON;
}

static run_outcome_t kind_step(metal_run_t *run, const keel_command_t *c,
                               const keel_cmd_execute_t *execute, keel_status_t *status)
{
    if (command_has_value(c->kind)) return metal_peek(run, c, execute, status);
    if (c->kind == KEEL_CMD_ACROSS) return across_step(run, c, status);
    if (is_for_host(c->kind)) return host_step(run, c, execute, status);
    return is_for_gpu(c->kind) ? gpu_step(run, c, execute, status) : RUN_GOES_ON;
}

static run_outcome_t command_step(run_t *base, const keel_command_t *c,
                                  const keel_cmd_execute_t *execute, keel_status_t *status)
{
    metal_run_t *run = (metal_run_t *)(void *)base;
    run_outcome_t outcome = kind_step(run, c, execute, status);
    if (outcome != RUN_GOES_ON) return outcome;
    base->has_value = run->peeked && command_has_value(c->kind);
    if (base->has_value) base->value = *metal_peeked(run);
    run->peeked = false;
    return RUN_GOES_ON;
}

static run_outcome_t run_resume(run_t *base)
{
    metal_run_t *run = (metal_run_t *)(void *)base;
    metal_settle(run);
    return metal_files_go_on(run);
}

static void run_finish(run_t *base)
{
    metal_run_t *run = (metal_run_t *)(void *)base;
    run_room_give_back(&metal_queue(base->submission.queue)->room, base);
    metal_fence_give_back(run);
    metal_visits_end(run); // of a copy that failed before it was committed
    metal_words_give_back(run);
    metal_stages_release(run);
    run->peeked = false;
}

const run_ops_t metal_run_ops = {run_resume, command_step, metal_commit, run_finish};

static void start(keel_submission_t *submission)
{
    metal_device_t *device = metal_device(submission->queue->device);
    const metal_api_t *api = device->api; // the device may be gone when this returns
    keel_status_t ended = atomic_load(&device->base.ended);
    if (ended) { // Metal may take work all the same
        submission_end(submission, keel_status_retain(ended));
        return;
    }
    void *pool = metal_enter(api);
    run_start(&device->runs, submission);
    metal_leave(api, pool);
}

void metal_queue_submit(keel_queue_t *queue, keel_submission_t *submission)
{
    (void)queue;
    submission_wait(submission, start);
}
