// SPDX-License-Identifier: Apache-2.0
// Submissions as records: what they wait for and what they signal, and how they get to the GPU and
// come back.
#include "drivers/amdgpu/host/record/record.h"

#include "base/status.h"
#include "kit/pool.h"
#include "kit/remote.h"
#include "kit/submission.h"

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

// A record with no work yet, and room for its points.
static keel_status_t record_begin(amdgpu_run_t *run)
{
    const keel_submission_t *submission = &run->base.submission;
    void *record, *waits, *signals;
    KEEL_TRY(amdgpu_record_piece(run, sizeof(record_t), &record));
    KEEL_TRY(amdgpu_record_piece(run, submission->wait_count * sizeof(wait_t), &waits));
    KEEL_TRY(amdgpu_record_piece(run, submission->signal_count * sizeof(cell_point_t), &signals));
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
    KEEL_TRY(record_begin(run));
    KEEL_TRY(amdgpu_grants_add(run));
    KEEL_TRY(amdgpu_steps_make(run));
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
    if (!failure && run->record->fault) failure = amdgpu_record_blame(run);
    if (!failure && run->record->refused)
        signal_leave(&run->base.submission, run->record->refused - 1);
    if (!failure)
        failure = cause;
    else
        keel_status_release(cause);
    run_finish(run);
    submission_end(&run->base.submission, failure);
}
