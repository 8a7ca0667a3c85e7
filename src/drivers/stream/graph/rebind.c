// SPDX-License-Identifier: Apache-2.0
// Launches that the device gives their arguments. If the host changes many nodes, one call each,
// that takes as long as the run itself. Here the host writes down what is new, and one kernel in
// front of the run gives it to all of them. A graph that allows this costs more to make, to launch
// and to destroy: docs/hardware.md, "Changing many arguments".
#include <string.h>

#include "base/status.h"
#include "drivers/stream/graph/graph.h"

enum {
    MOST = 8192,     // dispatches that change
    LARGE = 1 << 20, // bytes that a node of the vendor's copies faster than a kernel
};

bool graph_rebind_pays(const stream_device_t *device, const keel_commands_t *commands)
{
    uint32_t count = 0, least = device->limits.quirks.rebind_least;
    if (!stream_device_has(device, STREAM_UPDATABLE) || !least) return false;
    KEEL_EACH_COMMAND (c, commands) {
        command_reach_t reach = command_reach(c);
        bool dispatch = c->kind == KEEL_CMD_DISPATCH;
        if (reach.moves && !dispatch && reach.length > LARGE) return false;
        count += reach.moves && dispatch;
    }
    return count >= least && count <= MOST;
}

// What the kernel takes of them: it cannot be given more, as a launch can.
static uint32_t arguments_size(const graph_node_t *node, const stream_launch_t *launch)
{
    const keel_cmd_dispatch_t *c = (const keel_cmd_dispatch_t *)(const void *)node->command;
    bool raw = node->role == GRAPH_COMMAND && c->head.kind == KEEL_CMD_DISPATCH && c->raw;
    uint32_t most = raw ? ((const stream_kernel_t *)c->kernel)->arguments : launch->size;
    return most < launch->size ? most : launch->size;
}

static uint32_t arguments_space(uint32_t size)
{
    return (size + 7) & ~7u;
}

keel_status_t graph_rebind_offer(graph_instance_t *instance, graph_node_t *node,
                                 const graph_work_t *work)
{
    const stream_device_t *device = instance->device;
    // Of other commands the length is what their grid depends on.
    bool constant = node->command->kind == KEEL_CMD_DISPATCH ||
                    command_reach(node->command).length != KEEL_WHOLE;
    if (!instance->updatable || !node->changes || !node->node || !constant) return NULL;
    keel_status_t status = device->api->graph_updatable(device->vendor, node->node, &node->handle);
    // A launch to which the device gives its grid is not the host's to change.
    bool needed = node->role == GRAPH_COMMAND && stream_dispatch_is_foreign(node->command);
    if (status && (needed || keel_status_code(status) == KEEL_DEVICE_LOST)) return status;
    keel_status_release(status);
    if (!node->handle) return NULL;
    instance->fresh = true;
    instance->rebound++;
    instance->arguments += arguments_space(arguments_size(node, &work->launch));
    return NULL;
}

keel_status_t graph_rebind_begin(stream_run_t *run, const graph_instance_t *instance,
                                 graph_rebinder_t *rebinder)
{
    void *data = NULL;
    uint64_t size = instance->rebound * sizeof *rebinder->table;
    *rebinder = (graph_rebinder_t){.end = size};
    if (!size) return NULL;
    KEEL_TRY(stream_stage(run, size + instance->arguments, &data, &rebinder->address));
    stream_run_follow(run, STREAM_TAIL_OWN); // staging comes back by the event at the end
    rebinder->table = data;
    return NULL;
}

void graph_rebind_add(graph_rebinder_t *rebinder, const graph_node_t *node,
                      const stream_launch_t *launch)
{
    uint32_t size = arguments_size(node, launch);
    rebinder->table[rebinder->count++] =
        (stream_rebind_t){node->handle, rebinder->address + rebinder->end, size};
    memcpy((char *)rebinder->table + rebinder->end, launch->arguments, size);
    rebinder->end += arguments_space(size);
}

keel_status_t graph_rebind_end(stream_run_t *run, graph_instance_t *instance,
                               const graph_rebinder_t *rebinder)
{
    const stream_device_t *device = instance->device;
    stream_queue_t *queue = stream_run_queue(run);
    stream_rebind_args_t arguments = {rebinder->address, rebinder->count};
    stream_launch_t launch;
    if (!rebinder->count) return NULL;
    for (uint32_t i = 0; instance->fresh && i < instance->piece_count; i++)
        KEEL_TRY(device->api->exec_upload(device->vendor, instance->pieces[i].exec,
                                          stream_queue_onto(queue)));
    instance->fresh = false; // not between the changes and the run
    stream_builtin_launch(device, STREAM_REBIND, &arguments, sizeof arguments, &launch);
    launch.groups[0] = (rebinder->count + STREAM_REBIND_GROUP - 1) / STREAM_REBIND_GROUP;
    launch.group_size[0] = STREAM_REBIND_GROUP;
    // No graph takes the place of this launch: none can be changed to a kernel that changes graphs.
    return device->api->launch(device->vendor, stream_queue_onto(queue), &launch);
}
