// SPDX-License-Identifier: Apache-2.0
// Each record_x checks everything first, then writes the command, then retains: so a failure leaves
// nothing behind.
#include <stddef.h>
#include <string.h>

#include "base/memory.h"
#include "core/recorder_internal.h"
#include "kit/pool.h"

static keel_status_t record_barrier(recorder_t *recorder, const keel_op_t *op)
{
    (void)op;
    return commands_add(recorder->commands, KEEL_CMD_BARRIER, sizeof(keel_command_t))
               ? NULL
               : status_no_memory();
}

// Has the fill, which is the newest command and retains nothing yet, take its pattern from
// parameters. After an error it is taken back.
__attribute__((noinline)) static keel_status_t pattern_set(recorder_t *recorder, keel_cmd_fill_t *c,
                                                           const keel_ref_t *parameter)
{
    c->given = true;
    c->offset = (uint32_t)parameter->offset;
    if (keel_ref_is_parameter(parameter) && parameter->length == c->pattern_size) {
        keel_status_t status = parameter_check(recorder, parameter, "parameter");
        if (status) commands_drop(recorder->commands, &c->head);
        return status;
    }
    commands_drop(recorder->commands, &c->head);
    CHECK(keel_ref_is_parameter(parameter), KEEL_INVALID_ARGUMENT,
          "parameter is of a buffer or slot; keel_parameter() makes one");
    return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "parameter has %llu bytes; pattern_size is %u",
                      (unsigned long long)parameter->length, c->pattern_size);
}

static keel_status_t record_fill(recorder_t *recorder, const keel_op_t *op)
{
    keel_ref_t target = op->as.fill.target;
    uint32_t size = op->as.fill.pattern_size, pattern = op->as.fill.pattern;
    CHECK(size == 1 || size == 2 || size == 4, KEEL_INVALID_ARGUMENT,
          "pattern_size is %u; it must be 1, 2 or 4", size);
    KEEL_TRY(ref_check(recorder, &target, &target_use));
    CHECK(target.length == KEEL_WHOLE || target.length % size == 0, KEEL_INVALID_ARGUMENT,
          "target: length %llu is no multiple of the pattern's %u bytes",
          (unsigned long long)target.length, size);
    keel_cmd_fill_t *c = commands_add(recorder->commands, KEEL_CMD_FILL, sizeof *c);
    if (!c) return status_no_memory();
    c->target = target;
    c->pattern_size = size;
    c->pattern = size == 1   ? (pattern & 0xff) * 0x01010101u
                 : size == 2 ? (pattern & 0xffff) * 0x00010001u
                             : pattern;
    if (__builtin_expect(op->as.fill.parameter.length != 0, 0))
        KEEL_TRY(pattern_set(recorder, c, &op->as.fill.parameter));
    ref_retain(&c->target);
    return NULL;
}

static keel_status_t record_update(recorder_t *recorder, const keel_op_t *op)
{
    keel_ref_t target = op->as.update.target;
    CHECK(op->as.update.data || !target.length, KEEL_INVALID_ARGUMENT,
          "data is NULL, but length is %llu", (unsigned long long)target.length);
    CHECK(target.buffer || target.length != KEEL_WHOLE, KEEL_INVALID_ARGUMENT,
          "target: the length of an update through a slot must be given");
    KEEL_TRY(ref_check(recorder, &target, &target_use));
    CHECK(target.length < UINT32_MAX / 2, KEEL_OUT_OF_RANGE,
          "target: an update of %llu bytes; at most 2^31 are taken",
          (unsigned long long)target.length);
    keel_cmd_update_t *c =
        commands_add(recorder->commands, KEEL_CMD_UPDATE, sizeof *c + target.length);
    if (!c) return status_no_memory();
    c->target = target;
    c->place = recorder->commands->updates;
    recorder->commands->updates += ((uint32_t)target.length + 15) & ~15u;
    if (target.length) memcpy(c->data, op->as.update.data, target.length);
    ref_retain(&c->target);
    return NULL;
}

static bool refs_overlap(const keel_ref_t *a, const keel_ref_t *b)
{
    if (!a->buffer || !b->buffer || a->buffer->root != b->buffer->root) return false;
    uint64_t at = a->buffer->offset + a->offset, bt = b->buffer->offset + b->offset;
    return a->length && at < bt + b->length && bt < at + a->length;
}

