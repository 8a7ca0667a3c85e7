// SPDX-License-Identifier: Apache-2.0
// Commands as the vendor takes them: addresses resolved, blocks of parameters filled in. Used to
// issue them to a stream, and to make and change the nodes of graphs.
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "drivers/stream/stream.h"

// In place of what is not known yet.
static void span_guess(const stream_context_t *context, const keel_ref_t *ref, stream_span_t *span)
{
    span->address = context->anywhere;
    span->length = ref->length < STREAM_ANYWHERE ? ref->length : STREAM_ANYWHERE;
}

keel_status_t stream_ref_resolve(const stream_context_t *context, const keel_ref_t *ref,
                                 stream_span_t *span)
{
    const keel_buffer_t *buffer = ref->buffer;
    uint64_t offset = ref->offset;
    span->length = ref->length;
    if (!buffer) {
        if (!context->table) {
            span_guess(context, ref, span);
            return NULL;
        }
        const keel_ref_t *bound = &context->table[ref->slot];
        if (ref->length == KEEL_WHOLE) span->length = bound->length - ref->offset;
        buffer = bound->buffer;
        offset += bound->offset;
    }
    // relaxed: the alloca that wrote it was issued before us.
    uint64_t address = atomic_load_explicit(&buffer->root->address, memory_order_relaxed);
    span->address = address + buffer->offset + offset;
    if (__builtin_expect(address != 0, 1)) return NULL;
    if (context->anywhere) {
        span_guess(context, ref, span);
        return NULL;
    }
    return KEEL_ERROR(KEEL_FAILED_PRECONDITION,
                      "buffer '%s' has no memory: its alloca has not run, or its dealloca has",
                      buffer->name ? buffer->name : "");
}

// A block of the caller's, with addresses put in.
static keel_status_t arguments_raw(const stream_context_t *context, const keel_cmd_dispatch_t *c,
                                   unsigned char *bytes)
{
    const keel_patch_t *patches =
        (const keel_patch_t *)(const void *)((const char *)c + c->patches);
    memcpy(bytes, (const char *)c + c->constants, c->constant_size);
    for (uint16_t i = 0; i < c->patch_count; i++) {
        stream_span_t span;
        KEEL_TRY(stream_ref_resolve(context, &patches[i].ref, &span));
        memcpy(bytes + patches[i].offset, &span.address, sizeof span.address);
    }
    return NULL;
}

// The block that docs/kernels.md lays down: grid, addresses, lengths, constants.
static keel_status_t arguments_direct(const stream_context_t *context, const keel_cmd_dispatch_t *c,
                                      unsigned char *at, uint32_t *size)
{
    unsigned char *start = at - *size;
    uint64_t *addresses = (uint64_t *)(void *)at, *lengths = addresses + c->binding_count;
    for (uint16_t i = 0; i < c->binding_count; i++) {
        stream_span_t span;
        KEEL_TRY(stream_ref_resolve(context, &c->bindings[i], &span));
        addresses[i] = span.address;
        lengths[i] = span.length;
    }
    at = (unsigned char *)(lengths + c->binding_count);
    uint32_t rest = (c->constant_size + 7) & ~7u;
    if (rest) {
        memset(at + rest - 8, 0, 8);
        memcpy(at, (const char *)c + c->constants, c->constant_size);
    }
    *size = (uint32_t)(at - start) + rest;
    return NULL;
}

// The form of a kernel that walks over its grid: one that is in memory, or larger than a launch.
static keel_status_t launch_walk(const stream_context_t *context, const keel_cmd_dispatch_t *c,
                                 unsigned char *bytes, stream_launch_t *launch)
{
    const stream_limits_t *limits = &context->device->limits;
    uint64_t items = (uint64_t)c->group_size[0] * c->group_size[1] * c->group_size[2];
    uint64_t at_once = limits->processors * (items < 2048 ? 2048 / items : 1);
    uint64_t head[2] = {0, 0}; // where the counts are; a table, which is not used
    if (c->counts_kind != KEEL_COUNTS_DIRECT) {
        stream_span_t counts;
        KEEL_TRY(stream_ref_resolve(context, &c->counts, &counts));
        head[0] = counts.address;
    } else {
        uint64_t total = (uint64_t)c->groups[0] * c->groups[1] * c->groups[2];
        if (total < at_once) at_once = total;
    }
    memcpy(bytes + 16, head, sizeof head);
    launch->function = ((const stream_kernel_t *)c->kernel)->walk;
    launch->groups[0] = (uint32_t)at_once;
    launch->groups[1] = launch->groups[2] = 1;
    launch->size = 32;
    return arguments_direct(context, c, bytes + 32, &launch->size);
}

