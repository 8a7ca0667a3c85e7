// SPDX-License-Identifier: Apache-2.0
// Control flow: events and blocks. The records of a block are chained as they come; its end tells
// all of them where it is.
#include <string.h>

#include "base/memory.h"
#include "core/recorder_internal.h"

enum { MAX_EVENTS = 1 << 16 };

static uint32_t block_serial(const recorder_t *recorder)
{
    return recorder->depth ? recorder->blocks[recorder->depth - 1].serial : 0;
}

static keel_status_t events_grow(recorder_t *recorder, uint32_t event)
{
    if (event < recorder->event_count) return NULL;
    uint32_t count = recorder->event_count ? recorder->event_count : 64;
    while (count <= event) count *= 2;
    uint32_t *events = mem_resize(recorder->events, count * sizeof *events);
    if (!events) return status_no_memory();
    memset(events + recorder->event_count, 0, (count - recorder->event_count) * sizeof *events);
    recorder->events = events;
    recorder->event_count = count;
    return NULL;
}

keel_status_t record_event(recorder_t *recorder, const keel_op_t *op)
{
    uint32_t event = op->as.event.event;
    bool set = op->kind == KEEL_OP_EVENT_SET;
    CHECK(recorder->device->caps.bits & KEEL_CAP_EVENTS, KEEL_UNSUPPORTED,
          "the device has no KEEL_CAP_EVENTS");
    CHECK(event < MAX_EVENTS, KEEL_OUT_OF_RANGE, "event is %u; it must be below %d", event,
          MAX_EVENTS);
    KEEL_TRY(events_grow(recorder, event));
    uint32_t here = block_serial(recorder) + 1;
    if (set) {
        CHECK(!recorder->events[event], KEEL_FAILED_PRECONDITION, "event %u was set before", event);
    } else {
        CHECK(recorder->events[event], KEEL_FAILED_PRECONDITION,
              "event %u is waited for and was not set", event);
        CHECK(recorder->events[event] == here, KEEL_FAILED_PRECONDITION,
              "event %u was set in another block", event);
    }
    keel_cmd_t kind = set ? KEEL_CMD_EVENT_SET : KEEL_CMD_EVENT_WAIT;
    keel_cmd_event_t *c = commands_add(recorder->commands, kind, sizeof *c);
    if (!c) return status_no_memory();
    c->event = event;
    if (set) recorder->events[event] = here;
    return NULL;
}

static keel_cmd_block_t *block_at(const recorder_t *recorder, uint32_t offset)
{
    return (keel_cmd_block_t *)(void *)(recorder->commands->data + offset);
}

// Adds the next record of the innermost block, behind the one that was newest.
static keel_status_t block_add(recorder_t *recorder, keel_cmd_t kind, keel_cmd_block_t **added)
{
    block_t *block = &recorder->blocks[recorder->depth - 1];
    uint32_t at = recorder->commands->size, index = recorder->commands->count;
    keel_cmd_block_t *c = commands_add(recorder->commands, kind, sizeof *c);
    if (!c) return status_no_memory();
    c->begin = block->begin;
    c->next = at;
    c->index = index;
    c->depth = recorder->depth - 1;
    block_at(recorder, block->last)->next = at;
    block->last = at;
    block->serial = ++recorder->serial; // events belong to one way through a block
    if (added) *added = c;
    return NULL;
}

