// SPDX-License-Identifier: Apache-2.0
// Words that the host reads from the device's memory in the middle of a run, where the device
// cannot act on them by itself: the value of a branch, or the grid of a kernel made elsewhere.
//
// The run copies the words into staging, parks behind the copy, and comes back to the same command
// when the copy has ended. No thread waits meanwhile, and other submissions of the queue go on.
// Words that came with the execution the host has already.
#include <string.h>

#include "base/status.h"
#include "drivers/stream/run/run.h"

bool stream_command_peeks(const stream_device_t *device, const keel_command_t *command)
{
    if (command_has_value(command->kind)) return !stream_device_has(device, STREAM_CONDITIONS);
    return stream_dispatch_is_foreign(command) && !stream_device_has(device, STREAM_UPDATABLE);
}

bool stream_recording_peeks(const stream_device_t *device, const keel_recording_t *recording)
{
    // acquire: pairs with the store of the thread that made graphs of it.
    bool graph = atomic_load_explicit(&recording->prepared, memory_order_acquire);
    if (!device->peeks || graph) return false;
    KEEL_EACH_COMMAND (c, recording->commands)
        if (stream_command_peeks(device, c)) return true;
    return false;
}

bool stream_submission_peeks(const stream_device_t *device, const keel_submission_t *submission)
{
    KEEL_EACH_COMMAND (c, &submission->commands) {
        const keel_cmd_execute_t *execute = (const keel_cmd_execute_t *)(const void *)c;
        if (c->kind == KEEL_CMD_EXECUTE ? stream_recording_peeks(device, execute->recording)
                                        : stream_command_peeks(device, c))
            return true;
    }
    return false;
}

static keel_status_t peek_make(stream_run_t *run)
{
    void *data;
    uint64_t address;
    if (run->peek) return NULL;
    KEEL_TRY(stream_stage(run, sizeof *run->peek, &data, &address));
    run->peek = data;
    *run->peek = (stream_peek_t){.address = address + offsetof(stream_peek_t, words)};
    return NULL;
}

static keel_status_t peek_copy(stream_run_t *run, const keel_cmd_execute_t *execute,
                               const keel_ref_t *ref)
{
    stream_device_t *device = stream_run_device(run);
    const stream_context_t context = {.device = device, .binder = binder_of(execute)};
    bound_t span;
    KEEL_TRY(bind_ref(&context.binder, ref, &span));
    bound_copy_t copy = {run->peek->address, span.address, span.length};
    stream_run_follow(run, STREAM_TAIL_OWN);
    return stream_device_note(device,
                              stream_copy(run, &copy, stream_copy_is_ours(&context, ref, NULL)));
}

keel_status_t stream_peek(stream_run_t *run, const keel_cmd_execute_t *execute,
                          const keel_ref_t *ref, stream_step_t *step)
{
    *step = STREAM_STEP_DONE;
    KEEL_TRY(peek_make(run));
    if (keel_ref_is_parameter(ref)) {
        uint32_t words[3];
        memcpy(words, keel_execute_parameters(execute) + ref->offset, ref->length);
        for (uint64_t i = 0; i < ref->length / 4; i++) run->peek->words[i] = words[i];
        return NULL;
    }
    if (run->peek->copied) {
        run->peek->copied = false;
        return NULL;
    }
    KEEL_TRY(peek_copy(run, execute, ref));
    run->peek->copied = true;
    *step = STREAM_STEP_PARKED;
    stream_run_park(run);
    return NULL;
}
