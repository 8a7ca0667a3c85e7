// SPDX-License-Identifier: Apache-2.0
// What becomes of the commands of a run: what the GPU does becomes packets. kit/run.c walks over
// them, and does what is the host's.
#include "drivers/amdgpu/host/run/run.h"

#include "base/status.h"
#include "kit/command.h"

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
static run_outcome_t room_take(run_t *run)
{
    if (((amdgpu_run_t *)(void *)run)->packets >= AMDGPU_SEGMENT - 1 - 2 * RUN_FILES)
        return RUN_WAITS;
    return run_room_take(run) ? RUN_GOES_ON : RUN_STARVES;
}

// Room for as many packets as a copy to another device may be.
static run_outcome_t across_room(run_t *run)
{
    uint32_t packets = ((amdgpu_run_t *)(void *)run)->packets;
    if (packets + AMDGPU_PIECES > AMDGPU_SEGMENT - 1 - 2 * RUN_FILES) return RUN_WAITS;
    return room_take(run);
}

// The words that a command depends on: the host has them when this goes on.
static run_outcome_t words_step(amdgpu_run_t *run, const keel_command_t *c,
                                const keel_cmd_execute_t *execute, keel_status_t *status)
{
    const keel_ref_t *ref = amdgpu_peek_ref(c);
    bool sees = true;
    if (!ref || run->base.words) return RUN_GOES_ON;
    if (run->base.before) return RUN_WAITS;
    *status = amdgpu_peek_sees(ref, execute, &sees);
    if (*status || sees) return RUN_GOES_ON;
    run_outcome_t outcome = room_take(&run->base);
    if (outcome != RUN_GOES_ON) return outcome;
    *status = amdgpu_peek(run, ref, execute);
    return *status ? RUN_GOES_ON : RUN_WAITS;
}

static run_outcome_t gpu_step(amdgpu_run_t *run, const keel_command_t *c,
                              const keel_cmd_execute_t *execute, keel_status_t *status)
{
    run_outcome_t outcome = words_step(run, c, execute, status);
    if (outcome != RUN_GOES_ON || *status) return outcome;
    outcome = room_take(&run->base);
    if (outcome == RUN_GOES_ON) *status = amdgpu_issue(run, c, execute);
    return outcome;
}

static run_outcome_t command_step(run_t *base, const keel_command_t *c,
                                  const keel_cmd_execute_t *execute, keel_status_t *status)
{
    amdgpu_run_t *run = (amdgpu_run_t *)(void *)base;
    if (command_has_value(c->kind)) return words_step(run, c, execute, status);
    return is_for_gpu(c->kind) ? gpu_step(run, c, execute, status) : RUN_GOES_ON;
}

static keel_status_t run_stage(run_t *base, uint64_t size, void **data, uint64_t *address)
{
    amdgpu_run_t *run = (amdgpu_run_t *)(void *)base;
    return blocks_piece(&amdgpu_run_device(run)->blocks, NULL, &run->staging, size, data, address);
}

static keel_status_t run_copy(run_t *run, const bound_copy_t *copy)
{
    return amdgpu_issue_copy((amdgpu_run_t *)(void *)run, copy);
}

const run_ops_t amdgpu_run_ops = {
    .settle = amdgpu_flight_settle,
    .command = command_step,
    .commit = amdgpu_flight_commit,
    .finish = amdgpu_flight_finish,
    .room = across_room,
    .stage = run_stage,
    .copy = run_copy,
    .across = amdgpu_across,
    .peer = amdgpu_peer,
};

void amdgpu_host_start(keel_submission_t *submission)
{
    run_start(&amdgpu_device(submission->queue->device)->runs,
              &amdgpu_queue(submission->queue)->runs, submission);
}
