// SPDX-License-Identifier: Apache-2.0
#include "kit/submission.h"

#include <stdio.h>
#include <string.h>

#include "base/live.h"
#include "base/memory.h"
#include "base/status.h"
#include "kit/object.h"

enum {
    MAX_SPARES = 1024
}; // submissions a queue keeps for reuse: a burst must not hold memory for ever

static lock_t *queue_lock(keel_queue_t *queue)
{
    return (lock_t *)(void *)&queue->lock;
}

_Static_assert(sizeof(lock_t) == sizeof(((keel_queue_t *)0)->lock),
               "drivers see a lock as its word");

static keel_submission_t *spare_take(keel_queue_t *queue)
{
    lock_enter(queue_lock(queue));
    keel_submission_t *spare = queue->spare;
    if (spare) {
        queue->spare = spare->next;
        queue->spare_count--;
    }
    lock_leave(queue_lock(queue));
    return spare;
}

static bool spare_put(keel_queue_t *queue, keel_submission_t *submission)
{
    lock_enter(queue_lock(queue));
    bool keep = queue->spare_count < MAX_SPARES;
    if (keep) {
        submission->next = queue->spare;
        queue->spare = submission;
        queue->spare_count++;
    }
    lock_leave(queue_lock(queue));
    return keep;
}

void submission_free_spares(keel_queue_t *queue)
{
    while (queue->spare) {
        keel_submission_t *spare = queue->spare;
        queue->spare = spare->next;
        mem_free_aligned(spare);
    }
}

// Lays out the points in `room`, or in memory of their own. Returns the bytes of room used.
static bool points_place(keel_submission_t *submission, unsigned char *room, size_t *used)
{
    size_t waits = submission->wait_count * sizeof(submission_wait_t);
    size_t size = waits + submission->signal_count * sizeof(keel_point_t);
    if (size > SUBMISSION_ROOM / 2) {
        submission->points = room = mem_alloc(size);
        size = 0;
    }
    if (!room) return false;
    submission->waits = (submission_wait_t *)(void *)room;
    submission->signals = (keel_point_t *)(void *)(room + waits);
    *used = (size + 15) & ~(size_t)15;
    return true;
}

keel_submission_t *submission_create(keel_queue_t *queue, size_t waits, size_t signals)
{
    keel_submission_t *submission = spare_take(queue);
    size_t own = (queue->submission_size + 15) & ~(size_t)15;
    if (!submission) submission = mem_zalloc_aligned(own + SUBMISSION_ROOM, 64);
    if (!submission) return NULL;
    *submission = (keel_submission_t){
        .queue = queue,
        .wait_count = (uint32_t)waits,
        .signal_count = (uint32_t)signals,
    };
    unsigned char *room = (unsigned char *)submission + own;
    size_t used = 0;
    if (!points_place(submission, room, &used)) {
        if (!spare_put(queue, submission)) mem_free_aligned(submission);
        return NULL;
    }
    submission->commands.data = submission->commands.fixed = room + used;
    submission->commands.capacity = (uint32_t)(SUBMISSION_ROOM - used);
    object_retain(&queue->object);
    live_add(LIVE_SUBMISSION, 1);
    return submission;
}

void submission_recycle(keel_submission_t *submission)
{
    keel_queue_t *queue = submission->queue;
    for (uint32_t i = 0; i < submission->wait_count; i++)
        keel_semaphore_release(submission->waits[i].point.semaphore);
    for (uint32_t i = 0; i < submission->signal_count; i++)
        keel_semaphore_release(submission->signals[i].semaphore);
    mem_free(submission->points);
    if (!spare_put(queue, submission)) mem_free_aligned(submission);
    live_add(LIVE_SUBMISSION, -1);
    keel_queue_release(queue);
}

void submission_discard(keel_submission_t *submission)
{
    commands_finish(&submission->commands);
    submission_recycle(submission);
}

// What this thread has still to do. `running` is set while somebody up the stack works on it.
static _Thread_local nest_t later;

nest_t submission_nest(void)
{
    nest_t saved = later;
    later = (nest_t){0};
    return saved;
}

void submission_unnest(nest_t saved)
{
    later = saved; // what came in between has been run: nobody was running
    if (later.running && !later.first) later.last = &later.first;
}

void submission_later(keel_submission_t *submission, void (*fn)(keel_submission_t *))
{
    submission->start = fn;
    submission->next = NULL;
    if (later.running) {
        *later.last = submission;
        later.last = &submission->next;
        return;
    }
    later.running = true;
    later.first = submission;
    later.last = &submission->next;
    while (later.first) {
        keel_submission_t *s = later.first;
        later.first = s->next;
        if (!later.first) later.last = &later.first;
        s->start(s);
    }
    later.running = false;
}

