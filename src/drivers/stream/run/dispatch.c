// SPDX-License-Identifier: Apache-2.0
// Commands as the vendor takes them: addresses resolved, blocks of parameters filled in. Used to
// issue them to a stream, and to make and change the nodes of graphs.
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "drivers/stream/run/run.h"

bool stream_commands_have_foreign(const keel_commands_t *commands)
{
    if (!(commands->kinds >> KEEL_CMD_DISPATCH & 1)) return false;
    KEEL_EACH_COMMAND (c, commands)
        if (stream_dispatch_is_foreign(c)) return true;
    return false;
}

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
        return bytes ? bind_constants(&context->binder, c, bytes) : status_no_memory();
    }
    const uint32_t *most = context->device->limits.max_group_counts;
    if (c->counts_kind != KEEL_COUNTS_DIRECT || c->groups[0] > most[0] || c->groups[1] > most[1] ||
        c->groups[2] > most[2])
        return launch_walk(context, c, bytes, launch);
    return bind_block(&context->binder, c, bytes, &launch->size);
}

keel_status_t stream_counts_make(const stream_context_t *context, const keel_cmd_dispatch_t *c,
                                 builtin_counts_t *arguments)
{
    const stream_limits_t *limits = &context->device->limits;
    bool walks = stream_dispatch_walks(c);
    bound_t counts;
    KEEL_TRY(bind_value(&context->binder, &c->counts, &counts));
    *arguments = (builtin_counts_t){
        .counts = counts.address,
        .most = context->device->base.caps.max_groups,
        .most_x = walks ? UINT32_MAX : limits->max_group_counts[0],
        .most_y = walks ? UINT32_MAX : limits->max_group_counts[1],
        .most_z = walks ? UINT32_MAX : limits->max_group_counts[2],
    };
    return NULL;
}

// Launches so many groups as `length` bytes need, and one for none: no vendor takes a launch of no
// group. Returns what a thread does at a time, at addresses of those `bits`.
static uint32_t launch_spread(const stream_device_t *device, uint64_t length, uint64_t bits,
                              stream_launch_t *launch)
{
    uint64_t groups = length ? (length + BUILTIN_GROUP * 16 - 1) / (BUILTIN_GROUP * 16) : 1,
             most = device->limits.processors * 8;
    // All that is small has one form, which comes again (launch.c), and each thread little to do.
    uint64_t small = device->limits.quirks.small_transfer;
    if (small && length <= small) groups = most = small / (BUILTIN_GROUP * 16);
    launch->groups[0] = (uint32_t)(groups < most ? groups : most);
    launch->group_size[0] = BUILTIN_GROUP;
    return builtin_unit(length | bits);
}

bool stream_fill_is_right(const stream_device_t *device, const bound_fill_t *fill)
{
    uint32_t word = device->limits.quirks.fill_word;
    if (!word) return true;
    uint64_t begin = fill->target % word;
    return begin == 0 || begin + fill->count * fill->size >= word;
}

bool stream_ref_is_parted(const binder_t *binder, const keel_ref_t *ref)
{
    const keel_buffer_t *owner = bind_owner(binder, ref);
    return owner && stream_buffer_is_parted(owner);
}

// Whether it is memory of the host, and not of another device, which kernels may not reach.
static bool is_hosts(const stream_context_t *context, const keel_ref_t *ref)
{
    const keel_buffer_t *root = ref ? bind_owner(&context->binder, ref) : NULL;
    if (!root) return !ref;
    return root->memory & KEEL_MEMORY_HOST_VISIBLE ||
           (root->external.size && root->external.kind == KEEL_EXTERNAL_HOST);
}

bool stream_fill_is_ours(const stream_context_t *context, const keel_ref_t *target)
{
    return (context->device->limits.quirks.host_fills_wait && is_hosts(context, target)) ||
           stream_ref_is_parted(&context->binder, target);
}

bool stream_copy_is_ours(const stream_context_t *context, const keel_ref_t *source,
                         const keel_ref_t *target)
{
    return (context->device->limits.quirks.host_copies_wait && is_hosts(context, source) &&
            is_hosts(context, target)) ||
           (source && stream_ref_is_parted(&context->binder, source)) ||
           (target && stream_ref_is_parted(&context->binder, target));
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

keel_status_t stream_copy(stream_run_t *run, const bound_copy_t *copy, bool ours)
{
    stream_queue_t *queue = stream_run_queue(run);
    stream_device_t *device = stream_queue_device(queue);
    builtin_copy_t arguments = {0}; // gcc sees its address taken before it is written
    stream_launch_t launch;
    if (ours) {
        stream_copy_launch(device, copy, &arguments, &launch);
        return stream_launch(queue, &launch);
    }
    return device->api->copy(device->vendor, stream_queue_onto_copy(queue), copy);
}
