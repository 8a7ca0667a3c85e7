// SPDX-License-Identifier: Apache-2.0
// Submissions as records: programs (program.c), one after the other, and what they are run with.
// What the host has to take part in is left to the host. Buffers of pools are bound by the GPU,
// when the waits are over; so all commands that refer to one must run, or the host goes over them.
#include <string.h>

#include "base/status.h"
#include "drivers/amdgpu/device/program.h"
#include "drivers/amdgpu/host/scheduler.h"
#include "kit/bind.h"
#include "kit/pool.h"
#include "kit/remote.h"
#include "kit/submission.h"

#define BIT(kind) (UINT32_C(1) << (kind))

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

// The recordings of a submission as programs.
static bool executes_suit(const keel_commands_t *commands, uint32_t node)
{
    KEEL_EACH_COMMAND (c, commands) {
        const keel_cmd_execute_t *execute = (const keel_cmd_execute_t *)(const void *)c;
        if (c->kind != KEEL_CMD_EXECUTE) continue;
        const amdgpu_program_t *program = amdgpu_program_of(execute->recording, node);
        if (!program || (program->branches && execute_lates(execute, program))) return false;
    }
    return true;
}

// Whether it waits for semaphores of the device.
static bool waits_for_cells(const keel_submission_t *submission)
{
    const keel_device_t *device = submission->queue->device;
    for (uint32_t i = 0; i < submission->wait_count; i++)
        if (amdgpu_cell_of(submission->waits[i].point.semaphore, device)) return true;
    return false;
}

static bool has_cells(const keel_submission_t *submission)
{
    const keel_device_t *device = submission->queue->device;
    if (waits_for_cells(submission)) return true;
    for (uint32_t i = 0; i < submission->signal_count; i++)
        if (amdgpu_cell_of(submission->signals[i].point.semaphore, device)) return true;
    return false;
}

// An alloca or a dealloca; NULL: it is another command.
static const keel_cmd_alloca_t *alloca_of(const keel_command_t *c)
{
    const bool is = c->kind == KEEL_CMD_ALLOCA || c->kind == KEEL_CMD_DEALLOCA;
    return is ? (const keel_cmd_alloca_t *)(const void *)c : NULL;
}

static bool is_allocated(const keel_commands_t *commands, const keel_buffer_t *buffer)
{
    KEEL_EACH_COMMAND (c, commands)
        if (c->kind == KEEL_CMD_ALLOCA && alloca_of(c)->buffer == buffer) return true;
    return false;
}

// The bin that a buffer takes blocks of: its number, and 1; 0: the host gives it memory.
static uint64_t bin_of(const keel_buffer_t *buffer)
{
    pool_word_t *word = NULL;
    if (!amdgpu_shelf_of(buffer->pool)) return 0;
    keel_status_release(pool_word(buffer, &word));
    return word ? word->bin : 0;
}

// Of the memory of which pool blocks are taken or given back; NULL: of none, or of several, or the
// host has to.
static const keel_pool_t *blocks_pool(const keel_commands_t *commands)
{
    const keel_pool_t *pool = NULL;
    KEEL_EACH_COMMAND (c, commands) {
        const keel_cmd_alloca_t *a = alloca_of(c);
        if (!a) continue;
        const keel_pool_t *own = a->buffer->pool;
        bool lent = c->kind == KEEL_CMD_ALLOCA && a->memory.buffer;
        if (lent || !bin_of(a->buffer) || (pool && pool != own)) return NULL;
        pool = own;
    }
    return pool;
}

// Whether the GPU can run the allocas and deallocas: it takes all blocks before anything runs, and
// gives all back behind the end. Who waits for blocks may have none to give back.
static bool blocks_suit(const keel_commands_t *commands)
{
    enum { MOST = 64 }; // commands
    const uint32_t takes = BIT(KEEL_CMD_ALLOCA), gives = BIT(KEEL_CMD_DEALLOCA);
    uint32_t before = 0;
    if (!(commands->kinds & (takes | gives))) return true;
    if (commands->count > MOST || !blocks_pool(commands)) return false;
    KEEL_EACH_COMMAND (c, commands) {
        if (keel_command_is_barrier(c->kind)) continue;
        if (c->kind == KEEL_CMD_ALLOCA && before & ~takes) return false;
        if (c->kind != KEEL_CMD_DEALLOCA && before & gives) return false;
        if (c->kind == KEEL_CMD_DEALLOCA && commands->kinds & takes &&
            !is_allocated(commands, alloca_of(c)->buffer))
            return false;
        before |= BIT(c->kind);
    }
    return true;
}

