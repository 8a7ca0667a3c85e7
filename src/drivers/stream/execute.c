// SPDX-License-Identifier: Apache-2.0
// Recordings on their way through a stream.
#include "drivers/stream/graph.h"

enum {
    LONG = 1 << 17, // commands; what is that long is made into graphs by `prepare` alone
    // What a stream cannot do by its order alone.
    GRAPH_KINDS = 1u << KEEL_CMD_IF | 1u << KEEL_CMD_WHILE | 1u << KEEL_CMD_SWITCH,
};

// A graph is worth its making if it is used again, and has fewer than `most` commands; some things
// only a graph can do.
static bool wants_graph(const stream_device_t *device, const keel_recording_t *recording,
                        uint32_t most)
{
    // acquire: pairs with whoever made it into graphs, which decided.
    void *prepared = atomic_load_explicit(&recording->prepared, memory_order_acquire);
    if (__builtin_expect(prepared != NULL, 1)) return true;
    if (!recording->commands->count || device->options.serial) return false;
    if (recording->commands->kinds & GRAPH_KINDS || stream_graph_is_needed(recording)) return true;
    if (device->options.commands != STREAM_COMMANDS_CHOSEN)
        return device->options.commands == STREAM_COMMANDS_GRAPH;
    return !recording->options.one_shot && recording->commands->count < most;
}

static keel_status_t value_read(stream_run_t *run, const keel_cmd_execute_t *execute,
                                const keel_command_t *branch, uint64_t to)
{
    stream_queue_t *queue = stream_queue(run->base.queue);
    stream_device_t *device = stream_device(queue->base.device);
    binder_t binder = {.table = execute->bindings};
    bound_t span;
    const keel_cmd_block_t *c = (const keel_cmd_block_t *)(const void *)branch;
    KEEL_TRY(bind_ref(&binder, &c->value, &span));
    bound_copy_t copy = {to, span.address, sizeof(uint32_t)};
    keel_status_t status = device->api->copy(device->vendor, stream_queue_onto(queue), &copy);
    if (!status) status = device->api->stream_drain(device->vendor, queue->stream);
    return stream_device_note(device, status);
}

// With `serial`: command by command, each waited for, so that what fails is the one that was issued
// last. The host looks at the values and takes the ways through blocks itself: within a graph no
// command could be told from the next.
static keel_status_t execute_serially(stream_run_t *run, const keel_cmd_execute_t *c)
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

KEEL_HOT keel_status_t stream_execute(stream_run_t *run, const keel_cmd_execute_t *c, bool *more)
{
    stream_device_t *device = stream_device(run->base.queue->device);
    if (__builtin_expect(!run->inner && wants_graph(device, c->recording, LONG), 1))
        return stream_graph_run(run, c, more);
    if (device->options.serial) return execute_serially(run, c);
    const keel_commands_t *commands = c->recording->commands;
    const keel_command_t *end = keel_commands_end(commands);
    if (!run->inner) run->inner = keel_commands_first(commands);
    for (; run->inner != end; run->inner = keel_command_next(run->inner)) {
        *more = stream_queue_is_full(stream_queue(run->base.queue));
        if (*more) return NULL;
        keel_status_t status = stream_issue(run, c, run->inner);
        if (status) return submission_blame(&run->base, c, run->inner, status);
    }
    run->inner = NULL;
    return NULL;
}

keel_status_t stream_recording_prepare(keel_recording_t *recording, keel_queue_t *queue)
{
    stream_device_t *device = stream_device(queue->device);
    if (!wants_graph(device, recording, UINT32_MAX)) return NULL;
    return stream_graph_prepare(recording, stream_queue(queue));
}
