// SPDX-License-Identifier: Apache-2.0
#include "kit/submission.h"

#include <keel/driver/driver.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/live.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/thread.h"
#include "kit/behind.h"
#include "kit/ledger.h"
#include "kit/object.h"

enum {
    MAX_SPARES = 1024, // submissions a queue keeps for reuse: a burst must not hold memory for ever
    END_AT_ONCE = 32,  // under one lock
};

// Takes one back, under the timeline's lock. False if there are enough already: it is to be freed.
static bool spare_put(keel_queue_t *queue, keel_submission_t *submission)
{
    if (queue->spare_count >= MAX_SPARES) return false;
    submission->next = queue->spare;
    queue->spare = submission;
    queue->spare_count++;
    return true;
}

static keel_submission_t *spare_take(keel_queue_t *queue)
{
    keel_submission_t *spare = queue->spare;
    queue->spare = spare->next;
    queue->spare_count--;
    return spare;
}

// Sees to it that the next one can be taken without the lock, under the lock.
KEEL_HOT static void spare_ready(keel_queue_t *queue)
{
    if (!queue->spare || atomic_load_explicit(&queue->ready, memory_order_relaxed)) return;
    // release: pairs with the acquire in submission_memory.
    atomic_store_explicit(&queue->ready, spare_take(queue), memory_order_release);
}

void submission_free_spares(keel_queue_t *queue)
{
    mem_free_aligned(atomic_load(&queue->ready));
    while (queue->spare) mem_free_aligned(spare_take(queue));
}

static size_t submission_own_size(const keel_queue_t *queue)
{
    return (queue->submission_size + 15) & ~(size_t)15;
}

// Lays out the points in `room`, or in memory of their own. *used: the bytes of room used.
static bool points_place(keel_submission_t *submission, size_t waits, size_t signals,
                         unsigned char *room, size_t *used)
{
    size_t before = waits * sizeof(submission_wait_t);
    size_t size = before + signals * sizeof(signal_t);
    if (size > SUBMISSION_ROOM / 2) {
        submission->points = room = mem_alloc(size);
        size = 0;
    }
    if (!room) return false;
    submission->wait_count = (uint32_t)waits;
    submission->signal_count = (uint32_t)signals;
    submission->waits = (submission_wait_t *)(void *)room;
    submission->signals = (signal_t *)(void *)(room + before);
    *used = (size + 15) & ~(size_t)15;
    return true;
}

static keel_submission_t *submission_memory(keel_queue_t *queue)
{
    // acquire: pairs with spare_ready.
    keel_submission_t *ready = atomic_exchange_explicit(&queue->ready, NULL, memory_order_acquire);
    if (__builtin_expect(ready != NULL, 1)) return ready;
    lock_enter(&queue->timeline->lock);
    keel_submission_t *spare = queue->spare ? spare_take(queue) : NULL;
    lock_leave(&queue->timeline->lock);
    return spare ? spare : mem_zalloc_aligned(submission_own_size(queue) + SUBMISSION_ROOM, 64);
}

KEEL_HOT keel_status_t submission_create(keel_queue_t *queue, size_t waits, size_t signals,
                                         keel_submission_t **made)
{
    keel_submission_t *submission = submission_memory(queue);
    if (!submission) return status_no_memory();
    *submission = (keel_submission_t){.queue = queue};
    live_add(LIVE_SUBMISSION, 1);
    unsigned char *room = (unsigned char *)submission + submission_own_size(queue);
    size_t used = 0;
    if (!points_place(submission, waits, signals, room, &used)) {
        submission_discard(submission);
        return status_no_memory();
    }
    submission->commands.data = submission->commands.fixed = room + used;
    submission->commands.capacity = (uint32_t)(SUBMISSION_ROOM - used);
    *made = submission;
    return NULL;
}

// Gives up what it holds of others, but for the queue.
static void submission_clear(keel_submission_t *submission)
{
    keel_queue_t *queue = submission->queue;
    for (uint32_t i = 0; i < submission->wait_count; i++) {
        promise_release(submission->waits[i].waiter.promise);
        if (submission->waits[i].point.semaphore != queue->timeline) // which the queue keeps
            keel_semaphore_release(submission->waits[i].point.semaphore);
    }
    for (uint32_t i = 0; i < submission->signal_count; i++)
        keel_semaphore_release(submission->signals[i].point.semaphore);
    mem_free(submission->points);
}

