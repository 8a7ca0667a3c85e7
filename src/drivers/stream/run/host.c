// SPDX-License-Identifier: Apache-2.0
// What a stream cannot do: call the application, read and write files (kit/transfer.h). Between the
// two halves of transfers the run is parked, once for all of a stage.
#include <stddef.h>

#include "base/status.h"
#include "drivers/stream/run/run.h"
#include "kit/call.h"
#include "kit/traced.h"

static void call_done(keel_call_state_t *state, keel_status_t status)
{
    const keel_cmd_call_t *c =
        (const keel_cmd_call_t *)(void *)((char *)state - offsetof(keel_cmd_call_t, state));
    stream_run_t *run = state->context;
    if (trace_is_on()) traced_host(&run->base, &c->head);
    if (status) stream_run_fail(run, submission_blame(&run->base, NULL, &c->head, status));
    stream_run_done(run);
}

static keel_status_t call_begin(stream_run_t *run, keel_cmd_call_t *c)
{
    bool detached = c->call.detached;
    c->state = (keel_call_state_t){.done = call_done, .context = run};
    KEEL_TRY(call_post(&stream_run_queue(run)->calls, run->base.queue, c));
    if (detached) stream_run_done(run);
    return NULL;
}

static stream_run_t *run_of(transfers_t *transfers)
{
    return (stream_run_t *)(void *)((char *)transfers - offsetof(stream_run_t, transfers));
}

static keel_status_t files_stage(transfers_t *transfers, uint64_t size, void **data,
                                 uint64_t *address)
{
    return stream_stage(run_of(transfers), size, data, address);
}

static keel_status_t files_copy(transfers_t *transfers, const bound_copy_t *copy)
{
    stream_run_t *run = run_of(transfers);
    stream_queue_t *queue = stream_run_queue(run);
    stream_device_t *device = stream_queue_device(queue);
    stream_run_follow(run, STREAM_TAIL_OWN);
    return stream_device_note(
        device, device->api->copy(device->vendor, stream_queue_onto_copy(queue), copy));
}

static bool files_begin(transfers_t *transfers)
{
    stream_run_t *run = run_of(transfers);
    if (atomic_load(&run->failure)) return false;
    pending_add(&run->pending);
    return true;
}

static void files_done(transfers_t *transfers, const keel_cmd_transfer_t *c, keel_status_t status)
{
    stream_run_t *run = run_of(transfers);
    if (trace_is_on()) traced_host(&run->base, &c->head);
    if (status) stream_run_fail(run, submission_blame(&run->base, NULL, &c->head, status));
    stream_run_done(run);
}

static const transfer_ops_t files_ops = {files_stage, files_copy, files_begin, files_done};

void stream_host_begin(stream_run_t *run, keel_command_t *command)
{
    command->began = traced_host_start();
    if (command->kind == KEEL_CMD_READ) {
        transfer_read(&run->transfers, &files_ops, stream_run_device(run)->aio,
                      (keel_cmd_transfer_t *)(void *)command);
        return;
    }
    keel_status_t status = call_begin(run, (keel_cmd_call_t *)(void *)command);
    if (!status) return;
    stream_run_fail(run, submission_blame(&run->base, NULL, command, status));
    stream_run_done(run);
}

keel_status_t stream_host_write(stream_run_t *run, keel_command_t *command)
{
    command->began = traced_host_start();
    return transfer_write(&run->transfers, &files_ops, stream_run_device(run)->aio,
                          (keel_cmd_transfer_t *)(void *)command);
}
