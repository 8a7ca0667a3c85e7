// SPDX-License-Identifier: Apache-2.0
#include <keel/driver/driver.h>
#include <stddef.h>

#include "base/status.h"
#include "kit/call.h"
#include "kit/run.h"
#include "kit/traced.h"

static void call_done(keel_call_state_t *state, keel_status_t status)
{
    const char *c = (char *)state - offsetof(keel_cmd_call_t, state);
    const run_t *run = state->context;
    if (trace_is_on()) traced_host(&run->submission, (const keel_command_t *)(const void *)c);
    run_done_with(state->context, (const keel_command_t *)(const void *)c, status);
}

static keel_status_t call_begin(run_t *run, keel_cmd_call_t *c)
{
    keel_queue_t *queue = run->submission.queue;
    bool detached = c->call.detached;
    c->state = (keel_call_state_t){.done = call_done, .context = run};
    if (detached) return call_post(&run->queue->calls, queue, c);
    run_begin(run);
    keel_status_t status = call_post(&run->queue->calls, queue, c);
    if (status) run_done(run);
    return status;
}

static void alloca_done(keel_pool_request_t *request, keel_status_t status)
{
    const char *c = (char *)request - offsetof(keel_cmd_alloca_t, request);
    run_done_with(request->context, (const keel_command_t *)(const void *)c, status);
}

static keel_status_t alloca_begin(run_t *run, keel_cmd_alloca_t *c)
{
    keel_status_t status = NULL;
    run_begin(run);
    if (keel_slabs_alloca(c, alloca_done, run, &status)) run_done(run);
    return status;
}

static run_t *run_of(transfers_t *transfers)
{
    return (run_t *)(void *)((char *)transfers - offsetof(run_t, transfers));
}

static keel_status_t files_stage(transfers_t *transfers, uint64_t size, void **data,
                                 uint64_t *address)
{
    run_t *run = run_of(transfers);
    return run->runs->ops->stage(run, size, data, address);
}

static keel_status_t files_copy(transfers_t *transfers, const bound_copy_t *copy)
{
    run_t *run = run_of(transfers);
    return run->runs->ops->copy(run, copy);
}

static bool files_begin(transfers_t *transfers)
{
    run_t *run = run_of(transfers);
    if (atomic_load(&run->failure)) return false;
    run_begin(run);
    return true;
}

static void files_done(transfers_t *transfers, const keel_cmd_transfer_t *c, keel_status_t status)
{
    if (trace_is_on()) traced_host(&run_of(transfers)->submission, &c->head);
    run_done_with(run_of(transfers), &c->head, status);
}

static const transfer_ops_t files_ops = {files_stage, files_copy, files_begin, files_done};

static keel_status_t file_begin(run_t *run, keel_cmd_transfer_t *c)
{
    aio_t *aio = run->runs->aio;
    run->files++;
    if (c->head.kind == KEEL_CMD_WRITE) return transfer_write(&run->transfers, &files_ops, aio, c);
    run_begin(run);
    transfer_read(&run->transfers, &files_ops, aio, c);
    return NULL;
}

static keel_status_t host_begin(run_t *run, const keel_command_t *command)
{
    keel_command_t *timed = (keel_command_t *)(uintptr_t)command;
    void *c = timed; // they keep state in their records
    timed->began = traced_host_start();
    switch (command->kind) {
    case KEEL_CMD_HOST_CALL: return call_begin(run, c);
    case KEEL_CMD_ALLOCA: return alloca_begin(run, c);
    case KEEL_CMD_DEALLOCA: return keel_slabs_dealloca(c);
    default: return file_begin(run, c);
    }
}

bool run_is_for_host(uint32_t kind)
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

run_outcome_t run_host(run_t *run, const keel_command_t *command, keel_status_t *status)
{
    bool file = command->kind == KEEL_CMD_READ || command->kind == KEEL_CMD_WRITE;
    if (run->before || (file && run->files >= RUN_FILES)) return RUN_WAITS;
    // What is to be written may have to be copied first.
    if (command->kind == KEEL_CMD_WRITE && !run_room_take(run)) return RUN_STARVES;
    *status = host_begin(run, command);
    return RUN_GOES_ON;
}

run_outcome_t run_files(run_t *run)
{
    // A run that had no room may come back while steps or their copies are under way.
    if (!run->files || run->before || run->now || atomic_load(&run->pending) > 1)
        return RUN_GOES_ON;
    if (!atomic_load(&run->failure)) {
        if (!run_room_take(run)) return RUN_STARVES;
        if (run->transfers.staged) {
            transfers_staged(&run->transfers);
            return RUN_WAITS;
        }
        if (transfers_land(&run->transfers)) return RUN_WAITS;
    }
    run->transfers.staged = NULL;
    atomic_store(&run->transfers.landed, NULL);
    run->files = 0;
    return RUN_GOES_ON;
}
