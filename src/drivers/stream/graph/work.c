// SPDX-License-Identifier: Apache-2.0
// What each node of a graph does: for making it, and for changing it.
#include "drivers/stream/graph/graph.h"

static void work_builtin(const graph_instance_t *instance, graph_work_t *work,
                         stream_builtin_t builtin, uint32_t size)
{
    work->kind = GRAPH_LAUNCH;
    stream_builtin_launch(instance->device, builtin, &work->own, size, &work->launch);
}

static keel_status_t counts_make(const graph_instance_t *instance, const stream_context_t *context,
                                 const graph_node_t *node, builtin_counts_t *arguments)
{
    KEEL_TRY(stream_counts_make(context, (const keel_cmd_dispatch_t *)(const void *)node->command,
                                arguments));
    arguments->failed = instance->memory + GRAPH_REPORT;
    arguments->number = stream_command_place(instance->recording->commands, node->command);
    return NULL;
}

static keel_status_t branch_make(const graph_instance_t *instance, const stream_context_t *context,
                                 const graph_node_t *node, graph_work_t *work)
{
    const keel_cmd_block_t *c = (const keel_cmd_block_t *)(const void *)node->command;
    const graph_branch_t *branch = &node->extra.branch;
    bound_t span;
    KEEL_TRY(bind_value(&context->binder, &c->value, &span));
    work->own.branch = (stream_branch_args_t){
        .value = span.address,
        .condition = branch->condition,
        .failed = instance->memory + GRAPH_REPORT,
        .match = branch->match,
        .differs = branch->differs,
        .number = stream_command_place(instance->recording->commands, node->command),
    };
    if (branch->loop && c->max_iterations) {
        work->own.branch.rounds = instance->memory + GRAPH_ROUNDS + c->depth * sizeof(uint32_t);
        work->own.branch.most = c->max_iterations;
        work->own.branch.first = branch->first;
    }
    work_builtin(instance, work, STREAM_BRANCH, sizeof work->own.branch);
    return NULL;
}

static keel_status_t dispatch_make(const stream_context_t *context, const keel_cmd_dispatch_t *c,
                                   graph_work_t *work)
{
    KEEL_TRY(stream_dispatch_launch(context, c, &work->arguments, &work->launch));
    work->kind = GRAPH_LAUNCH;
    if (stream_dispatch_is_foreign(&c->head)) { // until the device says otherwise
        work->launch.groups[0] = work->launch.groups[1] = work->launch.groups[2] = 1;
        return NULL;
    }
    bool none = !c->groups[0] || !c->groups[1] || !c->groups[2];
    if (none && c->counts_kind == KEEL_COUNTS_DIRECT) work->kind = GRAPH_NOTHING;
    return NULL;
}

// A graph with launches that the device changes is dear, and not made anew: nothing in it may be
// refused.
static bool is_stubborn(const graph_instance_t *instance, const graph_node_t *node)
{
    return (instance->updatable && node->changes) ||
           instance->refusals[node->number - 1] >= GRAPH_STUBBORN;
}

// The length that its grid is made for. A guessed one may be shorter than what comes, and the
// device gives a kernel new arguments, but no new grid.
static uint64_t length_of(const stream_context_t *context, const graph_node_t *node, uint64_t bound)
{
    uint64_t length = context->binder.anywhere ? command_reach(node->command).length : KEEL_WHOLE;
    return length == KEEL_WHOLE ? bound : length;
}

static keel_status_t fill_make(const graph_instance_t *instance, const stream_context_t *context,
                               const graph_node_t *node, graph_work_t *work)
{
    const keel_cmd_fill_t *c = (const keel_cmd_fill_t *)(const void *)node->command;
    bool plain;
    KEEL_TRY(bind_fill(&context->binder, c, &work->fill, &plain));
    plain = plain && !instance->device->limits.quirks.graph_kernels &&
            stream_fill_is_right(instance->device, &work->fill) &&
            !stream_ref_is_parted(&context->binder, &c->target);
    work->kind = work->fill.count ? GRAPH_FILL : GRAPH_NOTHING;
    if ((plain || !work->fill.count) && !is_stubborn(instance, node)) return NULL;
    work->fill.count =
        length_of(context, node, work->fill.count * work->fill.size) / work->fill.size;
    stream_fill_launch(instance->device, &work->fill, &work->own.fill, &work->launch);
    work->kind = GRAPH_LAUNCH;
    return NULL;
}

