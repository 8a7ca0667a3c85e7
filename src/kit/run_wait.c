// SPDX-License-Identifier: Apache-2.0
// What a run waits for: what it has begun, and room.
#include "base/status.h"
#include "kit/run.h"
#include "kit/submission.h"

void run_fail(run_t *run, keel_status_t status)
{
    keel_status_t none = NULL;
    if (!atomic_compare_exchange_strong(&run->failure, &none, status)) keel_status_release(status);
}

void run_begin(run_t *run)
{
    atomic_fetch_add(&run->pending, 1);
}

// Has the device's thread go on with it. The device stays until the thread was woken, though the
// caller may have no reference to it.
static void resume(run_t *run)
{
    runs_t *runs = run->runs;
    atomic_fetch_add(&runs->handlers, 1);
    run->next = atomic_load(&runs->ready);
    while (!atomic_compare_exchange_weak(&runs->ready, &run->next, run)) {
    }
    helper_wake(&runs->worker);
    atomic_fetch_sub(&runs->handlers, 1);
}

void run_done(run_t *run)
{
    if (atomic_fetch_sub(&run->pending, 1) == 1) resume(run);
}

void run_done_with(run_t *run, const keel_command_t *command, keel_status_t status)
{
    if (status) run_fail(run, submission_blame(&run->submission, NULL, command, status));
    run_done(run);
}

void run_queue_init(run_queue_t *queue, const char *name, uint32_t most)
{
    chores_init(&queue->calls, name, NULL, queue);
    queue->most = most;
}

bool run_room_take(run_t *run)
{
    run_queue_t *queue = run->queue;
    if (run->has_room) return true;
    lock_enter(&queue->lock);
    run->has_room = queue->taken < queue->most;
    if (run->has_room) {
        queue->taken++;
    } else {
        if (!queue->first) queue->last = &queue->first;
        run->next = NULL;
        *queue->last = run;
        queue->last = &run->next;
    }
    bool has = run->has_room; // who gives some back may go on with it from here on
    lock_leave(&queue->lock);
    return has;
}

void run_room_give_back(run_t *run)
{
    run_queue_t *queue = run->queue;
    if (!run->has_room) return;
    run->has_room = false;
    lock_enter(&queue->lock);
    run_t *next = queue->first;
    if (next) {
        queue->first = next->next;
        next->has_room = true;
    } else {
        queue->taken--;
    }
    lock_leave(&queue->lock);
    if (next) resume(next);
}

bool run_is_busy(run_t *run)
{
    uint32_t pending = atomic_load(&run->pending); // first: what ends meanwhile leaves it too large
    return run->files || pending > 1 + atomic_load(&run->ahead);
}

void run_ahead_begin(run_t *run)
{
    run_begin(run);
    atomic_fetch_add(&run->ahead, 1);
}

void run_ahead_done(run_t *run)
{
    atomic_fetch_sub(&run->ahead, 1);
    run_done(run);
}
