// SPDX-License-Identifier: Apache-2.0
// What the host does for a run. Each begins here and ends on another thread, while the run goes on
// up to the next barrier.
#include <stddef.h>

#include "drivers/amdgpu/host/amdgpu.h"
#include "kit/call.h"
#include "kit/submission.h"

static void end(amdgpu_run_t *run, const keel_command_t *c, keel_status_t status)
{
    if (status) amdgpu_run_fail(run, submission_blame(&run->base, NULL, c, status));
    amdgpu_run_done(run);
}

static void call_done(keel_call_state_t *state, keel_status_t status)
{
    const char *c = (char *)state - offsetof(keel_cmd_call_t, state);
    end(state->context, (const keel_command_t *)(const void *)c, status);
}

static keel_status_t call_begin(amdgpu_run_t *run, keel_cmd_call_t *c)
{
    chores_t *calls = &amdgpu_queue(run->base.queue)->calls;
    bool detached = c->call.detached;
    c->state = (keel_call_state_t){.done = call_done, .context = run};
    if (detached) return call_post(calls, run->base.queue, c);
    amdgpu_run_begin(run);
    keel_status_t status = call_post(calls, run->base.queue, c);
    if (status) amdgpu_run_done(run);
    return status;
}

static amdgpu_run_t *run_of(transfers_t *transfers)
{
    return (amdgpu_run_t *)(void *)((char *)transfers - offsetof(amdgpu_run_t, transfers));
}

static keel_status_t files_stage(transfers_t *transfers, uint64_t size, void **data,
                                 uint64_t *address)
{
    amdgpu_run_t *run = run_of(transfers);
    return blocks_piece(&amdgpu_run_device(run)->blocks, NULL, &run->staging, size, data, address);
}

static keel_status_t files_copy(transfers_t *transfers, const bound_copy_t *copy)
{
    return amdgpu_issue_copy(run_of(transfers), copy);
}

static bool files_begin(transfers_t *transfers)
{
    amdgpu_run_t *run = run_of(transfers);
    if (atomic_load(&run->failure)) return false;
    amdgpu_run_begin(run);
    return true;
}

static void files_done(transfers_t *transfers, const keel_cmd_transfer_t *c, keel_status_t status)
{
    end(run_of(transfers), &c->head, status);
}

static const transfer_ops_t files_ops = {files_stage, files_copy, files_begin, files_done};

static keel_status_t file_begin(amdgpu_run_t *run, keel_cmd_transfer_t *c)
{
    aio_t *aio = amdgpu_run_device(run)->aio;
    run->moving++;
    if (c->head.kind == KEEL_CMD_WRITE) return transfer_write(&run->transfers, &files_ops, aio, c);
    amdgpu_run_begin(run);
    transfer_read(&run->transfers, &files_ops, aio, c);
    return NULL;
}

static void alloca_done(keel_pool_request_t *request, keel_status_t status)
{
    const char *c = (char *)request - offsetof(keel_cmd_alloca_t, request);
    end(request->context, (const keel_command_t *)(const void *)c, status);
}

static keel_status_t alloca_begin(amdgpu_run_t *run, keel_cmd_alloca_t *c)
{
    keel_status_t status = NULL;
    amdgpu_run_begin(run);
    if (keel_slabs_alloca(c, alloca_done, run, &status)) amdgpu_run_done(run);
    return status;
}

keel_status_t amdgpu_host(amdgpu_run_t *run, const keel_command_t *command)
{
    void *c = (void *)(uintptr_t)command; // they keep state in their records
    switch (command->kind) {
    case KEEL_CMD_HOST_CALL: return call_begin(run, c);
    case KEEL_CMD_ALLOCA: return alloca_begin(run, c);
    case KEEL_CMD_DEALLOCA: return keel_slabs_dealloca(c);
    default: return file_begin(run, c);
    }
}
