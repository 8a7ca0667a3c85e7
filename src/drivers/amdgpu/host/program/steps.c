// SPDX-License-Identifier: Apache-2.0
// The steps of a record: programs (program.c), one after the other, and what they are run with.
// Buffers of pools are bound by the GPU, when the waits are over; so all commands that refer to one
// must run, or the host goes over them.
#include <string.h>

#include "base/status.h"
#include "drivers/amdgpu/device/program.h"
#include "drivers/amdgpu/host/program/program.h"
#include "kit/bind.h"
#include "kit/pool.h"
#include "kit/submission.h"

// Whether a buffer of a pool is bound to a slot that commands of the program refer to.
static bool is_late(const keel_cmd_execute_t *execute, const amdgpu_program_t *program,
                    uint32_t slot)
{
    const keel_buffer_t *buffer = execute->bindings[slot].buffer;
    return buffer && buffer->root->pool && program->slots >> (slot < 63 ? slot : 63) & 1;
}

static uint32_t execute_lates(const keel_cmd_execute_t *execute, const amdgpu_program_t *program)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < execute->binding_count; i++) count += is_late(execute, program, i);
    return count;
}

bool amdgpu_steps_suit(const keel_commands_t *commands, uint32_t node)
{
    KEEL_EACH_COMMAND (c, commands) {
        const keel_cmd_execute_t *execute = (const keel_cmd_execute_t *)(const void *)c;
        if (c->kind != KEEL_CMD_EXECUTE) continue;
        const amdgpu_program_t *program = amdgpu_program_of(execute->recording, node);
        if (!program || (program->branches && execute_lates(execute, program))) return false;
    }
    return true;
}

// What the steps of a record need together.
typedef struct needs_t {
    uint32_t arguments; // bytes that one of them needs at most
    amdgpu_lates_t lates;
} needs_t;

// A program runs in the record.
static void step_add(amdgpu_run_t *run, const amdgpu_program_t *program, needs_t *needs,
                     const step_t *step)
{
    record_t *record = run->record;
    if (program->room > record->room) record->room = program->room;
    if (program->arguments > needs->arguments) needs->arguments = program->arguments;
    ((step_t *)(uintptr_t)record->steps)[record->step_count++] = *step;
    needs->lates.step = record->step_count;
}

// A buffer of a pool in a slot.
static keel_status_t late_add(amdgpu_lates_t *lates, const keel_ref_t *ref, uint32_t slot,
                              table_entry_t *entry)
{
    pool_word_t *word;
    KEEL_TRY(pool_word(ref->buffer->root, &word));
    *entry = (table_entry_t){ref->buffer->offset + ref->offset, ref->length};
    lates->list[lates->count++] = (late_t){.word = (uintptr_t)word,
                                           .entry = (uintptr_t)entry,
                                           .user = (uintptr_t)ref->buffer,
                                           .step = lates->step,
                                           .offset = slot};
    return NULL;
}

// What is bound to the slots of a recording. Those that are not used may have no memory.
static keel_status_t table_fill(const keel_cmd_execute_t *execute, const amdgpu_program_t *program,
                                amdgpu_lates_t *lates, table_entry_t *table)
{
    for (uint32_t i = 0; i < execute->binding_count; i++) {
        const keel_ref_t *ref = &execute->bindings[i];
        bound_t bound = {0};
        if (is_late(execute, program, i)) {
            KEEL_TRY(late_add(lates, ref, i, &table[i]));
            continue;
        }
        if (ref->buffer && !ref->buffer->root->pool) KEEL_TRY(bind_now(NULL, ref, &bound));
        table[i] = (table_entry_t){bound.address, bound.length};
    }
    return NULL;
}

// A recording: what is bound to its slots, and its parameters.
static keel_status_t execute_add(amdgpu_run_t *run, const keel_cmd_execute_t *execute,
                                 needs_t *needs)
{
    const amdgpu_program_t *program = amdgpu_program_of(execute->recording, amdgpu_run_node(run));
    void *table, *parameters;
    KEEL_TRY(amdgpu_record_piece(run, execute->binding_count * sizeof(table_entry_t), &table));
    KEEL_TRY(amdgpu_record_piece(run, execute->parameter_size, &parameters));
    KEEL_TRY(table_fill(execute, program, &needs->lates, table));
    memcpy(parameters, keel_execute_parameters(execute), execute->parameter_size);
    const step_t step = {program->address, (uintptr_t)table, (uintptr_t)parameters};
    step_add(run, program, needs, &step);
    return NULL;
}

