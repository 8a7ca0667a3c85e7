// SPDX-License-Identifier: Apache-2.0
// Recordings on their way through a stream.
#include "drivers/stream/graph/graph.h"

enum {
    LONG = 1 << 17, // commands; what is that long is made into graphs by `prepare` alone
    // What a stream cannot do by its order alone.
    GRAPH_KINDS = 1u << KEEL_CMD_IF | 1u << KEEL_CMD_WHILE | 1u << KEEL_CMD_SWITCH,
};

// A graph is worth its making if it is used again, and has fewer than `most` commands; some things
// a stream cannot do without the host.
static bool wants_graph(const stream_device_t *device, const keel_recording_t *recording,
                        uint32_t most)
{
    // acquire: pairs with the store of the thread that made graphs of it, which decided.
    void *prepared = atomic_load_explicit(&recording->prepared, memory_order_acquire);
    if (__builtin_expect(prepared != NULL, 1)) return true;
    if (!recording->commands->count || device->options.serial) return false;
    if (!stream_device_has(device, STREAM_GRAPHS) || stream_recording_peeks(device, recording))
        return false;
    if (recording->commands->kinds & GRAPH_KINDS ||
        stream_commands_have_foreign(recording->commands))
        return true;
    if (device->options.commands != STREAM_COMMANDS_CHOSEN)
        return device->options.commands == STREAM_COMMANDS_GRAPH;
    return !recording->options.one_shot && recording->commands->count < most;
}

// Issues one command, or reads the value of a branch; then goes on to the next command.
static keel_status_t command_step(stream_run_t *run, const keel_cmd_execute_t *c,
                                  stream_step_t *step)
{
    const keel_cmd_block_t *branch = (const keel_cmd_block_t *)(const void *)run->inner;
    bool reads = command_has_value(run->inner->kind);
    KEEL_TRY(reads ? stream_peek(run, c, &branch->value, step)
                   : stream_issue(run, c, run->inner, step));
    if (*step != STREAM_STEP_DONE) return NULL;
    return command_jump(c->recording->commands, reads ? run->peek->words[0] : 0,
                        reads ? run->peek->loops : NULL, &run->inner);
}

// One operation in a trace, whatever is in it.
KEEL_COLD __attribute__((noinline)) static keel_status_t
graph_traced(stream_run_t *run, const keel_cmd_execute_t *c, stream_step_t *step)
{
    stream_stamp_begin(run);
    keel_status_t status = stream_graph_run(run, c, step);
    if (!status && *step == STREAM_STEP_DONE) stream_stamp_end(run, NULL, &c->head);
    return status;
}

KEEL_HOT keel_status_t stream_execute(stream_run_t *run, const keel_cmd_execute_t *c,
                                      stream_step_t *step)
{
    stream_device_t *device = stream_run_device(run);
    if (__builtin_expect(!run->inner && wants_graph(device, c->recording, LONG), 1)) {
        if (__builtin_expect(stream_run_is_traced(run), 0)) return graph_traced(run, c, step);
        return stream_graph_run(run, c, step);
    }
    const keel_commands_t *commands = c->recording->commands;
    const keel_command_t *end = keel_commands_end(commands);
    if (!run->inner) run->inner = keel_commands_first(commands);
    while (run->inner != end) {
        if (stream_queue_is_full(stream_run_queue(run))) *step = STREAM_STEP_AGAIN;
        if (*step != STREAM_STEP_DONE) return NULL;
        keel_status_t status = command_step(run, c, step);
        if (status) return submission_blame(&run->base, c, run->inner, status);
        if (*step == STREAM_STEP_PARKED) return NULL; // the run is not ours any more
    }
    run->inner = NULL;
    run->peek = NULL; // the next recording counts its own rounds
    return NULL;
}

keel_status_t stream_recording_prepare(keel_recording_t *recording, keel_queue_t *queue)
{
    stream_device_t *device = stream_device(queue->device);
    if (!wants_graph(device, recording, UINT32_MAX)) return NULL;
    return stream_graph_prepare(recording, stream_queue(queue));
}