static void waiting_link(keel_submission_t *submission)
{
    keel_queue_t *queue = submission->queue;
    lock_enter(queue_lock(queue));
    submission->link.previous = NULL;
    submission->link.next = queue->waiting;
    if (queue->waiting) queue->waiting->link.previous = submission;
    queue->waiting = submission;
    submission->link.listed = true;
    lock_leave(queue_lock(queue));
}

static void waiting_unlink(keel_submission_t *submission)
{
    if (!submission->link.listed) return;
    keel_queue_t *queue = submission->queue;
    lock_enter(queue_lock(queue));
    if (submission->link.previous)
        submission->link.previous->link.next = submission->link.next;
    else
        queue->waiting = submission->link.next;
    if (submission->link.next) submission->link.next->link.previous = submission->link.previous;
    submission->link.listed = false;
    lock_leave(queue_lock(queue));
}

static void submission_fail(keel_submission_t *submission)
{
    submission_end(submission, atomic_load(&submission->failure));
}

// Counts `count` waits as over. The last one decides.
static void submission_resolve(keel_submission_t *submission, uint32_t count)
{
    // acq_rel: what the waits stand for was written before the work starts.
    if (atomic_fetch_sub_explicit(&submission->waits_left, count, memory_order_acq_rel) != count)
        return;
    waiting_unlink(submission);
    submission_later(submission,
                     atomic_load(&submission->failure) ? submission_fail : submission->start);
}

// Gives up the waits that are still linked. The caller holds one count of waits_left.
static void waits_give_up(keel_submission_t *submission)
{
    uint32_t removed = 0;
    for (uint32_t i = 0; i < submission->wait_count; i++)
        removed += point_unwatch(submission->waits[i].point, &submission->waits[i].waiter);
    if (removed) submission_resolve(submission, removed);
}

static void submission_note_failure(keel_submission_t *submission, keel_status_t failure)
{
    keel_status_t none = NULL;
    keel_status_retain(failure);
    if (atomic_compare_exchange_strong(&submission->failure, &none, failure))
        waits_give_up(submission);
    else
        keel_status_release(failure);
}

static void submission_fire(waiter_t *waiter, keel_status_t failure)
{
    keel_submission_t *submission = ((submission_wait_t *)(void *)waiter)->submission;
    if (failure) submission_note_failure(submission, failure);
    submission_resolve(submission, 1);
}

void submission_wait(keel_submission_t *submission, void (*start)(keel_submission_t *))
{
    submission->start = start;
    uint32_t count = submission->wait_count, done = 0;
    if (count == 0) {
        submission_later(submission, start);
        return;
    }
    atomic_store(&submission->waits_left, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        submission->waits[i].submission = submission;
        submission->waits[i].waiter = (waiter_t){.fire = submission_fire};
    }
    waiting_link(submission);
    for (uint32_t i = 0; i < count; i++) {
        keel_status_t failure = NULL;
        point_state_t state =
            point_watch(submission->waits[i].point, &submission->waits[i].waiter, &failure);
        if (state == POINT_PENDING) continue;
        done++;
        if (state == POINT_FAILED) submission_note_failure(submission, failure);
        keel_status_release(failure);
    }
    // A failure that came while we were linking may have missed the later ones.
    if (atomic_load(&submission->failure)) waits_give_up(submission);
    submission_resolve(submission, done + 1);
}

void submission_signal(keel_submission_t *submission, keel_status_t status)
{
    keel_semaphore_t *timeline = submission->queue->timeline;
    // What it used is released before anyone learns that it ended, so that a waiter finds it gone.
    commands_finish(&submission->commands);
    for (uint32_t i = 0; i < submission->signal_count; i++) {
        keel_point_t *signal = &submission->signals[i];
        keel_status_t failure =
            status ? keel_status_retain(status) : timeline_signal(signal->semaphore, signal->value);
        if (failure) timeline_fail(signal->semaphore, failure);
    }
    ledger_end(timeline, submission->id, status);
    keel_status_release(status);
}

void submission_end(keel_submission_t *submission, keel_status_t status)
{
    submission_signal(submission, status);
    submission_recycle(submission);
}

void submission_cancel_all(keel_queue_t *queue, keel_status_t cause)
{
    for (;;) {
        lock_enter(queue_lock(queue));
        keel_submission_t *submission = queue->waiting;
        // A count of ours keeps it from ending while we work on it; none left means that it is
        // being resolved.
        uint32_t left = submission ? atomic_load(&submission->waits_left) : 0;
        while (left && !atomic_compare_exchange_weak(&submission->waits_left, &left, left + 1)) {
        }
        lock_leave(queue_lock(queue));
        if (!submission) return;
        if (!left) continue; // its thread waits for the lock to unlink it
        submission_note_failure(submission, cause);
        submission_resolve(submission, 1);
    }
}

void submission_describe(const keel_submission_t *submission, char *text, size_t size)
{
    snprintf(text, size, "queue '%s', submission %llu",
             submission->queue->name ? submission->queue->name : "",
             (unsigned long long)submission->id);
}