// A copy from parameters: an update, whose data comes with the execution.
__attribute__((noinline)) static keel_status_t record_given_update(recorder_t *recorder,
                                                                   const keel_copy_t *copy)
{
    keel_ref_t target = copy->target;
    if (!target.buffer && target.length == KEEL_WHOLE) target.length = copy->source.length;
    KEEL_TRY(parameter_check(recorder, &copy->source, source_use.what));
    KEEL_TRY(ref_check(recorder, &target, &target_use));
    CHECK(copy->source.length == target.length, KEEL_INVALID_ARGUMENT,
          "source has %llu bytes and target %llu", (unsigned long long)copy->source.length,
          (unsigned long long)target.length);
    keel_cmd_update_t *c = commands_add(recorder->commands, KEEL_CMD_UPDATE, sizeof *c);
    if (!c) return status_no_memory();
    c->target = target;
    c->given = true;
    c->offset = (uint32_t)copy->source.offset;
    ref_retain(&c->target);
    return NULL;
}

static bool is_elsewhere(const recorder_t *recorder, const keel_ref_t *ref)
{
    return ref->buffer && ref->buffer->device != recorder->device;
}

static keel_status_t record_copy(recorder_t *recorder, const keel_op_t *op)
{
    const keel_copy_t *copy = &op->as.copy;
    if (__builtin_expect(keel_ref_is_parameter(&copy->source), 0))
        return record_given_update(recorder, copy);
    if (is_elsewhere(recorder, &copy->source) || is_elsewhere(recorder, &copy->target))
        return record_across(recorder, copy);
    keel_ref_t source = copy->source, target = copy->target;
    KEEL_TRY(ref_check(recorder, &source, &source_use));
    KEEL_TRY(ref_check(recorder, &target, &target_use));
    // A slot's whole takes its length from the other side; the slot must then be that long.
    if (source.length == KEEL_WHOLE && target.length != KEEL_WHOLE) {
        source.length = target.length;
        KEEL_TRY(ref_check(recorder, &source, &source_use));
    } else if (target.length == KEEL_WHOLE && source.length != KEEL_WHOLE) {
        target.length = source.length;
        KEEL_TRY(ref_check(recorder, &target, &target_use));
    }
    CHECK(source.length == target.length, KEEL_INVALID_ARGUMENT,
          "source has %llu bytes and target %llu", (unsigned long long)source.length,
          (unsigned long long)target.length);
    CHECK(!refs_overlap(&source, &target), KEEL_INVALID_ARGUMENT, "source and target overlap");
    keel_cmd_copy_t *c = commands_add(recorder->commands, KEEL_CMD_COPY, sizeof *c);
    if (!c) return status_no_memory();
    c->source = source;
    c->target = target;
    command_keep_copied(recorder->commands, c);
    return NULL;
}

static keel_status_t record_timestamp(recorder_t *recorder, const keel_op_t *op)
{
    keel_ref_t target = op->as.timestamp.target;
    CHECK(recorder->device->caps.bits & KEEL_CAP_TIMESTAMPS, KEEL_UNSUPPORTED,
          "the device has no KEEL_CAP_TIMESTAMPS");
    KEEL_TRY(ref_check(recorder, &target, &target_use));
    CHECK(target.length == 8 && target.offset % 8 == 0, KEEL_INVALID_ARGUMENT,
          "target: a timestamp takes 8 bytes at a multiple of 8, not %llu at %llu",
          (unsigned long long)target.length, (unsigned long long)target.offset);
    keel_cmd_timestamp_t *c = commands_add(recorder->commands, KEEL_CMD_TIMESTAMP, sizeof *c);
    if (!c) return status_no_memory();
    c->target = target;
    ref_retain(&target);
    return NULL;
}

static keel_status_t record_group_begin(recorder_t *recorder, const keel_op_t *op)
{
    const char *name = op->as.group.name;
    CHECK(name, KEEL_INVALID_ARGUMENT, "name is NULL");
    size_t size = strlen(name) + 1;
    CHECK(size <= 4096, KEEL_OUT_OF_RANGE, "name has %zu characters; at most 4095 are taken",
          size - 1);
    keel_cmd_group_t *c = commands_add(recorder->commands, KEEL_CMD_GROUP_BEGIN, sizeof *c + size);
    if (!c) return status_no_memory();
    memcpy(c->name, name, size);
    recorder->group_depth++;
    return NULL;
}

static keel_status_t record_group_end(recorder_t *recorder, const keel_op_t *op)
{
    (void)op;
    uint32_t outer = recorder->depth ? recorder->blocks[recorder->depth - 1].group_depth : 0;
    CHECK(recorder->group_depth > outer, KEEL_FAILED_PRECONDITION,
          "no group is open in this block");
    if (!commands_add(recorder->commands, KEEL_CMD_GROUP_END, sizeof(keel_command_t)))
        return status_no_memory();
    recorder->group_depth--;
    return NULL;
}

