// SPDX-License-Identifier: Apache-2.0
// Submissions as records: all packets are made ahead, behind them the one that retires the record.
// What the host has to take part in, and what refers to memory that is not there yet, is left to
// the host.
#include <string.h>

#include "base/status.h"
#include "drivers/amdgpu/host/scheduler.h"
#include "kit/remote.h"
#include "kit/submission.h"

#define BIT(kind) (UINT32_C(1) << (kind))

// What the GPU does by itself, in recordings and outside of them.
static const uint32_t able = BIT(KEEL_CMD_BARRIER) | BIT(KEEL_CMD_FILL) | BIT(KEEL_CMD_UPDATE) |
                             BIT(KEEL_CMD_COPY) | BIT(KEEL_CMD_DISPATCH) | BIT(KEEL_CMD_TIMESTAMP) |
                             BIT(KEEL_CMD_GROUP_BEGIN) | BIT(KEEL_CMD_GROUP_END) |
                             BIT(KEEL_CMD_EVENT_SET) | BIT(KEEL_CMD_EVENT_WAIT);

static const keel_cmd_dispatch_t *dispatch_of(const keel_command_t *c)
{
    return (const keel_cmd_dispatch_t *)(const void *)c;
}

// Counts in memory are read when the waits are over, which the host does not see.
static bool commands_suit(const keel_commands_t *commands, uint32_t kinds)
{
    if (commands->kinds & ~kinds || commands->count > AMDGPU_RECORD_MOST) return false;
    KEEL_EACH_COMMAND (c, commands)
        if (c->kind == KEEL_CMD_DISPATCH && dispatch_of(c)->counts_kind != KEEL_COUNTS_DIRECT &&
            !keel_ref_is_parameter(&dispatch_of(c)->counts))
            return false;
    return !commands_late(commands, NULL);
}

static bool execute_suits(const keel_cmd_execute_t *execute)
{
    for (uint32_t i = 0; i < execute->binding_count; i++) {
        const keel_buffer_t *buffer = execute->bindings[i].buffer;
        if (buffer && buffer->root->pool) return false;
    }
    return commands_suit(execute->recording->commands, able);
}

// The packets that the commands need, at most; 0 also if they do not suit.
static uint64_t packets_count(const keel_submission_t *submission)
{
    const keel_commands_t *commands = &submission->commands;
    uint64_t count = commands->count;
    if (!commands_suit(commands, able | BIT(KEEL_CMD_EXECUTE))) return 0;
    KEEL_EACH_COMMAND (c, commands) {
        if (c->kind != KEEL_CMD_EXECUTE) continue;
        const keel_cmd_execute_t *execute = (const keel_cmd_execute_t *)(const void *)c;
        if (!execute_suits(execute)) return 0;
        count += execute->recording->commands->count;
    }
    return count + 1;
}

// Without semaphores of the device there is nothing to gain.
static bool has_cells(const keel_submission_t *submission)
{
    const keel_device_t *device = submission->queue->device;
    for (uint32_t i = 0; i < submission->wait_count; i++)
        if (amdgpu_cell_of(submission->waits[i].point.semaphore, device)) return true;
    for (uint32_t i = 0; i < submission->signal_count; i++)
        if (amdgpu_cell_of(submission->signals[i].point.semaphore, device)) return true;
    return false;
}

bool amdgpu_record_suits(const keel_submission_t *submission)
{
    if (!amdgpu_device(submission->queue->device)->scheduler || !has_cells(submission))
        return false;
    uint64_t count = packets_count(submission);
    return count && count <= AMDGPU_RECORD_MOST;
}

static keel_status_t piece(amdgpu_run_t *run, uint64_t size, void **data)
{
    uint64_t address;
    return blocks_piece(&amdgpu_run_device(run)->blocks, NULL, &run->blocks, size, data, &address);
}

// One command, behind what the last barrier is for.
static keel_status_t command_encode(amdgpu_run_t *run, const keel_command_t *c,
                                    const keel_cmd_execute_t *execute)
{
    const uint32_t none = BIT(KEEL_CMD_GROUP_BEGIN) | BIT(KEEL_CMD_GROUP_END) |
                          BIT(KEEL_CMD_EVENT_SET) | BIT(KEEL_CMD_EXECUTE);
    if (keel_command_is_barrier(c->kind)) {
        run->base.barrier |= run->base.now;
        run->base.now = false;
        return NULL;
    }
    keel_status_t status = BIT(c->kind) & none ? NULL : amdgpu_issue(run, c, execute);
    return status ? submission_blame(&run->base.submission, execute, c, status) : NULL;
}

static keel_status_t commands_encode(amdgpu_run_t *run)
{
    KEEL_EACH_COMMAND (c, &run->base.submission.commands) {
        KEEL_TRY(command_encode(run, c, NULL));
        if (c->kind != KEEL_CMD_EXECUTE) continue;
        const keel_cmd_execute_t *execute = (const keel_cmd_execute_t *)(const void *)c;
        KEEL_EACH_COMMAND (inner, execute->recording->commands)
            KEEL_TRY(command_encode(run, inner, execute));
    }
    return NULL;
}

// The last packet waits for all others; its arguments are the beginning of the record.
static void retire_encode(amdgpu_run_t *run)
{
    const amdgpu_kernel_t *kernel = &amdgpu_run_device(run)->scheduler->retire;
    const amdgpu_launch_t launch = {
        .kernel = kernel,
        .groups = {1, 1, 1},
        .group_size = {1, 1, 1},
        .local = kernel->group,
    };
    hsa_kernel_dispatch_packet_t packet;
    amdgpu_packet_make(&launch, run->record->self, &packet);
    packet.header |= 1u << HSA_PACKET_HEADER_BARRIER;
    memcpy(&run->program[run->packets++], &packet, sizeof packet);
}

