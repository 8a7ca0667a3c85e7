// SPDX-License-Identifier: Apache-2.0
// Recordings with `serial`: command by command, each waited for, so that what fails is the one that
// was issued last. The host looks at the values and takes the jumps itself: within a graph nobody
// could tell one command from the next.
#include "base/status.h"
#include "drivers/stream/stream.h"

typedef struct walk_t {
    stream_run_t *run;
    const keel_cmd_execute_t *execute;
    const keel_commands_t *commands;
    const uint32_t *value; // in staging, where the device writes to `address`
    uint64_t address;
    uint32_t loops[STREAM_MAX_DEPTH]; // rounds so far
} walk_t;

static keel_status_t value_read(const walk_t *walk, const keel_cmd_branch_t *c)
{
    const stream_queue_t *queue = stream_queue(walk->run->base.queue);
    stream_device_t *device = stream_device(queue->base.device);
    stream_context_t context = {.device = device, .table = walk->execute->bindings};
    stream_span_t span;
    KEEL_TRY(stream_ref_resolve(&context, &c->value, &span));
    stream_copy_t copy = {walk->address, span.address, sizeof *walk->value};
    keel_status_t status = device->api->copy(device->vendor, queue->stream, &copy);
    if (!status) status = device->api->stream_drain(device->vendor, queue->stream);
    return stream_device_note(device, status);
}

static keel_status_t while_count(walk_t *walk, const keel_cmd_branch_t *c)
{
    if (!*walk->value) {
        walk->loops[c->depth] = 0;
        return NULL;
    }
    if (!c->max_iterations || walk->loops[c->depth]++ < c->max_iterations) return NULL;
    return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED,
                      "the loop has run %u times, which is its max_iterations", c->max_iterations);
}

static const keel_command_t *case_find(const walk_t *walk, const keel_command_t *next)
{
    while (next->kind == KEEL_CMD_CASE) {
        const keel_cmd_branch_t *one = (const keel_cmd_branch_t *)(const void *)next;
        if (one->match == *walk->value) return keel_command_next(next);
        next = keel_commands_at(walk->commands, one->target);
    }
    return next;
}

// Does one command. *at: the one after it.
static keel_status_t walk_step(walk_t *walk, const keel_command_t **at)
{
    const keel_command_t *command = *at, *next = keel_command_next(command);
    const keel_cmd_branch_t *c = (const keel_cmd_branch_t *)(const void *)command;
    switch ((keel_cmd_t)command->kind) {
    case KEEL_CMD_JUMP: next = keel_commands_at(walk->commands, c->target); break;
    case KEEL_CMD_SWITCH:
        KEEL_TRY(value_read(walk, c));
        next = case_find(walk, next);
        break;
    case KEEL_CMD_WHILE:
    case KEEL_CMD_IF:
        KEEL_TRY(value_read(walk, c));
        if (command->kind == KEEL_CMD_WHILE) KEEL_TRY(while_count(walk, c));
        if (!*walk->value) next = keel_commands_at(walk->commands, c->target);
        break;
    default: KEEL_TRY(stream_issue(walk->run, walk->execute, command));
    }
    *at = next;
    return NULL;
}

keel_status_t stream_execute_serially(stream_run_t *run, const keel_cmd_execute_t *c)
{
    walk_t walk = {.run = run, .execute = c, .commands = c->recording->commands};
    const keel_command_t *at = keel_commands_first(walk.commands);
    void *value;
    KEEL_TRY(stream_stage(run, sizeof *walk.value, &value, &walk.address));
    walk.value = value;
    run->issued = true; // staging comes back by the event at the end
    while (at != keel_commands_end(walk.commands)) {
        keel_status_t status = walk_step(&walk, &at);
        if (status) return stream_run_blame(run, c, at, status);
    }
    return NULL;
}
