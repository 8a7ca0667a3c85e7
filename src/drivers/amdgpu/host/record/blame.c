// SPDX-License-Identifier: Apache-2.0
// What is wrong with a record that the GPU has given up: it has noted which command, and the host
// says why.
#include <string.h>

#include "base/status.h"
#include "drivers/amdgpu/host/record/record.h"
#include "kit/bind.h"
#include "kit/submission.h"

static keel_status_t counts_refuse(const keel_cmd_dispatch_t *c, const uint32_t counts[3])
{
    amdgpu_launch_t launch = {0};
    memcpy(launch.groups, counts, sizeof launch.groups);
    memcpy(launch.group_size, c->group_size, sizeof launch.group_size);
    KEEL_TRY(bind_counts_check(c, counts));
    return amdgpu_grid_check(&launch);
}

// What the command would have said on the host.
static keel_status_t fault_explain(const record_t *record, const keel_command_t *command,
                                   const keel_cmd_execute_t *execute)
{
    const void *c = command;
    keel_bound_t source, target;
    uint32_t pattern;
    switch (record->fault >> 32) {
    case FAULT_COUNTS: return counts_refuse(c, record->fault_counts);
    case FAULT_LOOP: return command_loop_refuse(c);
    default: break;
    }
    return command->kind == KEEL_CMD_FILL ? keel_bind_fill(c, execute, &target, &pattern)
                                          : keel_bind_copy(c, execute, &source, &target);
}

// The first command of a recording that refers to a slot.
typedef struct slot_search_t {
    uint32_t slot;
    bool found;
} slot_search_t;

static void slot_look(void *user, const keel_ref_t *ref)
{
    slot_search_t *search = user;
    if (!ref->buffer && !keel_ref_is_parameter(ref) && ref->slot == search->slot)
        search->found = true;
}

static const keel_command_t *slot_user(const keel_commands_t *commands, uint32_t slot)
{
    slot_search_t search = {slot, false};
    KEEL_EACH_COMMAND (c, commands) {
        command_refs(c, slot_look, &search);
        if (search.found) return c;
    }
    return NULL;
}

// A buffer of a pool had no memory when the waits were over.
static keel_status_t missing_status(const amdgpu_run_t *run)
{
    const late_t *late = run->lates + (uint32_t)run->record->fault;
    const keel_cmd_execute_t *execute = amdgpu_step_execute(run, late->step);
    const keel_commands_t *own = &run->base.submission.commands;
    const keel_ref_t ref = {.buffer = (keel_buffer_t *)(uintptr_t)late->user};
    const keel_command_t *command = execute ? slot_user(execute->recording->commands, late->offset)
                                            : keel_commands_at(own, late->offset);
    return submission_blame(&run->base.submission, execute, command, bind_missing(NULL, &ref));
}

// A buffer that was to get a block had memory; or, `given`, had none to give back.
static keel_status_t mismatch_status(const amdgpu_run_t *run, bool given)
{
    uint32_t number = (uint32_t)run->record->fault;
    KEEL_EACH_COMMAND (c, &run->base.submission.commands) {
        if (c->kind != (given ? KEEL_CMD_DEALLOCA : KEEL_CMD_ALLOCA) || number--) continue;
        return submission_blame(&run->base.submission, NULL, c,
                                pool_mismatch(amdgpu_alloca_of(c)->buffer, given));
    }
    return NULL;
}

keel_status_t amdgpu_record_blame(const amdgpu_run_t *run)
{
    const record_t *record = run->record;
    uint32_t kind = (uint32_t)(record->fault >> 32);
    if (kind == FAULT_MISSING) return missing_status(run);
    if (kind == FAULT_GRANTED || kind == FAULT_RETURNED)
        return mismatch_status(run, kind == FAULT_RETURNED);
    const keel_cmd_execute_t *execute = amdgpu_step_execute(run, record->step);
    const keel_commands_t *list =
        execute ? execute->recording->commands : &run->base.submission.commands;
    const keel_command_t *command = keel_commands_at(list, (uint32_t)record->fault);
    keel_status_t status = fault_explain(record, command, execute);
    if (!status) status = KEEL_ERROR(KEEL_INTERNAL, "the GPU refuses a command");
    return submission_blame(&run->base.submission, execute, command, status);
}
