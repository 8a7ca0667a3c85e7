// SPDX-License-Identifier: Apache-2.0
// Recordings with `serial`: command by command, each waited for, so that what fails is the one that
// was issued last. The host looks at the values and takes the jumps itself: within a graph nobody
// could tell one command from the next.
#include "drivers/stream/stream.h"

static keel_status_t value_read(stream_run_t *run, const keel_cmd_execute_t *execute,
                                const keel_command_t *branch, uint64_t to)
{
    stream_queue_t *queue = stream_queue(run->base.queue);
    stream_device_t *device = stream_device(queue->base.device);
    binder_t binder = {.table = execute->bindings};
    bound_t span;
    const keel_cmd_branch_t *c = (const keel_cmd_branch_t *)(const void *)branch;
    KEEL_TRY(bind_ref(&binder, &c->value, &span));
    bound_copy_t copy = {to, span.address, sizeof(uint32_t)};
    keel_status_t status = device->api->copy(device->vendor, stream_queue_onto(queue), &copy);
    if (!status) status = device->api->stream_drain(device->vendor, queue->stream);
    return stream_device_note(device, status);
}

keel_status_t stream_execute_serially(stream_run_t *run, const keel_cmd_execute_t *c)
{
    const keel_commands_t *commands = c->recording->commands;
    const keel_command_t *at = keel_commands_first(commands);
    uint32_t loops[STREAM_MAX_DEPTH] = {0};
    uint64_t address;
    void *value; // in staging, where the device writes to `address`
    KEEL_TRY(stream_stage(run, sizeof(uint32_t), &value, &address));
    run->issued = true; // staging comes back by the event at the end
    while (at != keel_commands_end(commands)) {
        keel_status_t status = command_has_value(at->kind) ? value_read(run, c, at, address)
                                                           : stream_issue(run, c, at);
        if (!status) status = command_jump(commands, *(const uint32_t *)value, loops, &at);
        if (status) return submission_blame(&run->base, c, at, status);
    }
    return NULL;
}
