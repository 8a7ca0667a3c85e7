// SPDX-License-Identifier: Apache-2.0
// The end of a command buffer: it is committed, with what others are to learn of it on the GPU, and
// its completed handler has the run go on, which then finds out how it has ended.
#include "base/status.h"
#include "drivers/metal/encode/encode.h"
#include "drivers/metal/metal.h"
#include "drivers/metal/queue/queue.h"
#include "kit/submission.h"

// On a thread of Metal's. The device stays until its last handler has counted down.
static void command_completed(metal_block_t *block, id command)
{
    (void)command;
    metal_run_t *run = block->user;
    metal_device_t *device = metal_run_device(run);
    metal_stop_end(run);
    run_handed_back(&run->base);
    atomic_fetch_sub(&device->runs.handlers, 1);
}

static void command_release(metal_run_t *run)
{
    mtl_release(metal_run_device(run)->api, run->command);
    run->command = NULL;
    run->counted = run->stamp_count = run->sampled = 0;
    run->base.before = run->base.now = run->base.barrier = run->committed = false;
}

// Whether it is to be committed. What is cancelled from here on is told to stop.
static bool may_commit(metal_run_t *run)
{
    metal_stop_begin(run);
    if (run->guarded && submission_is_cancelled(&run->base.submission))
        run_fail(&run->base, submission_cancelled(&run->base.submission));
    if (!atomic_load(&run->base.failure)) return true;
    metal_stop_end(run);
    return false;
}

// Whether the run ends well if the command buffer at hand does, which is its last one.
static bool is_certain(metal_run_t *run)
{
    return run_is_last(&run->base) && !run->counted && !run->base.visits;
}

void metal_commit(run_t *base)
{
    metal_run_t *run = (metal_run_t *)(void *)base;
    metal_device_t *device = metal_run_device(run);
    if (!run->command || run->committed) return;
    if (is_certain(run)) metal_promise_begin(run);
    metal_encoder_end(run);
    if (base->promise) metal_promise_signal(run);
    if (is_certain(run)) metal_events_signal(run);
    if (!may_commit(run)) {
        command_release(run);
        metal_scope_end(run);
        return;
    }
    metal_block_t block = metal_block(device->api, command_completed, run);
    mtl_on_completed(device->api, run->command, &block);
    run->committed = true;
    atomic_fetch_add(&device->runs.handlers, 1);
    run_begin(&run->base);
    lock_t *turn = metal_turn(run);
    lock_enter(turn);
    mtl_commit(device->api, run->command);
    lock_leave(turn);
    metal_scope_end(run);
    if (base->promise) submission_promise(&base->submission, base->promise);
}

// MTLCommandBufferError. Some mean that the process may use the GPU no more.
static keel_code_t code_of(long error)
{
    switch (error) {
    case 4:  // access revoked
    case 7:  // not permitted
    case 11: // device removed
        return KEEL_DEVICE_LOST;
    case 8: return KEEL_RESOURCE_EXHAUSTED; // out of memory
    case 2:                                 // timeout
    case 3:                                 // page fault
    case 12: return KEEL_ABORTED;           // stack overflow
    default: return KEEL_INTERNAL;
    }
}

void metal_settle(run_t *base)
{
    metal_run_t *run = (metal_run_t *)(void *)base;
    metal_device_t *device = metal_run_device(run);
    const metal_api_t *api = device->api;
    bool gone = run->committed && run->table.gone && *run->table.gone;
    metal_ahead_settle(run);
    if (!run->committed) return;
    keel_status_t status = NULL;
    if (mtl_status(api, run->command) == METAL_COMMAND_BUFFER_ERROR) {
        id error = mtl_error(api, run->command);
        long code = mtl_code(api, error);
        status = KEEL_ERROR(code_of(code), "the GPU gave up: %s (MTLCommandBufferError %ld)",
                            metal_text(api, error), code);
    }
    if (!status && gone) status = submission_cancelled(&base->submission);
    if (!status) metal_counts_settle(run);
    if (!status) metal_stamps_settle(run);
    command_release(run);
    if (!status) return;
    run_fail(&run->base, keel_status_retain(status));
    if (keel_status_code(status) == KEEL_DEVICE_LOST) metal_worker_lose(device, status);
    keel_status_release(status);
}