static keel_status_t copy_make(const graph_instance_t *instance, const stream_context_t *context,
                               const graph_node_t *node, graph_work_t *work)
{
    const keel_cmd_copy_t *c = (const keel_cmd_copy_t *)(const void *)node->command;
    const keel_cmd_update_t *update = (const keel_cmd_update_t *)(const void *)node->command;
    bool plain;
    if (node->command->kind == KEEL_CMD_COPY) {
        KEEL_TRY(bind_copy(&context->binder, c, &work->copy));
        plain = !stream_ref_is_parted(&context->binder, &c->source) &&
                !stream_ref_is_parted(&context->binder, &c->target);
    } else {
        bound_t span;
        KEEL_TRY(bind_ref(&context->binder, &update->target, &span));
        work->copy = (bound_copy_t){span.address, node->extra.staging, span.length};
        plain = !stream_ref_is_parted(&context->binder, &update->target);
    }
    work->kind = work->copy.size ? GRAPH_COPY : GRAPH_NOTHING;
    plain = plain && !instance->device->limits.quirks.graph_kernels;
    if ((plain || !work->copy.size) && !is_stubborn(instance, node)) return NULL;
    work->copy.size = length_of(context, node, work->copy.size);
    stream_copy_launch(instance->device, &work->copy, &work->own.copy, &work->launch);
    work->kind = GRAPH_LAUNCH;
    return NULL;
}

static keel_status_t command_make(const graph_instance_t *instance, const stream_context_t *context,
                                  const graph_node_t *node, graph_work_t *work)
{
    const void *c = node->command;
    bound_t span;
    switch ((keel_cmd_t)node->command->kind) {
    case KEEL_CMD_DISPATCH: return dispatch_make(context, c, work);
    case KEEL_CMD_FILL: return fill_make(instance, context, node, work);
    case KEEL_CMD_COPY:
    case KEEL_CMD_UPDATE: return copy_make(instance, context, node, work);
    case KEEL_CMD_TIMESTAMP:
        KEEL_TRY(bind_ref(&context->binder, &((const keel_cmd_timestamp_t *)c)->target, &span));
        work->own.timestamp = stream_timestamp_make(instance->device, span.address);
        work_builtin(instance, work, STREAM_TIMESTAMP, sizeof work->own.timestamp);
        return NULL;
    default: return NULL;
    }
}

keel_status_t graph_work_make(const graph_instance_t *instance, const stream_context_t *context,
                              const graph_node_t *node, graph_work_t *work)
{
    work->kind = GRAPH_NOTHING;
    work->arguments.large = NULL;
    switch ((graph_role_t)node->role) {
    case GRAPH_COMMAND: return command_make(instance, context, node, work);
    case GRAPH_COUNTS:
        KEEL_TRY(counts_make(instance, context, node, &work->own.counts));
        work_builtin(instance, work, STREAM_COUNTS, sizeof work->own.counts);
        return NULL;
    case GRAPH_GRID:
        KEEL_TRY(counts_make(instance, context, node, &work->own.grid.counts));
        work->own.grid.node = node->extra.updatable;
        work_builtin(instance, work, STREAM_GRID, sizeof work->own.grid);
        return NULL;
    case GRAPH_BRANCH: return branch_make(instance, context, node, work);
    }
    return NULL;
}

keel_status_t graph_work_add(const graph_instance_t *instance, const stream_place_t *place,
                             const graph_work_t *work, stream_node_h *node)
{
    const stream_api_t *api = instance->device->api;
    stream_vendor_t *vendor = instance->device->vendor;
    switch (work->kind) {
    case GRAPH_LAUNCH: return api->graph_launch(vendor, place, &work->launch, node);
    case GRAPH_COPY: return api->graph_copy(vendor, place, &work->copy, node);
    case GRAPH_FILL: return api->graph_fill(vendor, place, &work->fill, node);
    case GRAPH_NOTHING: break;
    }
    *node = NULL;
    return NULL;
}

keel_status_t graph_work_set(const graph_instance_t *instance, const graph_node_t *node,
                             const graph_work_t *work)
{
    const stream_api_t *api = instance->device->api;
    stream_vendor_t *vendor = instance->device->vendor;
    stream_exec_h exec = instance->pieces[node->piece].exec;
    switch (work->kind) {
    case GRAPH_LAUNCH: return api->exec_set_launch(vendor, exec, node->node, &work->launch);
    case GRAPH_COPY: return api->exec_set_copy(vendor, exec, node->node, &work->copy);
    case GRAPH_FILL: return api->exec_set_fill(vendor, exec, node->node, &work->fill);
    case GRAPH_NOTHING: break;
    }
    return NULL;
}
