// SPDX-License-Identifier: Apache-2.0
// Control flow: blocks become jumps.
//
//     if v A end            IF v ->1, A, 1: BARRIER
//     if v A else B end     IF v ->1, A, JUMP ->2, 1: B, 2: BARRIER
//     while v A end         0: WHILE v ->1, A, JUMP ->0, 1:
//     switch v case a A case b B end
//                           SWITCH v ->2, CASE a ->1, A, JUMP ->2, 1: CASE b ->2, B, 2: BARRIER
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

static keel_cmd_branch_t *branch_at(const recorder_t *recorder, uint32_t offset)
{
    return (keel_cmd_branch_t *)(void *)(recorder->commands->data + offset);
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
    KEEL_TRY(ref_check(recorder, &branch.value, &use));
    CHECK(branch.value.length >= 4 && branch.value.offset % 4 == 0, KEEL_INVALID_ARGUMENT,
          "value: a uint32_t takes 4 bytes at a multiple of 4, not %llu at %llu",
          (unsigned long long)branch.value.length, (unsigned long long)branch.value.offset);
    branch.value.length = 4;
    KEEL_TRY(ref_check(recorder, &branch.value, &use));

    keel_cmd_t kind = op->kind == KEEL_OP_IF      ? KEEL_CMD_IF
                      : op->kind == KEEL_OP_WHILE ? KEEL_CMD_WHILE
                                                  : KEEL_CMD_SWITCH;
    uint32_t start = recorder->commands->size;
    keel_cmd_branch_t *c = commands_add(recorder->commands, kind, sizeof *c);
    if (!c) return status_no_memory();
    c->value = branch.value;
    c->max_iterations = branch.max_iterations;
    c->depth = recorder->depth;
    ref_retain(&c->value);
    recorder->blocks[recorder->depth++] = (block_t){
        .kind = op->kind,
        .start = start,
        .group_depth = recorder->group_depth,
        .serial = ++recorder->serial,
    };
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

// Adds a jump to the end of the block, wherever that will be.
static keel_status_t block_leave(recorder_t *recorder, block_t *block)
{
    uint32_t at = recorder->commands->size;
    keel_cmd_branch_t *jump = commands_add(recorder->commands, KEEL_CMD_JUMP, sizeof *jump);
    if (!jump) return status_no_memory();
    jump->target = block->to_end;
    block->to_end = at;
    return NULL;
}

keel_status_t record_else(recorder_t *recorder, const keel_op_t *op)
{
    (void)op;
    block_t *block;
    KEEL_TRY(block_find(recorder, KEEL_OP_IF, "if", &block));
    CHECK(!block->last, KEEL_FAILED_PRECONDITION, "the if has an else already");
    KEEL_TRY(block_leave(recorder, block));
    block->last = block->to_end;
    block->serial = ++recorder->serial; // a block of its own, for events
    branch_at(recorder, block->start)->target = recorder->commands->size;
    return NULL;
}

// That the switch has no such case yet. Its first one follows it at once, and leads to the next.
static keel_status_t case_check(const recorder_t *recorder, const block_t *block, uint32_t match)
{
    uint32_t at = block->last ? block->start + branch_at(recorder, block->start)->head.size : 0;
    while (at) {
        const keel_cmd_branch_t *c = branch_at(recorder, at);
        CHECK(c->match != match, KEEL_INVALID_ARGUMENT, "the switch has a case %u already", match);
        at = at == block->last ? 0 : c->target;
    }
    return NULL;
}

keel_status_t record_case(recorder_t *recorder, const keel_op_t *op)
{
    block_t *block;
    KEEL_TRY(block_find(recorder, KEEL_OP_SWITCH, "switch", &block));
    KEEL_TRY(case_check(recorder, block, op->as.branch.match));
    if (block->last) KEEL_TRY(block_leave(recorder, block));
    uint32_t at = recorder->commands->size;
    keel_cmd_branch_t *c = commands_add(recorder->commands, KEEL_CMD_CASE, sizeof *c);
    if (!c) return status_no_memory();
    c->match = op->as.branch.match;
    if (block->last) branch_at(recorder, block->last)->target = at;
    block->last = at;
    block->serial = ++recorder->serial;
    return NULL;
}

static keel_status_t while_end(recorder_t *recorder, const block_t *block)
{
    keel_cmd_branch_t *jump = commands_add(recorder->commands, KEEL_CMD_JUMP, sizeof *jump);
    if (!jump) return status_no_memory();
    jump->target = block->start;
    branch_at(recorder, block->start)->target = recorder->commands->size;
    return NULL;
}

// Ends an if or a switch: all ways out meet at a barrier.
static keel_status_t ways_end(recorder_t *recorder, const block_t *block)
{
    uint32_t end = recorder->commands->size;
    if (!commands_add(recorder->commands, KEEL_CMD_BARRIER, sizeof(keel_command_t)))
        return status_no_memory();
    for (uint32_t jump = block->to_end; jump;) {
        uint32_t earlier = branch_at(recorder, jump)->target;
        branch_at(recorder, jump)->target = end;
        jump = earlier;
    }
    if (block->kind == KEEL_OP_SWITCH || !block->last)
        branch_at(recorder, block->start)->target = end;
    if (block->kind == KEEL_OP_SWITCH && block->last)
        branch_at(recorder, block->last)->target = end;
    return NULL;
}

keel_status_t record_end(recorder_t *recorder, const keel_op_t *op)
{
    (void)op;
    CHECK(recorder->depth, KEEL_FAILED_PRECONDITION, "no block is open here");
    block_t *block;
    KEEL_TRY(block_find(recorder, recorder->blocks[recorder->depth - 1].kind, "block", &block));
    KEEL_TRY(block->kind == KEEL_OP_WHILE ? while_end(recorder, block) : ways_end(recorder, block));
    recorder->depth--;
    return NULL;
}