// That a reserved buffer may lie in a range of another one, as far as is known before it does.
static keel_status_t place_fits(recorder_t *recorder, const keel_buffer_t *buffer, keel_ref_t *at)
{
    const ref_use_t use = {"memory", buffer->usage, buffer->access};
    const keel_buffer_t *from = at->buffer;
    KEEL_TRY(ref_check(recorder, at, &use));
    CHECK(from->root != buffer, KEEL_INVALID_ARGUMENT, "memory: it is that of %s itself",
          BUFFER_LABEL(buffer));
    CHECK(from->node == buffer->node, KEEL_INVALID_ARGUMENT,
          "memory: %s is on node %u, and the pool of %s on node %u", BUFFER_LABEL(from), from->node,
          BUFFER_LABEL(buffer), buffer->node);
    CHECK((from->memory & buffer->memory) == buffer->memory, KEEL_PERMISSION_DENIED,
          "memory: %s is in memory 0x%x, and the pool of %s is for 0x%x", BUFFER_LABEL(from),
          from->memory, BUFFER_LABEL(buffer), buffer->memory);
    CHECK(at->length >= buffer->size, KEEL_OUT_OF_RANGE, "memory: %llu bytes are too few for %s",
          (unsigned long long)at->length, BUFFER_EXTENT(buffer));
    if (from->root->pool) return NULL; // its address comes later, and may change
    return pool_place_check(buffer, atomic_load(&from->root->address) + from->offset + at->offset);
}

static keel_status_t record_alloca(recorder_t *recorder, const keel_op_t *op)
{
    keel_buffer_t *buffer = op->as.alloca_.buffer;
    keel_ref_t memory = {0}; // the rest counts only with a buffer
    if (op->as.alloca_.memory.buffer) memory = op->as.alloca_.memory;
    bool take = op->kind == KEEL_OP_ALLOCA;
    CHECK(buffer, KEEL_INVALID_ARGUMENT, "buffer is NULL");
    CHECK(buffer->device == recorder->device, KEEL_INVALID_ARGUMENT, "%s belongs to another device",
          BUFFER_LABEL(buffer));
    CHECK(buffer->root == buffer, KEEL_INVALID_ARGUMENT,
          "%s is a subspan; name the buffer it is part of", BUFFER_LABEL(buffer));
    CHECK(buffer->pool, KEEL_FAILED_PRECONDITION, "%s is not from keel_buffer_reserve",
          BUFFER_LABEL(buffer));
    CHECK(take || !memory.buffer, KEEL_INVALID_ARGUMENT,
          "memory is for allocas; a dealloca takes it from where it is");
    if (memory.buffer) KEEL_TRY(place_fits(recorder, buffer, &memory));
    keel_cmd_alloca_t *c =
        commands_add(recorder->commands, take ? KEEL_CMD_ALLOCA : KEEL_CMD_DEALLOCA, sizeof *c);
    if (!c) return status_no_memory();
    c->buffer = buffer;
    object_retain(&buffer->object);
    c->memory = memory;
    ref_retain(&c->memory);
    if (take)
        c->request.commands = recorder->commands;
    else
        pool_dealloca_submitted(buffer);
    return NULL;
}

static keel_status_t record_transfer(recorder_t *recorder, const keel_op_t *op)
{
    keel_transfer_t transfer = op->as.transfer;
    bool read = op->kind == KEEL_OP_READ;
    CHECK(recorder->device->caps.bits & KEEL_CAP_FILES, KEEL_UNSUPPORTED,
          "the device has no KEEL_CAP_FILES");
    CHECK(transfer.file, KEEL_INVALID_ARGUMENT, "file is NULL");
    CHECK(transfer.file->device == recorder->device, KEEL_INVALID_ARGUMENT,
          "file '%s' was opened for another device", TEXT_OF(transfer.file->path));
    CHECK(transfer.file->flags & (read ? KEEL_FILE_READ : KEEL_FILE_WRITE), KEEL_PERMISSION_DENIED,
          "file '%s' was not opened for %s", TEXT_OF(transfer.file->path),
          read ? "reading" : "writing");
    KEEL_TRY(ref_check(recorder, &transfer.ref, read ? &target_use : &source_use));
    CHECK(transfer.file_offset <= INT64_MAX - transfer.ref.length, KEEL_OUT_OF_RANGE,
          "file_offset %llu and length %llu overflow", (unsigned long long)transfer.file_offset,
          (unsigned long long)transfer.ref.length);
    keel_cmd_transfer_t *c =
        commands_add(recorder->commands, read ? KEEL_CMD_READ : KEEL_CMD_WRITE, sizeof *c);
    if (!c) return status_no_memory();
    c->file = keel_file_retain(transfer.file);
    c->file_offset = transfer.file_offset;
    c->ref = transfer.ref;
    ref_retain(&c->ref);
    return NULL;
}