static keel_status_t grid_refuse(const keel_cmd_dispatch_t *c, const stream_limits_t *limits)
{
    return KEEL_ERROR(
        KEEL_OUT_OF_RANGE,
        "the grid is %u x %u x %u; a kernel made elsewhere takes at most %u x %u x %u",
        c->groups[0], c->groups[1], c->groups[2], limits->max_groups[0], limits->max_groups[1],
        limits->max_groups[2]);
}

keel_status_t stream_dispatch_launch(const stream_context_t *context, const keel_cmd_dispatch_t *c,
                                     stream_arguments_t *arguments, stream_launch_t *launch)
{
    const stream_kernel_t *kernel = c->kernel;
    const stream_limits_t *limits = &context->device->limits;
    unsigned char *bytes = arguments->bytes;
    arguments->large = NULL;
    *launch = (stream_launch_t){
        .function = kernel->function,
        .groups = {c->groups[0], c->groups[1], c->groups[2]},
        .group_size = {c->group_size[0], c->group_size[1], c->group_size[2]},
        .local_memory = c->local_memory - kernel->local_memory,
        .arguments = bytes,
    };
    bool large = c->groups[0] > limits->max_groups[0] || c->groups[1] > limits->max_groups[1] ||
                 c->groups[2] > limits->max_groups[2];
    if (kernel->abi == KEEL_ABI_RAW || c->raw) {
        if (large) return grid_refuse(c, limits);
        launch->size = c->constant_size;
        if (launch->size > sizeof arguments->bytes)
            launch->arguments = bytes = arguments->large = mem_alloc(launch->size);
        return bytes ? arguments_raw(context, c, bytes) : status_no_memory();
    }
    uint32_t grid[4] = {c->groups[0], c->groups[1], c->groups[2], 0};
    memcpy(bytes, grid, sizeof grid);
    if (large || c->counts_kind != KEEL_COUNTS_DIRECT)
        return launch_walk(context, c, bytes, launch);
    launch->size = 16;
    return arguments_direct(context, c, bytes + 16, &launch->size);
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
                                 stream_counts_args_t *arguments)
{
    const stream_limits_t *limits = &context->device->limits;
    bool walks = stream_dispatch_walks(c);
    stream_span_t counts;
    KEEL_TRY(stream_ref_resolve(context, &c->counts, &counts));
    *arguments = (stream_counts_args_t){
        .counts = counts.address,
        .most = context->device->base.caps.max_groups,
        .most_x = walks ? UINT32_MAX : limits->max_groups[0],
        .most_y = walks ? UINT32_MAX : limits->max_groups[1],
        .most_z = walks ? UINT32_MAX : limits->max_groups[2],
    };
    return NULL;
}

keel_status_t stream_fill_make(const stream_context_t *context, const keel_cmd_fill_t *c,
                               stream_fill_t *fill, bool *plain)
{
    stream_span_t span;
    KEEL_TRY(stream_ref_resolve(context, &c->target, &span));
    if (span.length % c->pattern_size && !context->anywhere)
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "%llu bytes are filled with a pattern of %u",
                          (unsigned long long)span.length, c->pattern_size);
    // The widest word that fits: wider is faster, and a pattern of equal bytes fits anywhere.
    bool even = (c->pattern & 0xff) * 0x01010101u == c->pattern;
    uint64_t both = span.address | span.length;
    uint32_t size = both % 4 == 0 ? 4 : both % 2 == 0 ? 2 : 1;
    if (size == 2 && c->pattern_size == 4 && !even) size = 1;
    *plain = size == 4 || even || (size == 2 && c->pattern_size <= 2);
    if (!*plain) size = 1;
    *fill = (stream_fill_t){span.address, span.length / size, c->pattern, size};
    return NULL;
}