static void points_encode(amdgpu_run_t *run, cell_point_t *points)
{
    keel_submission_t *submission = &run->base.submission;
    record_t *record = run->record;
    for (uint32_t i = 0; i < submission->wait_count; i++) {
        const submission_wait_t *wait = &submission->waits[i];
        if (!wait->waiter.promise) continue; // it is reached, or will not be looked at again
        cell_t *cell = amdgpu_cell_of(wait->point.semaphore, submission->queue->device);
        if (!cell) continue;
        points[record->wait_count++] = (cell_point_t){(uintptr_t)cell, wait->point.value};
    }
    for (uint32_t i = 0; i < submission->signal_count; i++) {
        signal_t *signal = &submission->signals[i];
        cell_t *cell = amdgpu_cell_of(signal->point.semaphore, submission->queue->device);
        if (!cell) continue;
        signal->native = true;
        points[record->wait_count + record->signal_count++] =
            (cell_point_t){(uintptr_t)cell, signal->point.value};
    }
}

static keel_status_t record_make(amdgpu_run_t *run)
{
    const keel_submission_t *submission = &run->base.submission;
    uint64_t points = (uint64_t)submission->wait_count + submission->signal_count;
    void *record, *program, *list;
    KEEL_TRY(piece(run, sizeof(record_t), &record));
    KEEL_TRY(piece(run, packets_count(submission) * sizeof(packet_t), &program));
    KEEL_TRY(piece(run, (points ? points : 1) * sizeof(cell_point_t), &list));
    run->program = program;
    KEEL_TRY(commands_encode(run));
    run->record = record;
    *run->record = (record_t){
        .scheduler = (uintptr_t)amdgpu_run_device(run)->scheduler->shared,
        .self = (uintptr_t)record,
        .queue = (uintptr_t)amdgpu_queue(submission->queue)->shared,
        .packets = (uintptr_t)program,
        .points = (uintptr_t)list,
        .user = (uintptr_t)run,
    };
    points_encode(run, list);
    retire_encode(run);
    run->record->packet_count = run->packets;
    return NULL;
}

static void run_list(amdgpu_run_t *run)
{
    amdgpu_scheduler_t *s = amdgpu_run_device(run)->scheduler;
    run->flight.next = s->runs;
    run->flight.link = &s->runs;
    if (run->flight.next) run->flight.next->flight.link = &run->flight.next;
    s->runs = run;
}

static void run_unlist(amdgpu_run_t *run)
{
    *run->flight.link = run->flight.next;
    if (run->flight.next) run->flight.next->flight.link = run->flight.link;
}

static uint64_t cancel_number(amdgpu_run_t *run)
{
    keel_status_t why = submission_cancelled(&run->base.submission);
    uint64_t number = amdgpu_cause_add(amdgpu_run_device(run), why);
    keel_status_release(why);
    return number;
}

// False: the device is lost, and takes no more.
static bool record_submit(amdgpu_run_t *run)
{
    amdgpu_device_t *device = amdgpu_run_device(run);
    amdgpu_scheduler_t *s = device->scheduler;
    lock_enter(&s->lock);
    bool lost = atomic_load(&device->failed);
    if (!lost) run_list(run);
    lock_leave(&s->lock);
    if (lost) return false;
    // seq_cst, as the list's lock and who ends the device: one of the two sees the other.
    keel_status_t ended = atomic_load(&device->base.ended);
    if (ended) run->record->cancel = amdgpu_cause_add(device, ended);
    if (!ended && submission_is_cancelled(&run->base.submission))
        run->record->cancel = cancel_number(run);
    PROTOCOL_ADD(&s->shared->live, 1, __ATOMIC_RELAXED); // before the GPU can count it down
    record_push(&s->shared->inbox, run->record);
    amdgpu_scheduler_ask(device);
    return true;
}

static void run_finish(amdgpu_run_t *run)
{
    amdgpu_device_t *device = amdgpu_run_device(run);
    if (run->blocks && blocks_return(&device->blocks, run->blocks, true))
        blocks_trim(&device->blocks);
    run->blocks = NULL;
    run->record = NULL;
    run->program = NULL;
    run->packets = 0;
    run->base.barrier = run->base.now = false;
}

void amdgpu_record_start(keel_submission_t *submission)
{
    amdgpu_run_t *run = (amdgpu_run_t *)(void *)submission;
    amdgpu_device_t *device = amdgpu_run_device(run);
    keel_status_t status = record_make(run);
    if (!status && record_submit(run)) {
        helper_wake(&device->runs.worker);
        return;
    }
    if (!status) status = keel_status_retain(atomic_load(&device->failed));
    run_finish(run);
    submission_end(submission, status);
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

void amdgpu_record_end(amdgpu_run_t *run, keel_status_t failure)
{
    amdgpu_device_t *device = amdgpu_run_device(run);
    lock_enter(&device->scheduler->lock);
    run_unlist(run);
    lock_leave(&device->scheduler->lock);
    if (!failure && run->record->refused)
        signal_leave(&run->base.submission, run->record->refused - 1);
    if (!failure) failure = amdgpu_cause_get(device, run->record->cause);
    run_finish(run);
    submission_end(&run->base.submission, failure);
}