// Commands of the submission itself.
static keel_status_t range_add(amdgpu_run_t *run, const amdgpu_range_t *range, needs_t *needs)
{
    const keel_commands_t *commands = &run->base.submission.commands;
    amdgpu_program_t program = {0};
    keel_status_t status = amdgpu_program_make(amdgpu_run_device(run), commands, range, &program);
    if (status)
        return submission_blame(&run->base.submission, NULL,
                                keel_commands_at(commands, program.failed), status);
    const step_t step = {program.address, program.table, 0};
    step_add(run, &program, needs, &step);
    return NULL;
}

// All as programs: each recording, and what comes between them.
static keel_status_t steps_add(amdgpu_run_t *run, needs_t *needs)
{
    const keel_commands_t *commands = &run->base.submission.commands;
    const keel_command_t *end = keel_commands_end(commands);
    amdgpu_range_t range = {.from = keel_commands_first(commands),
                            .node = amdgpu_run_node(run),
                            .blocks = &run->blocks,
                            .lates = &needs->lates};
    for (const keel_command_t *c = range.from;; c = keel_command_next(c)) {
        if (c != end && c->kind != KEEL_CMD_EXECUTE) continue;
        range.to = c;
        if (range.from != c) KEEL_TRY(range_add(run, &range, needs));
        if (c == end) return NULL;
        const keel_cmd_execute_t *execute = (const keel_cmd_execute_t *)(const void *)c;
        keel_status_t status = execute_add(run, execute, needs);
        if (status) return submission_blame(&run->base.submission, NULL, c, status);
        range.from = keel_command_next(c);
    }
}

// How many references to buffers of pools a submission has, at most.
static uint64_t lates_count(const amdgpu_run_t *run)
{
    const keel_commands_t *commands = &run->base.submission.commands;
    uint64_t count = commands_late(commands, NULL);
    KEEL_EACH_COMMAND (c, commands) {
        const keel_cmd_execute_t *execute = (const keel_cmd_execute_t *)(const void *)c;
        if (c->kind != KEEL_CMD_EXECUTE) continue;
        count +=
            execute_lates(execute, amdgpu_program_of(execute->recording, amdgpu_run_node(run)));
    }
    return count;
}

const keel_cmd_execute_t *amdgpu_step_execute(const amdgpu_run_t *run, uint32_t step)
{
    uint32_t number = 0;
    bool range = false; // commands of the submission itself come before
    KEEL_EACH_COMMAND (c, &run->base.submission.commands) {
        if (c->kind != KEEL_CMD_EXECUTE) {
            range = true;
            continue;
        }
        number += range;
        if (number++ == step) return (const keel_cmd_execute_t *)(const void *)c;
        range = false;
    }
    return NULL;
}

keel_status_t amdgpu_steps_make(amdgpu_run_t *run)
{
    const keel_commands_t *commands = &run->base.submission.commands;
    uint64_t steps = 2 * (uint64_t)commands->count + 1;
    needs_t needs = {0};
    void *lates, *programs, *room;
    if (!(commands->kinds & UINT32_C(1) << KEEL_CMD_EXECUTE)) steps = 1;
    KEEL_TRY(amdgpu_record_piece(run, steps * sizeof(step_t), &programs));
    KEEL_TRY(amdgpu_record_piece(run, lates_count(run) * sizeof(late_t), &lates));
    needs.lates.list = run->lates = lates;
    run->record->steps = (uintptr_t)programs;
    run->record->lates = (uintptr_t)lates;
    KEEL_TRY(steps_add(run, &needs));
    KEEL_TRY(amdgpu_record_piece(run, needs.arguments, &room));
    run->record->arguments = (uintptr_t)room;
    run->record->late_count = needs.lates.count;
    return NULL;
}