// The memory goes back, under the timeline's lock. True for the last one: the caller gives up what
// the queue's submissions hold of it together, outside of the lock.
static bool submission_return(keel_submission_t *submission)
{
    keel_queue_t *queue = submission->queue;
    if (!spare_put(queue, submission)) mem_free_aligned(submission);
    if (--queue->in_use) return false;
    spare_ready(queue); // no other thread is there to do it
    // Without work it is kept for the next, as long as a reference to submit by is left. The thread
    // that releases the last one then looks after us, under the lock (keel_queue_release).
    queue->kept = atomic_load_explicit(&queue->object.refs, memory_order_relaxed) != 1;
    return !queue->kept;
}

void submission_recycle(keel_submission_t *submission)
{
    keel_queue_t *queue = submission->queue;
    submission_clear(submission);
    lock_enter(&queue->timeline->lock);
    bool last = submission_return(submission);
    lock_leave(&queue->timeline->lock);
    live_add(LIVE_SUBMISSION, -1);
    if (last) keel_queue_release(queue);
}

void submission_discard(keel_submission_t *submission)
{
    keel_queue_t *queue = submission->queue;
    commands_finish(&submission->commands);
    submission_clear(submission);
    lock_enter(&queue->timeline->lock);
    bool kept = spare_put(queue, submission);
    lock_leave(&queue->timeline->lock);
    if (!kept) mem_free_aligned(submission);
    live_add(LIVE_SUBMISSION, -1);
}

// What this thread does, and has still to do. `later.running` is set while a call up the
// stack works on it, which was inside `later.nest` then.
typedef struct later_t {
    keel_submission_t *first, **last;
    const nest_t *nest;
    bool running;
} later_t;
static THREAD_LOCAL nest_t *inside;
static THREAD_LOCAL later_t later;

void submission_nest(nest_t *nest, const keel_device_t *device)
{
    nest->outer = inside;
    nest->device = device;
    inside = nest;
}

void submission_unnest(nest_t *nest)
{
    inside = nest->outer;
}

bool submission_is_inside(const keel_device_t *device)
{
    for (const nest_t *nest = inside; nest; nest = nest->outer)
        if (nest->device == device) return true;
    return false;
}

void submission_later(keel_submission_t *submission, void (*fn)(keel_submission_t *))
{
    submission->start = fn;
    submission->next = NULL;
    if (later.running && later.nest == inside) {
        *later.last = submission;
        later.last = &submission->next;
        return;
    }
    later_t outer = later; // of those outside of what we are inside of: they go on when we return
    later = (later_t){submission, &submission->next, inside, true};
    while (later.first) {
        keel_submission_t *s = later.first;
        later.first = s->next;
        if (!later.first) later.last = &later.first;
        s->start(s);
    }
    later = outer;
}

static void submission_fail(keel_submission_t *submission)
{
    submission_end(submission, atomic_exchange(&submission->failure, NULL));
}

// Counts `count` waits as over. The last one decides.
static void submission_resolve(keel_submission_t *submission, uint32_t count)
{
    // acq_rel: what the waits stand for was written before the work starts.
    if (atomic_fetch_sub_explicit(&submission->waits_left, count, memory_order_acq_rel) != count)
        return;
    submission_later(submission,
                     atomic_load(&submission->failure) ? submission_fail : submission->start);
}

// Gives up the waits that are still linked. The caller holds one count of waits_left.
static void waits_give_up(keel_submission_t *submission)
{
    uint32_t removed = 0;
    for (uint32_t i = 0; i < submission->wait_count; i++)
        removed += point_unwatch(&submission->waits[i].point, &submission->waits[i].waiter);
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
    // What waits for the end of other work is told of it when the device ends, too, and must not
    // begin.
    if (waiter->ended) failure = atomic_load(&submission->queue->device->ended);
    if (failure) submission_note_failure(submission, failure);
    submission_resolve(submission, 1);
}

