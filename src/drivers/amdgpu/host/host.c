// SPDX-License-Identifier: Apache-2.0
// What the host does for a run. Each begins here and ends on another thread, while the run goes on
// up to the next barrier.
#include <stddef.h>

#include "drivers/amdgpu/host/amdgpu.h"

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
    if (atomic_load(&run->base.failure)) return false;
    run_begin(&run->base);
    return true;
}

static void files_done(transfers_t *transfers, const keel_cmd_transfer_t *c, keel_status_t status)
{
    run_done_with(&run_of(transfers)->base, &c->head, status);
}

static const transfer_ops_t files_ops = {files_stage, files_copy, files_begin, files_done};

static keel_status_t file_begin(amdgpu_run_t *run, keel_cmd_transfer_t *c)
{
    aio_t *aio = amdgpu_run_device(run)->aio;
    run->moving++;
    run->base.unfinished = true;
    if (c->head.kind == KEEL_CMD_WRITE) return transfer_write(&run->transfers, &files_ops, aio, c);
    run_begin(&run->base);
    transfer_read(&run->transfers, &files_ops, aio, c);
    return NULL;
}

keel_status_t amdgpu_host(amdgpu_run_t *run, const keel_command_t *command)
{
    void *c = (void *)(uintptr_t)command; // they keep state in their records
    switch (command->kind) {
    case KEEL_CMD_HOST_CALL:
        return run_call(&run->base, &amdgpu_queue(run->base.submission.queue)->calls, c);
    case KEEL_CMD_ALLOCA: return run_alloca(&run->base, c);
    case KEEL_CMD_DEALLOCA: return keel_slabs_dealloca(c);
    default: return file_begin(run, c);
    }
}
