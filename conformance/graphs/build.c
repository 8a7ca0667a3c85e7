// SPDX-License-Identifier: Apache-2.0
// Operations of a graph as operations of Keel.
#include "graphs/runner.h"

#include <string.h>

// A field of what is given to the command at `at`, or a part of it.
#define GIVEN(at, field, size)                                                                     \
    keel_parameter((at) * sizeof(given_t) + offsetof(given_t, field), (size))

static keel_ref_t ref_build(run_t *run, span_t span, uint8_t device)
{
    if (span.slot) return keel_slot(span.id, span.offset, span.length);
    const space_t *space = &run->graph->spaces[span.id];
    // One side of a copy may lie on another device.
    if (space->kind == SPACE_BUFFER || space->kind == SPACE_POOL) device = space->device;
    keel_ref_t ref = keel_span(run->buffers[span.id][device], span.offset, span.length);
    // The same bytes can be said in several ways.
    uint32_t way = (span.offset ^ span.length) & 3;
    if (way < 2 && span.offset >= PART_OFFSET && run->parts[span.id][device]) {
        ref.buffer = run->parts[span.id][device];
        ref.offset -= PART_OFFSET;
    }
    bool to_the_end = span.offset + span.length == space->size;
    if (way % 2 && to_the_end) ref.length = KEEL_WHOLE;
    return ref;
}

static keel_op_t kernel_build(run_t *run, size_t action, uint8_t device, const op_t *op,
                              built_t *built, size_t at)
{
    arith_constants_t *constants = &built->constants[at];
    constants->constant = op->numbers[0];
    constants->modulus = op->kind == OP_ABORT ? FIRST_NUMBER + (uint32_t)action : op->numbers[1];
    constants->spin = (uint32_t)((action + at) % 5) * 40;
    keel_op_t dispatch =
        keel_op_dispatch(run->env->devices[device].entries[op->kind],
                         keel_groups(op->groups[0], op->groups[1], op->groups[2]), constants,
                         sizeof *constants, keel_refs(built->refs[at], op->span_count));
    if (op->given) {
        keel_ref_t number = GIVEN(at, number, 4);
        built->patches[at] = (keel_patch_t){offsetof(arith_constants_t, constant), number};
        dispatch = keel_op_patched(dispatch, &built->patches[at], 1);
    }
    if (op->given && op->counts == COUNTS_DIRECT)
        return keel_op_indirect(dispatch, KEEL_COUNTS_STATIC, GIVEN(at, groups, 12));
    if (op->counts == COUNTS_DIRECT) return dispatch;
    return keel_op_indirect(dispatch,
                            op->counts == COUNTS_STATIC ? KEEL_COUNTS_STATIC : KEEL_COUNTS_DYNAMIC,
                            ref_build(run, op->spans[MAX_SPANS - 1], device));
}

static keel_op_t update_build(const op_t *op, built_t *built, size_t at)
{
    if (op->given) return keel_op_copy(GIVEN(at, data, op->spans[0].length), built->refs[at][0]);
    update_data(op, built->data[at]);
    return keel_op_update(built->refs[at][0], built->data[at]);
}

static keel_op_t call_build(run_t *run, size_t action, const op_t *op)
{
    size_t at = (size_t)(op - run->graph->actions[action].ops);
    call_t *call = &run->calls[action][at];
    call->run = run;
    call->op = op;
    call->action = action;
    return keel_op_host_call(call_begin, call);
}

static keel_op_t while_build(const op_t *op, keel_ref_t value)
{
    keel_op_t loop = keel_op_while(value);
    loop.as.branch.max_iterations = op->numbers[0];
    return loop;
}

static keel_op_t fill_build(const op_t *op, keel_ref_t target, size_t at)
{
    if (op->given) return keel_op_fill_with(target, GIVEN(at, number, op->numbers[1]));
    return keel_op_fill(target, op->numbers[0], op->numbers[1]);
}