// Without recordings, and semaphores of the device, there is nothing to gain.
bool amdgpu_record_suits(const keel_submission_t *submission)
{
    const keel_commands_t *commands = &submission->commands;
    const uint32_t execute = BIT(KEEL_CMD_EXECUTE);
    const uint32_t more = execute | BIT(KEEL_CMD_ALLOCA) | BIT(KEEL_CMD_DEALLOCA);
    if (!amdgpu_device(submission->queue->device)->scheduler) return false;
    if (!(commands->kinds & execute) && !has_cells(submission)) return false;
    if (amdgpu_commands_branch(commands) && commands_late(commands, NULL)) return false;
    return amdgpu_commands_suit(commands, more) && blocks_suit(commands) &&
           executes_suit(commands, submission->queue->info.node);
}

bool amdgpu_request_suits(const keel_submission_t *submission)
{
    return amdgpu_device(submission->queue->device)->scheduler && waits_for_cells(submission);
}

static keel_status_t piece(amdgpu_run_t *run, uint64_t size, void **data)
{
    uint64_t address;
    return amdgpu_run_piece(run, size, data, &address);
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
    KEEL_TRY(piece(run, execute->binding_count * sizeof(table_entry_t), &table));
    KEEL_TRY(piece(run, execute->parameter_size, &parameters));
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

const keel_cmd_execute_t *amdgpu_record_execute(const amdgpu_run_t *run, uint32_t step)
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
    const keel_cmd_execute_t *execute = amdgpu_record_execute(run, late->step);
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
                                pool_mismatch(alloca_of(c)->buffer, given));
    }
    return NULL;
}

static keel_status_t fault_status(const amdgpu_run_t *run)
{
    const record_t *record = run->record;
    uint32_t kind = (uint32_t)(record->fault >> 32);
    if (kind == FAULT_MISSING) return missing_status(run);
    if (kind == FAULT_GRANTED || kind == FAULT_RETURNED)
        return mismatch_status(run, kind == FAULT_RETURNED);
    const keel_cmd_execute_t *execute = amdgpu_record_execute(run, record->step);
    const keel_commands_t *list =
        execute ? execute->recording->commands : &run->base.submission.commands;
    const keel_command_t *command = keel_commands_at(list, (uint32_t)record->fault);
    keel_status_t status = fault_explain(record, command, execute);
    if (!status) status = KEEL_ERROR(KEEL_INTERNAL, "the GPU refuses a command");
    return submission_blame(&run->base.submission, execute, command, status);
}

// The cell that a wait of a submission is for; NULL: it is reached, or will not be looked at again.
static cell_t *wait_cell(const keel_submission_t *submission, const submission_wait_t *wait)
{
    if (!wait->waiter.promise) return NULL;
    return amdgpu_cell_of(wait->point.semaphore, submission->queue->device);
}

static void waits_add(amdgpu_run_t *run)
{
    const keel_submission_t *submission = &run->base.submission;
    record_t *record = run->record;
    wait_t *waits = (wait_t *)(uintptr_t)record->waits;
    uint32_t number = amdgpu_control_of(submission->queue)->number;
    for (uint32_t i = 0; i < submission->wait_count; i++) {
        const submission_wait_t *wait = &submission->waits[i];
        const cell_t *cell = wait_cell(submission, wait);
        if (!cell) continue;
        wait_t *added = &waits[record->wait_count++];
        *added = (wait_t){.side = cell->sides + number * sizeof(cell_side_t),
                          .value = wait->point.value,
                          .self = (uintptr_t)added,
                          .record = record->self};
    }
}