// Launches so many groups as `length` bytes, in units of 16 if all `bits` allow that, need.
static uint32_t launch_spread(const stream_device_t *device, uint64_t length, uint64_t bits,
                              stream_launch_t *launch)
{
    enum { GROUP = 256, UNITS = 16 }; // that each of its threads is to do
    uint32_t unit = (length | bits) % 16 ? 1 : 16;
    uint64_t share = (uint64_t)GROUP * UNITS * unit, groups = (length + share - 1) / share;
    if (groups > device->limits.processors * 8u) groups = device->limits.processors * 8u;
    launch->groups[0] = groups ? (uint32_t)groups : 1;
    launch->group_size[0] = GROUP;
    return unit;
}

void stream_fill_launch(const stream_device_t *device, const stream_fill_t *fill,
                        stream_fill_args_t *arguments, stream_launch_t *launch)
{
    uint64_t length = fill->count * fill->size;
    stream_builtin_launch(device, STREAM_FILL, arguments, sizeof *arguments, launch);
    uint32_t unit = launch_spread(device, length, fill->target, launch);
    *arguments = (stream_fill_args_t){
        .target = fill->target,
        .length = length,
        .pattern = fill->pattern,
        .threads = launch->groups[0] * launch->group_size[0],
        .unit = unit,
    };
}

void stream_copy_launch(const stream_device_t *device, const stream_copy_t *copy,
                        stream_copy_args_t *arguments, stream_launch_t *launch)
{
    stream_builtin_launch(device, STREAM_COPY, arguments, sizeof *arguments, launch);
    uint32_t unit = launch_spread(device, copy->size, copy->target | copy->source, launch);
    *arguments = (stream_copy_args_t){
        .target = copy->target,
        .source = copy->source,
        .length = copy->size,
        .threads = launch->groups[0] * launch->group_size[0],
        .unit = unit,
    };
}

keel_status_t stream_copy_make(const stream_context_t *context, const keel_cmd_copy_t *c,
                               stream_copy_t *copy)
{
    stream_span_t source, target;
    KEEL_TRY(stream_ref_resolve(context, &c->source, &source));
    KEEL_TRY(stream_ref_resolve(context, &c->target, &target));
    if (context->anywhere) { // what is guessed may be the shorter
        if (target.length < source.length) source.length = target.length;
    } else if (source.length != target.length) {
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "source has %llu bytes and target %llu",
                          (unsigned long long)source.length, (unsigned long long)target.length);
    } else if (source.address < target.address + target.length &&
               target.address < source.address + source.length) {
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "source and target overlap");
    }
    *copy = (stream_copy_t){target.address, source.address, source.length};
    return NULL;
}

keel_status_t stream_launch(stream_queue_t *queue, const stream_launch_t *launch)
{
    stream_device_t *device = stream_device(queue->base.device);
    return device->api->launch(device->vendor, stream_queue_onto(queue), launch);
}

static keel_status_t issue_builtin(stream_run_t *run, stream_builtin_t builtin,
                                   const void *arguments, uint32_t size)
{
    stream_launch_t launch;
    stream_builtin_launch(stream_device(run->base.queue->device), builtin, arguments, size,
                          &launch);
    return stream_launch(stream_queue(run->base.queue), &launch);
}

static keel_status_t issue_launch(stream_run_t *run, const keel_cmd_execute_t *execute,
                                  const stream_context_t *context, const keel_cmd_dispatch_t *c,
                                  const stream_launch_t *launch)
{
    if (c->counts_kind != KEEL_COUNTS_DIRECT) {
        stream_counts_args_t counts;
        KEEL_TRY(stream_counts_make(context, c, &counts));
        KEEL_TRY(stream_run_report(run, execute, &counts.failed));
        counts.number = stream_command_place(
            execute ? execute->recording->commands : &run->base.commands, &c->head);
        if (!stream_dispatch_walks(c)) return stream_once_run(run, launch, &counts);
        KEEL_TRY(issue_builtin(run, STREAM_COUNTS, &counts, sizeof counts));
    }
    return stream_launch(stream_queue(run->base.queue), launch);
}