// Most often they are, and then nothing needs to be linked anywhere.
static bool waits_are_over(const keel_submission_t *submission)
{
    for (uint32_t i = 0; i < submission->wait_count; i++)
        if (!point_is_past(&submission->waits[i].point)) return false;
    return true;
}

// The same, if promises of the device will do.
static bool waits_are_promised(keel_submission_t *submission)
{
    for (uint32_t i = 0; i < submission->wait_count; i++) {
        submission_wait_t *wait = &submission->waits[i];
        if (wait->waiter.promise || point_is_past(&wait->point)) continue;
        if (wait->point.until) return false; // more than a promise is to be looked at
        promise_t *promise = point_promise(&wait->point);
        // Only a ledger's is for this very value; of others the watch finds out.
        bool for_this = promise && (!promise->may_fail || wait->point.semaphore->ops->one_queue);
        if (!for_this || !promise_serves(promise, submission->queue->device)) {
            promise_release(promise);
            return false;
        }
        wait->waiter.promise = promise;
    }
    return true;
}

// Links the waits to their points; those that are over, or promised, are counted at once.
static void waits_link(keel_submission_t *submission, const keel_device_t *early)
{
    uint32_t count = submission->wait_count, done = 0;
    for (uint32_t i = 0; i < count; i++) {
        submission->waits[i].submission = submission;
        submission->waits[i].waiter.fire = submission_fire;
        submission->waits[i].waiter.asks = true;
        submission->waits[i].waiter.early = early;
    }
    // seq_cst, as are device_end and submission_ask: they see that this one waits, or this one sees
    // that the device has ended, or that it is cancelled.
    atomic_store(&submission->waits_left, count + 1);
    if (atomic_load(&submission->queue->device->ended) || atomic_load(&submission->cancelled)) {
        keel_status_t cause = submission_cancelled(submission);
        submission_note_failure(submission, cause);
        keel_status_release(cause);
    }
    for (uint32_t i = 0; i < count; i++) {
        keel_status_t failure = NULL;
        point_state_t state = POINT_PROMISED;
        if (!submission->waits[i].waiter.promise)
            state =
                point_watch(&submission->waits[i].point, &submission->waits[i].waiter, &failure);
        if (state == POINT_PENDING) continue;
        done++;
        if (state == POINT_FAILED) submission_note_failure(submission, failure);
        keel_status_release(failure);
    }
    // A failure that came while we were linking may have missed the later ones.
    if (atomic_load(&submission->failure)) waits_give_up(submission);
    submission_resolve(submission, done + 1);
}

// A link of a chain: what waits for one point of its own queue, under the timeline's lock.
static void chain_link(keel_submission_t *submission)
{
    submission_wait_t *wait = submission->waits;
    keel_queue_t *queue = submission->queue;
    if (submission->wait_count != 1 || wait->point.semaphore != queue->timeline) return;
    if (__builtin_expect(wait->point.until & KEEL_UP_TO, 0)) return;
    if (queue->early) {
        const promise_t *promise = ledger_promise_of(queue->timeline, wait->point.value);
        submission->follows =
            promise && promise_serves(promise, queue->device) && !promise->may_fail;
        return;
    }
    wait->submission = submission;
    wait->waiter.fire = submission_fire;
    wait->waiter.asks = true;
    waiter_aim(&wait->waiter, &wait->point);
    atomic_store_explicit(&submission->waits_left, 2, memory_order_relaxed); // under the lock
    submission->linked = ledger_link(queue->timeline, &wait->waiter);
    if (!submission->linked)
        atomic_store_explicit(&submission->waits_left, 0, memory_order_relaxed);
}

KEEL_HOT keel_status_t submission_open(keel_submission_t *submission)
{
    keel_queue_t *queue = submission->queue;
    lock_enter(&queue->timeline->lock);
    ledger_result_t opened = ledger_open(queue->timeline, submission, &submission->id);
    if (opened == LEDGER_OPENED) {
        queue->in_use++;
        if (!queue->kept) object_retain(&queue->object);
        queue->kept = true;
        chain_link(submission);
        spare_ready(queue);
    }
    lock_leave(&queue->timeline->lock);
    if (opened == LEDGER_CLOSED)
        return KEEL_ERROR(KEEL_FAILED_PRECONDITION, "device '%s' is closed", queue->device->name);
    return opened == LEDGER_OPENED ? NULL : status_no_memory();
}