static void signals_add(amdgpu_run_t *run)
{
    keel_submission_t *submission = &run->base.submission;
    record_t *record = run->record;
    cell_point_t *points = (cell_point_t *)(uintptr_t)record->signals;
    for (uint32_t i = 0; i < submission->signal_count; i++) {
        signal_t *signal = &submission->signals[i];
        cell_t *cell = amdgpu_cell_of(signal->point.semaphore, submission->queue->device);
        if (!cell) {
            if (!record->request) record->request = REQUEST_SIGNALS;
            continue;
        }
        signal->native = true;
        points[record->signal_count++] = (cell_point_t){(uintptr_t)cell, signal->point.value};
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

// The buffers that get blocks, and those that give them back.
static keel_status_t handles_add(amdgpu_run_t *run, uint32_t kind, uint64_t *list, uint32_t *count)
{
    const keel_commands_t *commands = &run->base.submission.commands;
    void *handles;
    *count = 0;
    if (!(commands->kinds & BIT(kind))) return NULL;
    KEEL_TRY(piece(run, commands->count * sizeof(uint64_t), &handles));
    *list = (uintptr_t)handles;
    KEEL_EACH_COMMAND (c, commands) {
        pool_word_t *word;
        if (c->kind != kind) continue;
        KEEL_TRY(pool_word(alloca_of(c)->buffer, &word));
        ((uint64_t *)handles)[(*count)++] = (uintptr_t)word;
    }
    return NULL;
}

// The blocks for those that get them, by bins.
static keel_status_t needs_add(amdgpu_run_t *run)
{
    record_t *record = run->record;
    void *needs;
    KEEL_TRY(piece(run, record->grant_count * sizeof(shelf_need_t), &needs));
    record->needs = (uintptr_t)needs;
    for (uint32_t i = 0; i < record->grant_count; i++) {
        uint64_t handle = PROTOCOL_AT(const uint64_t, record->grants)[i];
        uint32_t bin = (uint32_t)PROTOCOL_AT(const handle_t, handle)->bin;
        shelf_need_t *need = needs, *end = need + record->need_count;
        while (need < end && need->bin != bin) need++;
        if (need == end) {
            *need = (shelf_need_t){.bin = bin};
            record->need_count++;
        }
        need->count++;
    }
    return NULL;
}

static keel_status_t blocks_add(amdgpu_run_t *run)
{
    const keel_submission_t *submission = &run->base.submission;
    const keel_pool_t *pool = blocks_pool(&submission->commands);
    record_t *record = run->record;
    if (!pool) return NULL;
    const shelf_t *shelf = amdgpu_shelf_of(pool);
    uint32_t number = amdgpu_control_of(submission->queue)->number;
    record->shelf = (uintptr_t)shelf;
    record->side = shelf->sides + number * sizeof(shelf_side_t);
    KEEL_TRY(handles_add(run, KEEL_CMD_ALLOCA, &record->grants, &record->grant_count));
    KEEL_TRY(needs_add(run));
    return handles_add(run, KEEL_CMD_DEALLOCA, &record->returns, &record->return_count);
}

// A record with no work yet, and room for its points.
static keel_status_t record_begin(amdgpu_run_t *run)
{
    const keel_submission_t *submission = &run->base.submission;
    void *record, *waits, *signals;
    KEEL_TRY(piece(run, sizeof(record_t), &record));
    KEEL_TRY(piece(run, submission->wait_count * sizeof(wait_t), &waits));
    KEEL_TRY(piece(run, submission->signal_count * sizeof(cell_point_t), &signals));
    run->record = record;
    *run->record = (record_t){
        .scheduler = (uintptr_t)amdgpu_control_of(submission->queue)->shared,
        .self = (uintptr_t)record,
        .queue = (uintptr_t)amdgpu_queue(submission->queue)->shared,
        .waits = (uintptr_t)waits,
        .signals = (uintptr_t)signals,
        .user = (uintptr_t)run,
    };
    return NULL;
}

static keel_status_t record_make(amdgpu_run_t *run)
{
    const keel_submission_t *submission = &run->base.submission;
    uint64_t steps = 2 * (uint64_t)submission->commands.count + 1;
    needs_t needs = {0};
    void *lates, *programs, *room;
    if (!(submission->commands.kinds & BIT(KEEL_CMD_EXECUTE))) steps = 1;
    KEEL_TRY(record_begin(run));
    KEEL_TRY(piece(run, steps * sizeof(step_t), &programs));
    KEEL_TRY(piece(run, lates_count(run) * sizeof(late_t), &lates));
    needs.lates.list = run->lates = lates;
    run->record->steps = (uintptr_t)programs;
    run->record->lates = (uintptr_t)lates;
    KEEL_TRY(blocks_add(run));
    KEEL_TRY(steps_add(run, &needs));
    KEEL_TRY(piece(run, needs.arguments, &room));
    run->record->arguments = (uintptr_t)room;
    run->record->late_count = needs.lates.count;
    waits_add(run);
    signals_add(run);
    return NULL;
}

// One whose work is the host's: the GPU waits, and asks.
static keel_status_t request_make(amdgpu_run_t *run)
{
    KEEL_TRY(record_begin(run));
    run->record->request = REQUEST_WORK;
    waits_add(run);
    signals_add(run);
    return NULL;
}

// Under both locks.
static void run_list(amdgpu_run_t *run)
{
    amdgpu_scheduler_t *s = amdgpu_run_device(run)->scheduler;
    run->flight.next = s->runs;
    run->flight.link = &s->runs;
    if (run->flight.next) run->flight.next->flight.link = &run->flight.next;
    s->runs = run;
}

static void run_unlist(amdgpu_scheduler_t *s, const amdgpu_run_t *run)
{
    lock_enter(&s->runs_lock);
    lock_enter(&s->lock);
    *run->flight.link = run->flight.next;
    if (run->flight.next) run->flight.next->flight.link = run->flight.link;
    lock_leave(&s->lock);
    lock_leave(&s->runs_lock);
}

// Why the record is to end before it begins, by the number of the cause; 0: it is not. Under the
// scheduler's lock.
static uint64_t cancel_number(amdgpu_run_t *run)
{
    amdgpu_device_t *device = amdgpu_run_device(run);
    // seq_cst, as the lock and who ends the device: one of the two sees the other.
    keel_status_t ended = atomic_load(&device->base.ended);
    if (ended) return amdgpu_cause_note(device->scheduler, ended);
    if (!submission_is_cancelled(&run->base.submission)) return 0;
    keel_status_t why = submission_cancelled(&run->base.submission);
    uint64_t number = amdgpu_cause_note(device->scheduler, why);
    keel_status_release(why);
    return number;
}

// False: the device is lost, and takes no more. Who ends the records of a lost device takes the
// lock, and so finds none half submitted.
static bool record_submit(amdgpu_device_t *device, amdgpu_run_t *run)
{
    amdgpu_scheduler_t *s = device->scheduler;
    amdgpu_control_t *control = amdgpu_control_of(run->base.submission.queue);
    lock_enter(&s->runs_lock);
    lock_enter(&s->lock);
    bool lost = atomic_load(&device->failed);
    if (!lost) {
        amdgpu_trace_follow(control);
        run_list(run);
        run->record->cancel = cancel_number(run);
        PROTOCOL_ADD(&control->shared->live, 1, __ATOMIC_RELAXED); // before the GPU counts it down
        record_push(&control->shared->inbox, run->record);
    }
    lock_leave(&s->lock);
    lock_leave(&s->runs_lock);
    if (!lost) amdgpu_scheduler_ask(control);
    return !lost;
}

static void run_finish(amdgpu_run_t *run)
{
    amdgpu_device_t *device = amdgpu_run_device(run);
    if (run->blocks && blocks_return(&device->blocks, run->blocks, true))
        blocks_trim(&device->blocks);
    run->blocks = NULL;
    run->record = NULL;
    run->over = false;
}

// There is no memory for a record: the host does it, which may need less.
static void host_take_over(keel_submission_t *submission, keel_status_t no_memory)
{
    keel_status_release(no_memory);
    submission_wait_again(submission, amdgpu_host_start);
}

// Gives the GPU a record that `make` makes.
static void record_start(keel_submission_t *submission, keel_status_t (*make)(amdgpu_run_t *))
{
    amdgpu_run_t *run = (amdgpu_run_t *)(void *)submission;
    amdgpu_device_t *device = amdgpu_run_device(run);
    bool closes = submission_may_close(submission);
    atomic_fetch_add(&device->runs.handlers, 1); // the run may end the device before this is over
    keel_status_t status = make(run);
    bool submitted = !status && record_submit(device, run);
    bool no_memory = amdgpu_is_no_memory(status);
    if (submitted) helper_wake(&device->runs.worker);
    if (submitted && closes) pools_look(&device->base); // a look meanwhile found it nowhere
    if (!submitted && !status) status = amdgpu_lost_cause(device);
    if (!submitted) run_finish(run);
    atomic_fetch_sub(&device->runs.handlers, 1);
    if (no_memory)
        host_take_over(submission, status);
    else if (!submitted)
        submission_end(submission, status);
}

void amdgpu_record_start(keel_submission_t *submission)
{
    record_start(submission, record_make);
}

void amdgpu_request_start(keel_submission_t *submission)
{
    for (uint32_t i = 0; i < submission->wait_count; i++) {
        if (!wait_cell(submission, &submission->waits[i])) continue;
        record_start(submission, request_make);
        return;
    }
    submission_wait_again(submission, amdgpu_host_start); // there is nothing left to wait for
}

// The signal of that number among those that the GPU makes.
static void signal_leave(keel_submission_t *submission, uint32_t number)
{
    for (uint32_t i = 0; i < submission->signal_count; i++) {
        if (!submission->signals[i].native || number--) continue;
        remote_leave(submission, i);
        return;
    }
}

// The GPU asks the host to do it: its waits are over, and nothing of it has run. Its signals are
// the host's then, who wakes the GPU by them.
static void record_leave(amdgpu_run_t *run)
{
    keel_submission_t *submission = &run->base.submission;
    run_finish(run);
    remote_leave(submission, 0);
    submission_wait_again(submission, amdgpu_host_start);
}

void amdgpu_record_end(amdgpu_run_t *run, keel_status_t failure)
{
    amdgpu_device_t *device = amdgpu_run_device(run);
    // Causes are kept while runs are listed.
    keel_status_t cause = failure ? NULL : amdgpu_cause_get(device, run->record->cause);
    run_unlist(device->scheduler, run);
    if (!failure && !run->record->cause && run->record->request == REQUEST_WORK) {
        record_leave(run);
        return;
    }
    if (!failure && run->record->fault) failure = fault_status(run);
    if (!failure && run->record->refused)
        signal_leave(&run->base.submission, run->record->refused - 1);
    if (!failure)
        failure = cause;
    else
        keel_status_release(cause);
    run_finish(run);
    submission_end(&run->base.submission, failure);
}

void amdgpu_queue_cancel(keel_queue_t *queue, keel_status_t cause)
{
    amdgpu_device_t *device = amdgpu_device(queue->device);
    amdgpu_scheduler_t *s = device->scheduler;
    amdgpu_control_t *control = amdgpu_control_of(queue);
    bool some = false;
    lock_enter(&s->lock);
    for (amdgpu_run_t *run = s->runs; run; run = run->flight.next) {
        if (run->base.submission.queue != queue) continue;
        // One that is there stays: the GPU may have read it, and causes are swept by what records
        // hold.
        if (PROTOCOL_LOAD(&run->record->cancel, __ATOMIC_RELAXED)) continue;
        uint64_t number = cancel_number(run);
        PROTOCOL_STORE(&run->record->cancel, number, __ATOMIC_RELAXED);
        some |= number != 0;
    }
    // release: pairs with the acquire of the tick that looks for them.
    if (some && !s->closing) PROTOCOL_SWAP(&control->shared->cancels, 1, __ATOMIC_RELEASE);
    lock_leave(&s->lock);
    if (some) amdgpu_scheduler_ask(control);
}
