// SPDX-License-Identifier: Apache-2.0
// Commands as the vendor takes them: addresses resolved, blocks of parameters filled in. Used to
// issue them to a stream, and to make and change the nodes of graphs.
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "drivers/stream/stream.h"

// The form of a kernel that walks over its grid: one that is in memory, or larger than a launch.
static keel_status_t launch_walk(const stream_context_t *context, const keel_cmd_dispatch_t *c,
                                 unsigned char *bytes, stream_launch_t *launch)
{
    const stream_limits_t *limits = &context->device->limits;
    uint64_t items = (uint64_t)c->group_size[0] * c->group_size[1] * c->group_size[2];
    uint64_t at_once = limits->processors * (items <= 64 ? 32 : items < 2048 ? 2048 / items : 1);
    uint64_t total = (uint64_t)c->groups[0] * c->groups[1] * c->groups[2];
    if (c->counts_kind == KEEL_COUNTS_DIRECT && total < at_once) at_once = total;
    launch->function = ((const stream_kernel_t *)c->kernel)->walk;
    launch->groups[0] = (uint32_t)at_once;
    launch->groups[1] = launch->groups[2] = 1;
    return bind_walk(&context->binder, c, bytes, &launch->size);
}

keel_status_t stream_grid_refuse(const stream_device_t *device, const keel_cmd_dispatch_t *c,
                                 const uint32_t groups[3])
{
    const uint32_t *most = device->limits.max_group_counts;
    unsigned long long all = device->base.caps.max_groups;
    if (stream_dispatch_walks(c))
        return KEEL_ERROR(KEEL_OUT_OF_RANGE,
                          "the grid is %u x %u x %u; at most %llu groups are run", groups[0],
                          groups[1], groups[2], all);
    return KEEL_ERROR(KEEL_OUT_OF_RANGE,
                      "the grid is %u x %u x %u; a kernel made elsewhere takes at most "
                      "%u x %u x %u, and %llu groups in all",
                      groups[0], groups[1], groups[2], most[0], most[1], most[2], all);
}

keel_status_t stream_dispatch_launch(const stream_context_t *context, const keel_cmd_dispatch_t *c,
                                     stream_arguments_t *arguments, stream_launch_t *launch)
{
    const stream_kernel_t *kernel = c->kernel;
    unsigned char *bytes = arguments->bytes;
    arguments->large = NULL;
    *launch = (stream_launch_t){
        .function = kernel->function,
        .groups = {c->groups[0], c->groups[1], c->groups[2]},
        .group_size = {c->group_size[0], c->group_size[1], c->group_size[2]},
        .local_memory = c->local_memory - kernel->local_memory,
        .arguments = bytes,
    };
    if (kernel->abi == KEEL_ABI_RAW || c->raw) {
        launch->size = c->constant_size;
        if (launch->size > sizeof arguments->bytes)
            launch->arguments = bytes = arguments->large = mem_alloc(launch->size);
        return bytes ? bind_raw(&context->binder, c, bytes) : status_no_memory();
    }
    const uint32_t *most = context->device->limits.max_group_counts;
    if (c->counts_kind != KEEL_COUNTS_DIRECT || c->groups[0] > most[0] || c->groups[1] > most[1] ||
        c->groups[2] > most[2])
        return launch_walk(context, c, bytes, launch);
    return bind_block(&context->binder, c, bytes, &launch->size);
}

void stream_builtin_launch(const stream_device_t *device, stream_builtin_t builtin,
                           const void *arguments, uint32_t size, stream_launch_t *launch)
{
    *launch = (stream_launch_t){
        .function = device->builtins.functions[builtin],
        .groups = {1, 1, 1},
        .group_size = {1, 1, 1},
        .arguments = arguments,
        .size = size,
    };
}

keel_status_t stream_counts_make(const stream_context_t *context, const keel_cmd_dispatch_t *c,
                                 builtin_counts_t *arguments)
{
    const stream_limits_t *limits = &context->device->limits;
    bool walks = stream_dispatch_walks(c);
    bound_t counts;
    KEEL_TRY(bind_ref(&context->binder, &c->counts, &counts));
    *arguments = (builtin_counts_t){
        .counts = counts.address,
        .most = context->device->base.caps.max_groups,
        .most_x = walks ? UINT32_MAX : limits->max_group_counts[0],
        .most_y = walks ? UINT32_MAX : limits->max_group_counts[1],
        .most_z = walks ? UINT32_MAX : limits->max_group_counts[2],
    };
    return NULL;
}

// Launches so many groups as `length` bytes need. Returns what a thread does at a time: 16 bytes if
// all `bits` allow that.
static uint32_t launch_spread(const stream_device_t *device, uint64_t length, uint64_t bits,
                              stream_launch_t *launch)
{
    uint64_t groups = (length + BUILTIN_GROUP * 16 - 1) / (BUILTIN_GROUP * 16),
             most = device->limits.processors * 8;
    // All that is small has one form, which comes again (launch.c), and each thread little to do.
    uint64_t small = device->limits.quirks.small_transfer;
    if (length <= small) groups = most = small / (BUILTIN_GROUP * 16);
    launch->groups[0] = (uint32_t)(groups < most ? groups : most);
    launch->group_size[0] = BUILTIN_GROUP;
    return (length | bits) % 16 ? 1 : 16;
}