void submission_wait(keel_submission_t *submission, void (*start)(keel_submission_t *))
{
    submission->start = start;
    if (submission->linked)
        submission_resolve(submission, 1);
    else if (waits_are_over(submission))
        submission_later(submission, start);
    else
        waits_link(submission, NULL);
}

bool submission_wait_promised(keel_submission_t *submission, void (*start)(keel_submission_t *))
{
    if (waits_are_promised(submission)) return true;
    submission->start = start;
    waits_link(submission, submission->queue->device);
    return false;
}

void submission_wait_again(keel_submission_t *submission, void (*start)(keel_submission_t *))
{
    for (uint32_t i = 0; i < submission->wait_count; i++) {
        promise_release(submission->waits[i].waiter.promise);
        submission->waits[i].waiter.promise = NULL;
    }
    submission->linked = false; // what was linked has come
    submission_wait(submission, start);
}

// How far it has waited for the semaphore that it signals.
KEEL_COLD static uint64_t waited_for(const keel_submission_t *submission,
                                     const keel_semaphore_t *semaphore)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < submission->wait_count; i++) {
        const keel_point_t *point = &submission->waits[i].point;
        if (point->semaphore == semaphore && point->value > value && !point->until)
            value = point->value;
    }
    return value;
}

KEEL_HOT void submission_promise(keel_submission_t *submission, promise_t *promise)
{
    for (uint32_t i = 0; promise->device && i < submission->signal_count; i++) {
        signal_t *signal = &submission->signals[i];
        signal->promise = promise;
        if (__builtin_expect(promise->may_fail, 0))
            signal->after = waited_for(submission, signal->point.semaphore);
        signal->point.semaphore->ops->promise(signal);
    }
    ledger_promise(submission->queue->timeline, submission->id, promise);
}

trace_work_t submission_traced(const keel_submission_t *submission)
{
    keel_queue_t *queue = submission->queue;
    return (trace_work_t){
        trace_queue(&queue->traced, queue->device->name, queue->name, queue->timeline),
        submission->id};
}

KEEL_COLD __attribute__((noinline)) static void submissions_trace(const keel_submission_t *first,
                                                                  const keel_submission_t *rest,
                                                                  keel_status_t status)
{
    for (const keel_submission_t *s = first; s != rest; s = s->next)
        trace_end(submission_traced(s), status ? status : atomic_load(&s->failure));
}

// Releases what they used, up to `rest`, before anyone learns that they ended, so that a waiter
// finds it gone. A single one has ended with `status`, of several each with its `failure`.
static void submissions_release(keel_submission_t *first, const keel_submission_t *rest,
                                keel_status_t status)
{
    nest_t nest; // calls are abandoned here, and imported memory may be released
    submission_nest(&nest, first->queue->device);
    for (keel_submission_t *s = first; s != rest; s = s->next) {
        if (__builtin_expect(s->commands.kinds >> KEEL_CMD_HOST_CALL & 1, 0))
            commands_abandon(&s->commands, status ? status : atomic_load(&s->failure));
        commands_finish(&s->commands);
    }
    submission_unnest(&nest);
    if (trace_is_on()) submissions_trace(first, rest, status);
}

// A signal cannot be made, and the submission is to blame: both fail. Consumes `refusal`; returns
// what the submission ends with.
KEEL_COLD static keel_status_t submission_refused(const keel_submission_t *submission,
                                                  uint32_t index, keel_status_t refusal)
{
    char path[256];
    keel_semaphore_t *semaphore = submission->signals[index].point.semaphore;
    snprintf(path, sizeof path, "queue '%s', submission %llu > signals[%u]",
             submission->queue->name, (unsigned long long)submission->id, index);
    refusal = status_at(refusal, path);
    semaphore->ops->fail(semaphore, keel_status_retain(refusal));
    return refusal;
}