static keel_status_t table_check(recorder_t *recorder, const keel_execute_t *e)
{
    keel_recording_t *recording = e->recording;
    CHECK(e->bindings.refs || !e->bindings.count, KEEL_INVALID_ARGUMENT,
          "bindings.refs is NULL, but bindings.count is %zu", e->bindings.count);
    CHECK(e->bindings.count == recording->options.slots, KEEL_INVALID_ARGUMENT,
          "bindings: %zu of them; recording '%s' has %u slots", e->bindings.count,
          TEXT_OF(recording->name), recording->options.slots);
    for (size_t i = 0; i < e->bindings.count; i++) {
        const keel_slot_need_t *need = &recording->needs[i];
        keel_ref_t ref = e->bindings.refs[i];
        if (!ref.buffer && !need->usage) continue; // nothing uses the slot
        ref_use_t use = {"a binding", need->usage, need->access};
        keel_status_t status = ref_check(recorder, &ref, &use);
        if (status) return keel_status_wrap(status, "bindings[%zu] does not suit the recording", i);
        CHECK(ref.length >= need->length, KEEL_OUT_OF_RANGE,
              "bindings[%zu] has %llu bytes; the recording needs %llu", i,
              (unsigned long long)ref.length, (unsigned long long)need->length);
    }
    return NULL;
}

KEEL_HOT static keel_status_t record_execute(recorder_t *recorder, const keel_op_t *op)
{
    keel_recording_t *recording = op->as.execute.recording;
    keel_refs_t table = op->as.execute.bindings;
    CHECK(recording, KEEL_INVALID_ARGUMENT, "recording is NULL");
    CHECK(recording->device == recorder->device, KEEL_INVALID_ARGUMENT,
          "recording '%s' was made for another device", TEXT_OF(recording->name));
    CHECK(!recording->recorder, KEEL_FAILED_PRECONDITION, "recording '%s' has not ended",
          TEXT_OF(recording->name));
    KEEL_TRY(table_check(recorder, &op->as.execute));
    bool takes = __builtin_expect(recording->parameters != NULL, 0);
    if (takes) KEEL_TRY(parameters_check(&op->as.execute));
    size_t size = sizeof(keel_cmd_execute_t) + table.count * sizeof(keel_ref_t);
    keel_cmd_execute_t *c = commands_append(recorder->commands, KEEL_CMD_EXECUTE, size);
    if (!c) return status_no_memory();
    c->head = (keel_command_t){.size = (uint32_t)size, .kind = KEEL_CMD_EXECUTE};
    c->recording = recording;
    object_retain(&recording->object);
    c->binding_count = (uint32_t)table.count;
    c->parameter_size = 0;
    for (size_t i = 0; i < table.count; i++) {
        keel_ref_t *ref = &c->bindings[i];
        *ref = table.refs[i];
        if (ref->buffer && ref->length == KEEL_WHOLE) ref->length = ref->buffer->size - ref->offset;
        ref_retain(ref);
    }
    if (takes) KEEL_TRY(parameters_add(recorder->commands, c, &op->as.execute));
    bool again = recording->options.one_shot && atomic_fetch_add(&recording->executed, 1) != 0;
    CHECK(!again, KEEL_FAILED_PRECONDITION, "recording '%s' is one-shot and was executed before",
          TEXT_OF(recording->name)); // counted down again with the command
    return NULL;
}

void recorder_undo_executes(const keel_commands_t *commands)
{
    if (!(commands->kinds & 1u << KEEL_CMD_EXECUTE)) return;
    KEEL_EACH_COMMAND (c, commands) {
        if (c->kind != KEEL_CMD_EXECUTE) continue;
        keel_recording_t *recording = ((const keel_cmd_execute_t *)(const void *)c)->recording;
        if (recording->options.one_shot) atomic_fetch_sub(&recording->executed, 1);
    }
}

static keel_status_t record_call(recorder_t *recorder, const keel_op_t *op)
{
    CHECK(recorder->device->caps.bits & KEEL_CAP_HOST_CALLS, KEEL_UNSUPPORTED,
          "the device has no KEEL_CAP_HOST_CALLS");
    CHECK(op->as.call.fn, KEEL_INVALID_ARGUMENT, "fn is NULL");
    keel_cmd_call_t *c = commands_add(recorder->commands, KEEL_CMD_HOST_CALL, sizeof *c);
    if (!c) return status_no_memory();
    c->call = op->as.call;
    return NULL;
}

