// SPDX-License-Identifier: Apache-2.0
// What becomes of the commands of a run: what the GPU does is encoded. kit/run.c walks
// over them, and does what is the host's.
#include <string.h>

#include "base/status.h"
#include "drivers/metal/encode/encode.h"
#include "drivers/metal/memory/memory.h"
#include "drivers/metal/metal.h"
#include "drivers/metal/queue/queue.h"
#include "kit/submission.h"

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

static run_outcome_t room_take(run_t *run)
{
    return run_room_take(run) ? RUN_GOES_ON : RUN_STARVES;
}

// By the GPU, or by the host, which may have the GPU bring the bytes to where they belong.
static run_outcome_t timestamp_step(metal_run_t *run, const keel_cmd_timestamp_t *c,
                                    const keel_cmd_execute_t *execute, keel_status_t *status)
{
    metal_place_t place;
    if (!run->stuck && metal_stamp_can(run)) {
        if (!run_room_take(&run->base)) return RUN_STARVES;
        if (metal_stamp_try(run, status)) return RUN_WAITS;
        if (!*status) *status = metal_place(&c->target, execute, &place);
        if (!*status) *status = metal_stamp(run, &place);
        return RUN_GOES_ON;
    }
    if (run->base.before || run->base.leads) return RUN_WAITS;
    *status = metal_place(&c->target, execute, &place);
    if (*status) return RUN_GOES_ON;
    if (!place.data && !run_room_take(&run->base)) return RUN_STARVES;
    uint64_t now = metal_stamp_late(run);
    if (place.data)
        memcpy(place.data, &now, sizeof now);
    else
        *status = metal_transfer_bytes(run, &now, &place);
    return RUN_GOES_ON;
}

static keel_status_t encode(metal_run_t *run, const keel_command_t *c,
                            const keel_cmd_execute_t *execute)
{
    bool dispatches = c->kind == KEEL_CMD_DISPATCH;
    return dispatches ? metal_dispatch(run, (const void *)c, execute)
                      : metal_transfer(run, c, execute);
}

static run_outcome_t gpu_step(metal_run_t *run, const keel_command_t *c,
                              const keel_cmd_execute_t *execute, keel_status_t *status)
{
    if (run->stuck || (run->guarded && metal_reads_words(c, execute))) return RUN_WAITS;
    run_outcome_t outcome = metal_peek(run, c, execute, status);
    if (outcome != RUN_GOES_ON || *status) return outcome;
    if (run->base.before && reads(c)) return RUN_WAITS;
    if (run->counted == METAL_COUNTED || !metal_trace_begin(run)) return RUN_WAITS;
    if (!run_room_take(&run->base)) return RUN_STARVES;
    if (metal_indirect(run, c, execute, status)) return RUN_GOES_ON;
    *status = encode(run, c, execute);
    metal_trace_end(run, c, execute);
    return RUN_GOES_ON;
}

static run_outcome_t command_step(run_t *base, const keel_command_t *c,
                                  const keel_cmd_execute_t *execute, keel_status_t *status)
{
    metal_run_t *run = (metal_run_t *)(void *)base;
    if (command_has_value(c->kind)) return metal_peek(run, c, execute, status);
    if (c->kind == KEEL_CMD_TIMESTAMP) return timestamp_step(run, (const void *)c, execute, status);
    return is_for_gpu(c->kind) ? gpu_step(run, c, execute, status) : RUN_GOES_ON;
}

static void run_finish(run_t *base)
{
    metal_run_t *run = (metal_run_t *)(void *)base;
    metal_ahead_finish(run);
    metal_fence_give_back(run);
    metal_words_give_back(run);
    metal_stamps_give_back(run);
    metal_stages_release(run);
    metal_used_release(run);
}

static keel_status_t run_stage(run_t *base, uint64_t size, void **data, uint64_t *address)
{
    metal_run_t *run = (metal_run_t *)(void *)base;
    struct metal_memory_t *memory;
    KEEL_TRY(metal_stage(run, size, &memory));
    *data = mtl_contents(metal_run_device(run)->api, metal_memory_buffer(memory));
    *address = metal_memory_address(memory);
    return NULL;
}

static keel_status_t run_copy(run_t *base, const bound_copy_t *copy)
{
    metal_run_t *run = (metal_run_t *)(void *)base;
    metal_place_t source, target;
    KEEL_TRY(metal_place_at(metal_run_device(run), copy->source, copy->size, &source));
    KEEL_TRY(metal_place_at(metal_run_device(run), copy->target, copy->size, &target));
    return metal_transfer_copy(run, &source, &target);
}

// A pool for each: command buffers that were given up count as outstanding until theirs is emptied.
static void run_drive(run_t *run, void (*go)(run_t *run))
{
    const metal_api_t *api = metal_device(run->runs->device)->api; // the run may be gone after it
    void *pool = metal_enter(api);
    go(run);
    metal_leave(api, pool);
}

const run_ops_t metal_run_ops = {
    .settle = metal_settle,
    .command = command_step,
    .commit = metal_commit,
    .finish = run_finish,
    .room = room_take,
    .stage = run_stage,
    .copy = run_copy,
    .across = metal_across,
    .begin = metal_ahead_begin,
    .kept = metal_promise_kept,
    .drive = run_drive,
};

static void start(keel_submission_t *submission)
{
    metal_device_t *device = metal_device(submission->queue->device);
    const metal_api_t *api = device->api; // the device may be gone when this returns
    void *pool = metal_enter(api);
    keel_status_t failed = atomic_load(&device->failed); // its thread may be about to end it
    if (failed)
        submission_end(submission, keel_status_retain(failed));
    else
        run_start(&device->runs, &metal_queue(submission->queue)->runs, submission);
    metal_leave(api, pool);
}

void metal_queue_submit(keel_queue_t *queue, keel_submission_t *submission)
{
    (void)queue;
    metal_ahead_note(submission);
    if (submission_wait_early(submission, start)) submission_later(submission, start);
}