static keel_status_t issue_dispatch(stream_run_t *run, const keel_cmd_execute_t *execute,
                                    const stream_context_t *context, const keel_cmd_dispatch_t *c)
{
    stream_arguments_t arguments;
    stream_launch_t launch;
    bool none = !c->groups[0] || !c->groups[1] || !c->groups[2];
    if (c->counts_kind == KEEL_COUNTS_DIRECT && none) return NULL;
    keel_status_t status = stream_dispatch_launch(context, c, &arguments, &launch);
    if (!status) status = issue_launch(run, execute, context, c, &launch);
    if (arguments.large) mem_free(arguments.large);
    return status;
}

static keel_status_t issue_fill(stream_run_t *run, const stream_context_t *context,
                                const keel_cmd_fill_t *c)
{
    stream_queue_t *queue = stream_queue(run->base.queue);
    stream_fill_t fill;
    bool plain;
    KEEL_TRY(stream_fill_make(context, c, &fill, &plain));
    if (!fill.count) return NULL;
    if (plain)
        return context->device->api->fill(context->device->vendor, stream_queue_onto(queue), &fill);
    stream_fill_args_t arguments;
    stream_launch_t launch;
    stream_fill_launch(context->device, &fill, &arguments, &launch);
    return stream_launch(queue, &launch);
}

static keel_status_t issue_copy(stream_run_t *run, const stream_copy_t *copy)
{
    stream_queue_t *queue = stream_queue(run->base.queue);
    stream_device_t *device = stream_device(queue->base.device);
    if (!copy->size) return NULL;
    return device->api->copy(device->vendor, stream_queue_onto(queue), copy);
}

static keel_status_t issue_update(stream_run_t *run, const stream_context_t *context,
                                  const keel_cmd_update_t *c)
{
    stream_span_t span;
    KEEL_TRY(stream_ref_resolve(context, &c->target, &span));
    stream_copy_t copy = {.target = span.address, .size = span.length};
    void *data;
    KEEL_TRY(stream_stage(run, span.length, &data, &copy.source));
    memcpy(data, c->data, span.length);
    return issue_copy(run, &copy);
}

static keel_status_t issue_timestamp(stream_run_t *run, const stream_context_t *context,
                                     const keel_cmd_timestamp_t *c)
{
    stream_span_t span;
    KEEL_TRY(stream_ref_resolve(context, &c->target, &span));
    stream_timestamp_args_t arguments = {span.address};
    return issue_builtin(run, STREAM_TIMESTAMP, &arguments, sizeof arguments);
}

static keel_status_t issue_one(stream_run_t *run, const keel_cmd_execute_t *execute,
                               const keel_command_t *command)
{
    stream_context_t context = {.device = stream_device(run->base.queue->device),
                                .table = execute ? execute->bindings : NULL};
    const void *c = command;
    switch ((keel_cmd_t)command->kind) {
    case KEEL_CMD_DISPATCH: return issue_dispatch(run, execute, &context, c);
    case KEEL_CMD_FILL: return issue_fill(run, &context, c);
    case KEEL_CMD_UPDATE: return issue_update(run, &context, c);
    case KEEL_CMD_COPY: {
        stream_copy_t copy;
        KEEL_TRY(stream_copy_make(&context, c, &copy));
        return issue_copy(run, &copy);
    }
    case KEEL_CMD_TIMESTAMP: return issue_timestamp(run, &context, c);
    default: return NULL; // groups, barriers, events: the stream's order is enough
    }
}

keel_status_t stream_issue(stream_run_t *run, const keel_cmd_execute_t *execute,
                           const keel_command_t *command)
{
    stream_device_t *device = stream_device(run->base.queue->device);
    run->issued = true;
    keel_status_t status = issue_one(run, execute, command);
    if (!status && device->options.serial)
        status = device->api->stream_drain(device->vendor, stream_queue(run->base.queue)->stream);
    return status ? stream_device_note(device, status) : NULL;
}