typedef struct handler_t {
    const char *name;
    keel_status_t (*record)(recorder_t *recorder, const keel_op_t *op);
} handler_t;

static const handler_t handlers[] = {
    [KEEL_OP_BARRIER] = {"barrier", record_barrier},
    [KEEL_OP_FILL] = {"fill", record_fill},
    [KEEL_OP_UPDATE] = {"update", record_update},
    [KEEL_OP_COPY] = {"copy", record_copy},
    [KEEL_OP_DISPATCH] = {"dispatch", record_dispatch},
    [KEEL_OP_TIMESTAMP] = {"timestamp", record_timestamp},
    [KEEL_OP_GROUP_BEGIN] = {"group_begin", record_group_begin},
    [KEEL_OP_GROUP_END] = {"group_end", record_group_end},
    [KEEL_OP_ALLOCA] = {"alloca", record_alloca},
    [KEEL_OP_DEALLOCA] = {"dealloca", record_alloca},
    [KEEL_OP_READ] = {"read", record_transfer},
    [KEEL_OP_WRITE] = {"write", record_transfer},
    [KEEL_OP_EXECUTE] = {"execute", record_execute},
    [KEEL_OP_HOST_CALL] = {"host_call", record_call},
    [KEEL_OP_EVENT_SET] = {"event_set", record_event},
    [KEEL_OP_EVENT_WAIT] = {"event_wait", record_event},
    [KEEL_OP_IF] = {"if", record_block},
    [KEEL_OP_ELSE] = {"else", record_else},
    [KEEL_OP_WHILE] = {"while", record_block},
    [KEEL_OP_SWITCH] = {"switch", record_block},
    [KEEL_OP_CASE] = {"case", record_case},
    [KEEL_OP_END] = {"end", record_end},
};

// That a switch has a case before anything else.
static bool recorder_is_in_case(const recorder_t *recorder, keel_op_kind_t next)
{
    const block_t *block = &recorder->blocks[recorder->depth - 1];
    bool outside = block->kind == KEEL_OP_SWITCH && block->last == block->begin;
    return !outside || next == KEEL_OP_CASE || next == KEEL_OP_END;
}

// Why an operation may not stand here.
static keel_status_t kind_refusal(const recorder_t *recorder, unsigned kind)
{
    if (recorder->is_recording)
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "this operation is not for recordings");
    CHECK(QUEUE_OPS >> kind & 1, KEEL_INVALID_ARGUMENT, "this operation is not for submissions");
    return KEEL_ERROR(KEEL_UNSUPPORTED, "a transfer queue takes no %s",
                      kind == KEEL_OP_DISPATCH ? "dispatches" : "recordings");
}

static inline keel_status_t record_one(recorder_t *recorder, const keel_op_t *op)
{
    unsigned kind = (unsigned)op->kind;
    if (__builtin_expect(!(recorder->allowed >> kind & 1), 0)) return kind_refusal(recorder, kind);
    CHECK(recorder->commands->count < recorder->device->caps.max_commands, KEEL_RESOURCE_EXHAUSTED,
          "the list has %u commands, which is all the device takes", recorder->commands->count);
    CHECK(!recorder->depth || recorder_is_in_case(recorder, op->kind), KEEL_FAILED_PRECONDITION,
          "a switch begins with a case");
    return handlers[kind].record(recorder, op);
}

KEEL_HOT keel_status_t recorder_add(recorder_t *recorder, const keel_op_t *ops, size_t count)
{
    for (const keel_op_t *op = ops; count; op++, count--) {
        CHECK((unsigned)op->kind <= KEEL_OP_END, KEEL_INVALID_ARGUMENT,
              "ops[%zu].kind is %u, which is none of keel_op_kind_t", (size_t)(op - ops),
              (unsigned)op->kind);
        keel_status_t status = record_one(recorder, op);
        if (__builtin_expect(status != NULL, 0))
            return keel_status_wrap(status, "ops[%zu] (%s) is refused", (size_t)(op - ops),
                                    handlers[op->kind].name);
    }
    return NULL;
}

KEEL_HOT keel_status_t recorder_end(recorder_t *recorder)
{
    CHECK(!recorder->depth, KEEL_FAILED_PRECONDITION, "%u blocks are not ended", recorder->depth);
    CHECK(!recorder->group_depth, KEEL_FAILED_PRECONDITION, "%u groups are not ended",
          recorder->group_depth);
    return NULL;
}

void recorder_finish(recorder_t *recorder)
{
    mem_free(recorder->events);
    recorder->events = NULL;
}
