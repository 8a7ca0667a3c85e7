// SPDX-License-Identifier: Apache-2.0
// Commands on their way to the stream.
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "drivers/stream/run/run.h"

enum { PAUSE_NS = 50000 };

static keel_status_t issue_builtin(stream_run_t *run, stream_builtin_t builtin,
                                   const void *arguments, uint32_t size)
{
    stream_launch_t launch;
    stream_builtin_launch(stream_run_device(run), builtin, arguments, size, &launch);
    return stream_launch(stream_run_queue(run), &launch);
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
    const stream_device_t *device = stream_run_device(run);
    KEEL_TRY(stream_peek(run, execute, &c->counts, step));
    if (*step != STREAM_STEP_DONE) return NULL;
    for (int i = 0; i < 3; i++) launch->groups[i] = run->peek->words[i];
    if (!grid_fits(device, launch->groups)) return stream_grid_refuse(device, c, launch->groups);
    if (!launch->groups[0] || !launch->groups[1] || !launch->groups[2]) return NULL;
    return stream_launch(stream_run_queue(run), launch);
}

// A graph that does the work. NULL: the vendor may have to wait for that, and the issuer must not.
static keel_status_t indirect_get(stream_run_t *run, stream_indirect_work_t *work,
                                  stream_indirect_t **got)
{
    stream_queue_t *queue = stream_run_queue(run);
    stream_device_t *device = stream_run_device(run);
    for (int i = 0;; i++) {
        bool refused = false;
        if (i > 1) clock_sleep(PAUSE_NS); // other queues have them
        *got = stream_indirect_take(device, work, queue, &refused);
        if (*got || stream_queue_puts_off(queue)) return NULL;
        if (refused) return stream_indirect_make(device, work, got);
        KEEL_TRY(stream_indirects_reserve(device, 1)); // if they were not made ahead
        KEEL_TRY(stream_device_drain(device, queue->stream));
        stream_indirects_return(queue, &run->indirects);
        stream_queue_poll(queue, true);
    }
}

// A dispatch over a grid that is in memory when the device gets there, of a kernel that cannot look
// there by itself.
static keel_status_t issue_indirect(stream_run_t *run, const stream_launch_t *launch,
                                    const builtin_counts_t *counts, stream_step_t *step)
{
    stream_indirect_t *indirect;
    stream_indirect_work_t work;
    stream_indirect_work_init(stream_run_device(run), launch, counts, &work);
    KEEL_TRY(indirect_get(run, &work, &indirect));
    if (indirect) return stream_indirect_run(stream_run_queue(run), indirect, &run->indirects);
    *step = STREAM_STEP_AGAIN;
    return NULL;
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
        if (!stream_dispatch_walks(c)) return issue_indirect(run, launch, &counts, step);
        if (!keel_ref_is_parameter(&c->counts)) // those were checked when they came
            KEEL_TRY(issue_builtin(run, STREAM_COUNTS, &counts, sizeof counts));
    }
    return stream_launch(stream_run_queue(run), launch);
}

// Puts counts that came with the execution where the device finds them.
static keel_status_t counts_stage(stream_run_t *run, const keel_ref_t *counts, binder_t *binder)
{
    void *data;
    uint64_t address;
    KEEL_TRY(stream_stage(run, counts->length, &data, &address));
    memcpy(data, binder->parameters + counts->offset, counts->length);
    binder->parameters_at = address - counts->offset; // were the others there, too
    return NULL;
}

static keel_status_t issue_dispatch(stream_run_t *run, const keel_cmd_execute_t *execute,
                                    stream_context_t *context, const keel_cmd_dispatch_t *c,
                                    stream_step_t *step)
{
    stream_arguments_t arguments;
    stream_launch_t launch;
    bool none = !c->groups[0] || !c->groups[1] || !c->groups[2];
    if (c->counts_kind == KEEL_COUNTS_DIRECT) {
        if (none) return NULL;
    } else if (keel_ref_is_parameter(&c->counts)) {
        KEEL_TRY(counts_stage(run, &c->counts, &context->binder));
    }
    keel_status_t status = stream_dispatch_launch(context, c, &arguments, &launch);
    if (!status) status = issue_launch(run, execute, context, c, &launch, step);
    if (arguments.large) mem_free(arguments.large);
    return status;
}

// Whether a small fill or copy is done sooner by a graph of the core's own kernel (launch.c), as
// was measured for units of 16 bytes. Queues for transfers are there to leave the processors to
// others. Nor is it for memory that is not local: the vendor knows best how to get to the host's,
// and to that of other devices.
static bool is_sooner(const stream_queue_t *queue, uint64_t length, uint32_t unit)
{
    const stream_device_t *device = stream_queue_device(queue);
    return stream_launches_are_graphs(device) && length <= device->limits.quirks.small_transfer &&
           unit == 16 && queue->base.info.family != KEEL_QUEUE_TRANSFER;
}