static void given_make(const op_t *command, uint32_t added, given_t *given)
{
    op_t op = op_given(command, added);
    given->number = op.numbers[0];
    for (size_t i = 0; i < 3; i++) given->groups[i] = op.groups[i];
    if (op.given && op.kind == OP_UPDATE) update_data(&op, given->data);
}

static keel_op_t execute_build(run_t *run, const op_t *op, built_t *built, size_t at)
{
    const recording_t *recording = &run->graph->recordings[op->numbers[0]];
    given_t *given = built->given[built->executes++];
    for (size_t i = 0; i < recording->count; i++)
        given_make(&recording->commands[i], op->numbers[1], &given[i]);
    return keel_op_execute_with(run->recordings[op->numbers[0]],
                                keel_refs(built->refs[at], op->span_count), given,
                                recording->count * sizeof *given);
}

static keel_op_t op_build(run_t *run, size_t action, uint8_t device, const op_t *op, built_t *built,
                          size_t at)
{
    keel_ref_t *refs = built->refs[at];
    const span_t *spans = op->spans;
    for (size_t i = 0; i < op->span_count; i++) refs[i] = ref_build(run, spans[i], device);
    if (op_infos[op->kind].traits & TRAIT_KERNEL)
        return kernel_build(run, action, device, op, built, at);
    switch (op->kind) {
    case OP_GROUP: return keel_op_group_begin("group of a graph");
    case OP_UNGROUP: return keel_op_group_end();
    case OP_FILL: return fill_build(op, refs[0], at);
    case OP_UPDATE: return update_build(op, built, at);
    case OP_COPY: return keel_op_copy(refs[0], refs[1]);
    case OP_ALLOCA: return keel_op_alloca(run->buffers[spans[0].id][device]);
    case OP_DEALLOCA: return keel_op_dealloca(run->buffers[spans[0].id][device]);
    case OP_READ: return keel_op_read(run->files[spans[0].id][device], spans[0].offset, refs[1]);
    case OP_WRITE: return keel_op_write(refs[0], run->files[spans[1].id][device], spans[1].offset);
    case OP_CALL:
    case OP_CALL_SIGNAL: return call_build(run, action, op);
    case OP_EXECUTE: return execute_build(run, op, built, at);
    case OP_EVENT_SET: return keel_op_event_set(op->numbers[0]);
    case OP_EVENT_WAIT: return keel_op_event_wait(op->numbers[0]);
    case OP_IF: return keel_op_if(refs[0]);
    case OP_ELSE: return keel_op_else();
    case OP_WHILE: return while_build(op, refs[0]);
    case OP_SWITCH: return keel_op_switch(refs[0]);
    case OP_CASE: return keel_op_case(op->numbers[0]);
    case OP_END: return keel_op_end();
    default: return keel_op_barrier();
    }
}

void ops_build(run_t *run, size_t action, uint8_t device, const op_t *ops, size_t count,
               built_t *built)
{
    built->executes = 0;
    for (size_t i = 0; i < count; i++)
        built->ops[i] = op_build(run, action, device, &ops[i], built, i);
}

keel_status_t recording_build(run_t *run, size_t index, size_t action, keel_recording_t **recording)
{
    const recording_t *from = &run->graph->recordings[index];
    keel_recording_options_t options = {
        .slots = from->slot_count, .one_shot = from->one_shot, .name = "recording of a graph"};
    const env_device_t *device = &run->env->devices[from->device];
    built_t built;
    ops_build(run, action, from->device, from->commands, from->count, &built);
    KEEL_TRY(keel_recording_create(device->device, &options, recording));
    // Half at once, half one by one: both must do.
    size_t half = from->count / 2;
    KEEL_TRY(keel_recording_add(*recording, built.ops, half));
    for (size_t i = half; i < from->count; i++)
        KEEL_TRY(keel_recording_add(*recording, &built.ops[i], 1));
    KEEL_TRY(keel_recording_end(*recording));
    return from->prepare ? keel_recording_prepare(*recording, device->queues[0]) : NULL;
}