void stream_fill_launch(const stream_device_t *device, const bound_fill_t *fill,
                        builtin_fill_t *arguments, stream_launch_t *launch)
{
    uint64_t length = fill->count * fill->size;
    stream_builtin_launch(device, STREAM_FILL, arguments, sizeof *arguments, launch);
    uint32_t unit = launch_spread(device, length, fill->target, launch);
    *arguments = (builtin_fill_t){
        .target = fill->target,
        .length = length,
        .pattern = fill->pattern,
        .threads = launch->groups[0] * launch->group_size[0],
        .unit = unit,
    };
}

void stream_copy_launch(const stream_device_t *device, const bound_copy_t *copy,
                        builtin_copy_t *arguments, stream_launch_t *launch)
{
    stream_builtin_launch(device, STREAM_COPY, arguments, sizeof *arguments, launch);
    uint32_t unit = launch_spread(device, copy->size, copy->target | copy->source, launch);
    *arguments = (builtin_copy_t){
        .target = copy->target,
        .source = copy->source,
        .length = copy->size,
        .threads = launch->groups[0] * launch->group_size[0],
        .unit = unit,
    };
}

static keel_status_t issue_builtin(stream_run_t *run, stream_builtin_t builtin,
                                   const void *arguments, uint32_t size)
{
    stream_launch_t launch;
    stream_builtin_launch(stream_device(run->base.queue->device), builtin, arguments, size,
                          &launch);
    return stream_launch(stream_queue(run->base.queue), &launch);
}

// Whether the device runs such a grid of a kernel made elsewhere.
static bool grid_fits(const stream_device_t *device, const uint32_t groups[3])
{
    const uint32_t *most = device->limits.max_group_counts;
    uint64_t plane = (uint64_t)groups[0] * groups[1];
    bool few = !groups[2] || plane <= device->base.caps.max_groups / groups[2];
    return groups[0] <= most[0] && groups[1] <= most[1] && groups[2] <= most[2] && few;
}

// The host reads the grid, and launches with that.
static keel_status_t issue_peeked(stream_run_t *run, const keel_cmd_execute_t *execute,
                                  const keel_cmd_dispatch_t *c, stream_launch_t *launch,
                                  stream_step_t *step)
{
    const stream_device_t *device = stream_device(run->base.queue->device);
    KEEL_TRY(stream_peek(run, execute, &c->counts, step));
    if (*step != STREAM_STEP_DONE) return NULL;
    for (int i = 0; i < 3; i++) launch->groups[i] = run->peek->words[i];
    if (!grid_fits(device, launch->groups)) return stream_grid_refuse(device, c, launch->groups);
    if (!launch->groups[0] || !launch->groups[1] || !launch->groups[2]) return NULL;
    return stream_launch(stream_queue(run->base.queue), launch);
}

static keel_status_t issue_launch(stream_run_t *run, const keel_cmd_execute_t *execute,
                                  const stream_context_t *context, const keel_cmd_dispatch_t *c,
                                  stream_launch_t *launch, stream_step_t *step)
{
    if (stream_command_peeks(context->device, &c->head))
        return issue_peeked(run, execute, c, launch, step);
    if (c->counts_kind != KEEL_COUNTS_DIRECT) {
        builtin_counts_t counts;
        KEEL_TRY(stream_counts_make(context, c, &counts));
        KEEL_TRY(stream_run_report(run, execute, &counts.failed));
        counts.number = stream_command_place(
            execute ? execute->recording->commands : &run->base.commands, &c->head);
        if (!stream_dispatch_walks(c)) {
            KEEL_TRY(stream_once_run(run, launch, &counts));
            if (!stream_queue(run->base.queue)->most) *step = STREAM_STEP_AGAIN; // it is put off
            return NULL;
        }
        KEEL_TRY(issue_builtin(run, STREAM_COUNTS, &counts, sizeof counts));
    }
    return stream_launch(stream_queue(run->base.queue), launch);
}

static keel_status_t issue_dispatch(stream_run_t *run, const keel_cmd_execute_t *execute,
                                    const stream_context_t *context, const keel_cmd_dispatch_t *c,
                                    stream_step_t *step)
{
    stream_arguments_t arguments;
    stream_launch_t launch;
    bool none = !c->groups[0] || !c->groups[1] || !c->groups[2];
    if (c->counts_kind == KEEL_COUNTS_DIRECT && none) return NULL;
    keel_status_t status = stream_dispatch_launch(context, c, &arguments, &launch);
    if (!status) status = issue_launch(run, execute, context, c, &launch, step);
    if (arguments.large) mem_free(arguments.large);
    return status;
}