// Signals all but the queue's own point. Consumes `status` and returns what takes its place: if a
// signal cannot be made, it and those after it fail.
static keel_status_t submission_signal_others(keel_submission_t *submission, keel_status_t status)
{
    for (uint32_t i = 0; i < submission->signal_count; i++) {
        signal_t *signal = &submission->signals[i];
        keel_status_t refusal = signal->point.semaphore->ops->settle(signal, status);
        if (__builtin_expect(refusal != NULL, 0))
            status = submission_refused(submission, i, refusal);
    }
    return status;
}

static void ended_fire(const ledger_ended_t *ended, keel_status_t status)
{
    if (ended->waiters) waiters_fire(ended->waiters, status);
    if (__builtin_expect(ended->for_all || ended->behind, 0)) {
        waiters_fire(ended->for_all, NULL);
        waiters_fire(ended->behind, ended->cause);
        keel_status_release(ended->cause);
    }
    if (__builtin_expect(status != NULL, 0)) keel_status_release(status);
}

void submission_signal(keel_submission_t *submission, keel_status_t status)
{
    keel_semaphore_t *timeline = submission->queue->timeline;
    submissions_release(submission, submission->next, status);
    status = submission_signal_others(submission, status);
    lock_enter(&timeline->lock);
    ledger_ended_t ended = ledger_end(timeline, submission->id, status);
    lock_leave(&timeline->lock);
    ended_fire(&ended, status);
}

// Ends the first few before `rest` at once, up
// to one that has waiters. Returns what is next.
static keel_submission_t *submissions_end(keel_submission_t *first, const keel_submission_t *rest)
{
    keel_queue_t *queue = first->queue;
    ledger_ended_t ended = {0};
    keel_status_t status = NULL;
    bool last = false;
    int count = 0;
    lock_enter(&queue->timeline->lock);
    for (; first != rest && count < END_AT_ONCE && !status && !ended.waiters && !ended.for_all &&
           !ended.behind;
         count++) {
        keel_submission_t *submission = first;
        first = submission->next;
        status = atomic_load_explicit(&submission->failure, memory_order_relaxed);
        ended = ledger_end(queue->timeline, submission->id, status);
        last = submission_return(submission);
    }
    lock_leave(&queue->timeline->lock);
    live_add(LIVE_SUBMISSION, -count);
    ended_fire(&ended, status);
    if (last) keel_queue_release(queue);
    return first;
}

void submission_end_all(keel_submission_t *first)
{
    submissions_release(first, NULL, NULL);
    // Signals are made after the points of all that may have come before.
    while (first) {
        keel_submission_t *rest = first;
        do {
            // relaxed: no other thread looks at it any more.
            keel_status_t status = atomic_load_explicit(&rest->failure, memory_order_relaxed);
            status = submission_signal_others(rest, status);
            atomic_store_explicit(&rest->failure, status, memory_order_relaxed);
            submission_clear(rest);
            rest = rest->next;
        } while (rest && !rest->signal_count);
        while (first != rest) first = submissions_end(first, rest);
    }
}

void submission_end(keel_submission_t *submission, keel_status_t status)
{
    keel_queue_t *queue = submission->queue;
    submission->next = NULL; // it may be in a list of the driver's
    submissions_release(submission, NULL, status);
    status = submission_signal_others(submission, status);
    submission_clear(submission);
    lock_enter(&queue->timeline->lock);
    ledger_ended_t ended = ledger_end(queue->timeline, submission->id, status);
    bool last = submission_return(submission);
    lock_leave(&queue->timeline->lock);
    live_add(LIVE_SUBMISSION, -1);
    ended_fire(&ended, status);
    if (last) keel_queue_release(queue);
}

// A count of ours keeps one that waits from ending while we work on it.
static bool submission_pin(keel_submission_t *submission)
{
    uint32_t left = atomic_load(&submission->waits_left);
    while (left && !atomic_compare_exchange_weak(&submission->waits_left, &left, left + 1)) {
    }
    return left != 0;
}

// Under the timeline's lock, which keeps it from being recycled: asks it to end. True if it waits:
// then it is pinned, and the caller gives it up, without the lock.
static bool submission_ask(keel_submission_t *submission)
{
    atomic_store(&submission->cancelled, true); // seq_cst: pairs with waits_link
    return submission_pin(submission);
}