static keel_status_t issue_fill(stream_run_t *run, const stream_context_t *context,
                                const keel_cmd_fill_t *c)
{
    stream_queue_t *queue = stream_run_queue(run);
    bound_fill_t fill;
    bool plain;
    KEEL_TRY(bind_fill(&context->binder, c, &fill, &plain));
    if (!fill.count) return NULL;
    builtin_fill_t arguments;
    stream_launch_t launch;
    stream_fill_launch(context->device, &fill, &arguments, &launch);
    bool sooner = is_sooner(queue, arguments.length, arguments.unit) &&
                  bind_is_local(&context->binder, &c->target);
    if (plain && !sooner && stream_fill_is_right(context->device, &fill) &&
        !stream_fill_is_ours(context, &c->target))
        return context->device->api->fill(context->device->vendor, stream_queue_onto_copy(queue),
                                          &fill);
    return stream_launch(queue, &launch);
}

static keel_status_t issue_copy_between(stream_run_t *run, const stream_context_t *context,
                                        const keel_cmd_copy_t *c)
{
    stream_queue_t *queue = stream_run_queue(run);
    bound_copy_t copy;
    builtin_copy_t arguments;
    stream_launch_t launch;
    KEEL_TRY(bind_copy(&context->binder, c, &copy));
    stream_copy_launch(context->device, &copy, &arguments, &launch);
    if (!copy.size) return NULL;
    bool sooner = is_sooner(queue, copy.size, arguments.unit) &&
                  bind_is_local(&context->binder, &c->source) &&
                  bind_is_local(&context->binder, &c->target);
    if (sooner) return stream_launch(queue, &launch);
    return stream_copy(run, &copy, stream_copy_is_ours(context, &c->source, &c->target));
}

static keel_status_t issue_update(stream_run_t *run, const keel_cmd_execute_t *execute,
                                  const stream_context_t *context, const keel_cmd_update_t *c)
{
    bound_t span;
    KEEL_TRY(bind_ref(&context->binder, &c->target, &span));
    bound_copy_t copy = {.target = span.address, .size = span.length};
    void *data;
    if (!span.length) return NULL;
    KEEL_TRY(stream_stage(run, span.length, &data, &copy.source));
    memcpy(data, keel_update_data(c, execute), span.length);
    return stream_copy(run, &copy, stream_copy_is_ours(context, NULL, &c->target));
}

static keel_status_t issue_timestamp(stream_run_t *run, const stream_context_t *context,
                                     const keel_cmd_timestamp_t *c)
{
    bound_t span;
    KEEL_TRY(bind_ref(&context->binder, &c->target, &span));
    builtin_timestamp_t arguments = stream_timestamp_make(context->device, span.address);
    return issue_builtin(run, STREAM_TIMESTAMP, &arguments, sizeof arguments);
}

static keel_status_t issue_one(stream_run_t *run, const keel_cmd_execute_t *execute,
                               const keel_command_t *command, stream_step_t *step)
{
    stream_context_t context = {.device = stream_run_device(run), .binder = binder_of(execute)};
    const void *c = command;
    switch ((keel_cmd_t)command->kind) {
    case KEEL_CMD_DISPATCH: return issue_dispatch(run, execute, &context, c, step);
    case KEEL_CMD_FILL: return issue_fill(run, &context, c);
    case KEEL_CMD_UPDATE: return issue_update(run, execute, &context, c);
    case KEEL_CMD_COPY: return issue_copy_between(run, &context, c);
    case KEEL_CMD_TIMESTAMP: return issue_timestamp(run, &context, c);
    default: return NULL; // groups, barriers, events: the stream's order is enough
    }
}

// Kinds of commands that put work on the stream.
#define TIMED_KINDS                                                                                \
    (1u << KEEL_CMD_DISPATCH | 1u << KEEL_CMD_FILL | 1u << KEEL_CMD_UPDATE | 1u << KEEL_CMD_COPY | \
     1u << KEEL_CMD_TIMESTAMP)

keel_status_t stream_issue(stream_run_t *run, const keel_cmd_execute_t *execute,
                           const keel_command_t *command, stream_step_t *step)
{
    stream_queue_t *queue = stream_run_queue(run);
    stream_device_t *device = stream_queue_device(queue);
    stream_run_follow(run, STREAM_TAIL_OWN);
    bool traced = stream_run_is_traced(run) && TIMED_KINDS >> command->kind & 1;
    if (__builtin_expect(traced, 0)) stream_stamp_begin(run);
    keel_status_t status = issue_one(run, execute, command, step);
    if (__builtin_expect(traced && !status && *step == STREAM_STEP_DONE, 0))
        stream_stamp_end(run, execute, command);
    if (!status && device->options.serial && *step == STREAM_STEP_DONE)
        status = device->api->stream_drain(device->vendor, queue->stream);
    return status ? stream_device_note(device, status) : NULL;
}