keel_status_t record_block(recorder_t *recorder, const keel_op_t *op)
{
    static const ref_use_t use = {"value", KEEL_USAGE_COUNTS, KEEL_ACCESS_READ};
    keel_branch_t branch = op->as.branch;
    CHECK(recorder->device->caps.bits & KEEL_CAP_BRANCHES, KEEL_UNSUPPORTED,
          "the device has no KEEL_CAP_BRANCHES");
    uint32_t most =
        recorder->device->caps.max_depth < MAX_DEPTH ? recorder->device->caps.max_depth : MAX_DEPTH;
    CHECK(recorder->depth < most, KEEL_OUT_OF_RANGE, "blocks are nested more than %u deep", most);
    bool parameter = keel_ref_is_parameter(&branch.value);
    KEEL_TRY(parameter ? parameter_check(recorder, &branch.value, use.what)
                       : ref_check(recorder, &branch.value, &use));
    CHECK(branch.value.length >= 4 && branch.value.offset % 4 == 0, KEEL_INVALID_ARGUMENT,
          "value: a uint32_t takes 4 bytes at a multiple of 4, not %llu at %llu",
          (unsigned long long)branch.value.length, (unsigned long long)branch.value.offset);
    branch.value.length = 4;
    if (!parameter) KEEL_TRY(ref_check(recorder, &branch.value, &use));

    keel_cmd_t kind = op->kind == KEEL_OP_IF      ? KEEL_CMD_IF
                      : op->kind == KEEL_OP_WHILE ? KEEL_CMD_WHILE
                                                  : KEEL_CMD_SWITCH;
    uint32_t begin = recorder->commands->size;
    recorder->blocks[recorder->depth++] = (block_t){
        .kind = op->kind,
        .begin = begin,
        .last = begin,
        .group_depth = recorder->group_depth,
    };
    keel_cmd_block_t *c;
    keel_status_t status = block_add(recorder, kind, &c);
    if (status) {
        recorder->depth--;
        return status;
    }
    c->value = branch.value;
    c->max_iterations = branch.max_iterations;
    ref_retain(&c->value);
    return NULL;
}

// The innermost block, if it is of that kind and its groups are closed.
static keel_status_t block_find(recorder_t *recorder, keel_op_kind_t kind, const char *name,
                                block_t **block)
{
    *block = recorder->depth ? &recorder->blocks[recorder->depth - 1] : NULL;
    CHECK(*block && (*block)->kind == kind, KEEL_FAILED_PRECONDITION, "no %s is open here", name);
    CHECK((*block)->group_depth == recorder->group_depth, KEEL_FAILED_PRECONDITION,
          "a group is open in this block");
    return NULL;
}

keel_status_t record_else(recorder_t *recorder, const keel_op_t *op)
{
    (void)op;
    block_t *block;
    KEEL_TRY(block_find(recorder, KEEL_OP_IF, "if", &block));
    CHECK(block->last == block->begin, KEEL_FAILED_PRECONDITION, "the if has an else already");
    return block_add(recorder, KEEL_CMD_ELSE, NULL);
}

// That the switch has no such case yet.
static keel_status_t case_check(const recorder_t *recorder, const block_t *block, uint32_t match)
{
    for (uint32_t at = block->begin; at != block->last;) {
        at = block_at(recorder, at)->next;
        CHECK(block_at(recorder, at)->match != match, KEEL_INVALID_ARGUMENT,
              "the switch has a case %u already", match);
    }
    return NULL;
}

keel_status_t record_case(recorder_t *recorder, const keel_op_t *op)
{
    block_t *block;
    keel_cmd_block_t *c;
    KEEL_TRY(block_find(recorder, KEEL_OP_SWITCH, "switch", &block));
    KEEL_TRY(case_check(recorder, block, op->as.branch.match));
    KEEL_TRY(block_add(recorder, KEEL_CMD_CASE, &c));
    c->match = op->as.branch.match;
    return NULL;
}

keel_status_t record_end(recorder_t *recorder, const keel_op_t *op)
{
    (void)op;
    CHECK(recorder->depth, KEEL_FAILED_PRECONDITION, "no block is open here");
    block_t *block;
    KEEL_TRY(block_find(recorder, recorder->blocks[recorder->depth - 1].kind, "block", &block));
    KEEL_TRY(block_add(recorder, KEEL_CMD_END, NULL));
    uint32_t at = block->begin, end = block->last;
    for (; at != end; at = block_at(recorder, at)->next) block_at(recorder, at)->end = end;
    block_at(recorder, end)->end = end;
    recorder->depth--;
    return NULL;
}