static void submission_give_up(keel_submission_t *submission, keel_status_t cause)
{
    submission_note_failure(submission, cause);
    submission_resolve(submission, 1);
}

static keel_status_t cancel_cause(const keel_queue_t *queue, uint64_t id)
{
    keel_status_t ended = atomic_load(&queue->device->ended);
    if (ended) return keel_status_retain(ended);
    return KEEL_ERROR(KEEL_CANCELLED, "queue '%s', submission %llu was cancelled", queue->name,
                      (unsigned long long)id);
}

keel_cancel_t submission_cancel(keel_semaphore_t *timeline, uint64_t id)
{
    lock_enter(&timeline->lock);
    const slot_t *slot = id <= ledger_last(timeline) ? ledger_slot(ledger_of(timeline), id) : NULL;
    keel_submission_t *submission = slot ? slot->owner : NULL;
    bool waits = submission && submission_ask(submission);
    keel_queue_t *queue = submission ? keel_queue_retain(submission->queue) : NULL;
    lock_leave(&timeline->lock);
    if (!submission) return KEEL_CANCEL_ENDED;
    keel_status_t cause = cancel_cause(queue, id);
    if (waits)
        submission_give_up(submission, cause);
    else if (queue->device->ops->queue_cancel)
        queue->device->ops->queue_cancel(queue, cause);
    keel_status_release(cause);
    keel_queue_release(queue);
    return waits ? KEEL_CANCEL_WAITING : KEEL_CANCEL_RUNNING;
}

void submission_cancel_all(keel_queue_t *queue, keel_status_t cause)
{
    keel_semaphore_t *timeline = queue->timeline;
    keel_submission_t *submission;
    uint64_t value = 0;
    for (;;) {
        lock_enter(&timeline->lock);
        do {
            submission = ledger_next(timeline, &value);
        } while (submission && !submission_ask(submission));
        lock_leave(&timeline->lock);
        if (!submission) return;
        submission_give_up(submission, cause);
    }
}

keel_submission_t *submission_hold_next(keel_queue_t *queue, uint64_t *id)
{
    keel_submission_t *submission;
    lock_enter(&queue->timeline->lock);
    do {
        submission = ledger_next(queue->timeline, id);
    } while (submission && !submission_pin(submission));
    lock_leave(&queue->timeline->lock);
    return submission;
}

void submission_let_go(keel_submission_t *submission)
{
    submission_resolve(submission, 1);
}

keel_status_t submission_cancelled(const keel_submission_t *submission)
{
    return cancel_cause(submission->queue, submission->id);
}

keel_status_t submission_blame(const keel_submission_t *submission,
                               const keel_cmd_execute_t *execute, const keel_command_t *command,
                               keel_status_t status)
{
    char path[512];
    const keel_commands_t *commands = &submission->commands;
    snprintf(path, sizeof path, "queue '%s', submission %llu > ", submission->queue->name,
             (unsigned long long)submission->id);
    if (execute) {
        commands_describe(commands, &execute->head, path, sizeof path);
        strncat(path, " > ", sizeof path - strlen(path) - 1);
        commands = execute->recording->commands;
    }
    commands_describe(commands, command, path, sizeof path);
    return status_at(status, path);
}

uint64_t submission_first(keel_queue_t *queue)
{
    uint64_t value = 0;
    lock_enter(&queue->timeline->lock);
    if (!ledger_next(queue->timeline, &value)) value = 0;
    lock_leave(&queue->timeline->lock);
    return value;
}

void submission_names_add(submission_names_t *names, const keel_queue_t *queue, uint64_t id)
{
    enum { MORE = 80 }; // bytes kept for how many have no room, of which no part is shown
    size_t room = sizeof names->text - MORE - names->length, left;
    const char *words = names->length ? "" : names->words;
    size_t size =
        (size_t)snprintf(names->text + names->length, room, "; %squeue '%s', submission %llu",
                         words, queue->name, (unsigned long long)id);
    left = names->left += size >= room;
    if (size < room) names->length += size;
    if (left)
        snprintf(names->text + names->length, MORE, "; %s%zu more queue%s",
                 names->length ? "" : words, left, left > 1 ? "s" : "");
}