// Whether a small fill or copy is done sooner by a graph of the machine's own kernel (launch.c).
// But that writes bytes where it cannot write 16 at a time, and somebody may look at a word
// meanwhile; and queues for transfers are there to leave the processors to others. Nor is it for
// memory that is not local: the vendor knows best how to get to the host's, and to what is somebody
// else's.
static bool is_sooner(const stream_queue_t *queue, uint64_t length, uint32_t unit)
{
    const stream_device_t *device = stream_device(queue->base.device);
    return device->blanks.used && length <= device->limits.quirks.small_transfer && unit == 16 &&
           queue->base.options.family != KEEL_QUEUE_TRANSFER;
}

static keel_status_t issue_fill(stream_run_t *run, const stream_context_t *context,
                                const keel_cmd_fill_t *c)
{
    stream_queue_t *queue = stream_queue(run->base.queue);
    bound_fill_t fill;
    bool plain;
    KEEL_TRY(bind_fill(&context->binder, c, &fill, &plain));
    if (!fill.count) return NULL;
    builtin_fill_t arguments;
    stream_launch_t launch;
    stream_fill_launch(context->device, &fill, &arguments, &launch);
    bool sooner = is_sooner(queue, arguments.length, arguments.unit) &&
                  bind_is_local(&context->binder, &c->target);
    if (plain && !sooner)
        return context->device->api->fill(context->device->vendor, stream_queue_onto(queue), &fill);
    return stream_launch(queue, &launch);
}

static keel_status_t issue_copy(stream_run_t *run, const bound_copy_t *copy)
{
    stream_queue_t *queue = stream_queue(run->base.queue);
    stream_device_t *device = stream_device(queue->base.device);
    if (!copy->size) return NULL;
    return device->api->copy(device->vendor, stream_queue_onto(queue), copy);
}

static keel_status_t issue_copy_between(stream_run_t *run, const stream_context_t *context,
                                        const keel_cmd_copy_t *c)
{
    stream_queue_t *queue = stream_queue(run->base.queue);
    bound_copy_t copy;
    builtin_copy_t arguments;
    stream_launch_t launch;
    KEEL_TRY(bind_copy(&context->binder, c, &copy));
    stream_copy_launch(context->device, &copy, &arguments, &launch);
    bool sooner = copy.size && is_sooner(queue, copy.size, arguments.unit) &&
                  bind_is_local(&context->binder, &c->source) &&
                  bind_is_local(&context->binder, &c->target);
    return sooner ? stream_launch(queue, &launch) : issue_copy(run, &copy);
}

static keel_status_t issue_update(stream_run_t *run, const stream_context_t *context,
                                  const keel_cmd_update_t *c)
{
    bound_t span;
    KEEL_TRY(bind_ref(&context->binder, &c->target, &span));
    bound_copy_t copy = {.target = span.address, .size = span.length};
    void *data;
    KEEL_TRY(stream_stage(run, span.length, &data, &copy.source));
    memcpy(data, c->data, span.length);
    return issue_copy(run, &copy);
}

static keel_status_t issue_timestamp(stream_run_t *run, const stream_context_t *context,
                                     const keel_cmd_timestamp_t *c)
{
    bound_t span;
    KEEL_TRY(bind_ref(&context->binder, &c->target, &span));
    builtin_timestamp_t arguments = {span.address};
    return issue_builtin(run, STREAM_TIMESTAMP, &arguments, sizeof arguments);
}

static keel_status_t issue_one(stream_run_t *run, const keel_cmd_execute_t *execute,
                               const keel_command_t *command, stream_step_t *step)
{
    stream_context_t context = {.device = stream_device(run->base.queue->device),
                                .binder.table = execute ? execute->bindings : NULL};
    const void *c = command;
    switch ((keel_cmd_t)command->kind) {
    case KEEL_CMD_DISPATCH: return issue_dispatch(run, execute, &context, c, step);
    case KEEL_CMD_FILL: return issue_fill(run, &context, c);
    case KEEL_CMD_UPDATE: return issue_update(run, &context, c);
    case KEEL_CMD_COPY: return issue_copy_between(run, &context, c);
    case KEEL_CMD_TIMESTAMP: return issue_timestamp(run, &context, c);
    default: return NULL; // groups, barriers, events: the stream's order is enough
    }
}

keel_status_t stream_issue(stream_run_t *run, const keel_cmd_execute_t *execute,
                           const keel_command_t *command, stream_step_t *step)
{
    stream_queue_t *queue = stream_queue(run->base.queue);
    stream_device_t *device = stream_device(queue->base.device);
    run->issued = true;
    keel_status_t status = issue_one(run, execute, command, step);
    if (!status && device->options.serial && *step == STREAM_STEP_DONE)
        status = device->api->stream_drain(device->vendor, queue->stream);
    return status ? stream_device_note(device, status) : NULL;
}
