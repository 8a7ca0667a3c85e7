// SPDX-License-Identifier: Apache-2.0
#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/memory.h"
#include "base/status.h"
#include "drivers/stream/stream.h"
#include "kit/object.h"

enum {
    STOCK = 64,      // events that a queue begins with
    ISSUE_RUNS = 64, // that one thread issues for others before it passes the rest on
};

static keel_status_t queue_open(stream_queue_t *q, stream_device_t *device,
                                const keel_queue_options_t *options)
{
    const stream_limits_t *limits = &device->limits;
    // The vendor counts down to the most urgent.
    int32_t priority = limits->least - (options->priority - device->base.caps.min_priority);
    stream_entered_t entered;
    if (!stream_enter(device, &entered)) return stream_device_lost(device);
    keel_status_t status = NULL;
    uint32_t at = 0;
    lock_enter(&device->lock);
    stream_h *given = device->options.adopted;
    while (at < STREAM_ADOPTED - 1 && !given[at]) at++;
    q->stream = given[at];
    q->adopted = q->stream;
    given[at] = NULL;
    lock_leave(&device->lock);
    if (!q->adopted) status = device->api->stream_create(device->vendor, priority, &q->stream);
    if (!status) status = stream_events_get(device, STOCK, &q->spare);
    stream_leave(&entered);
    if (status && q->adopted) {
        lock_enter(&device->lock);
        given[at] = q->stream; // for the next queue
        lock_leave(&device->lock);
    }
    return status;
}

keel_status_t stream_queue_create(keel_device_t *base, const keel_queue_options_t *options,
                                  keel_queue_t **queue)
{
    stream_device_t *device = stream_device(base);
    stream_queue_t *q = mem_zalloc(sizeof *q);
    if (!q) return status_no_memory();
    q->base.device = base;
    q->base.submission_size = sizeof(stream_run_t);
    q->base.early = true;
    q->flight_last = &q->flight;
    stream_watchers_init(q);
    helper_init(&q->issuer, "keel-issue", stream_queue_issue, q);
    chores_init(&q->calls, "keel-caller", NULL, q);
    keel_status_t status = queue_open(q, device, options);
    lock_enter(&device->lock);
    LIST_ADD(device->queues, q);
    lock_leave(&device->lock);
    if (status) {
        stream_queue_destroy(&q->base);
        return stream_device_note(device, status);
    }
    *queue = &q->base;
    return NULL;
}

static void queue_stop(stream_queue_t *q)
{
    chores_stop(&q->calls);
    stream_watchers_stop(q);
    helper_stop(&q->issuer);
}

// Takes it apart, on any thread but its own.
static void queue_dispose(stream_device_t *device, stream_queue_t *q)
{
    queue_stop(q);
    stream_graphs_orphan(device, q);
    stream_events_put(device, q->spare);
    stream_blocks_return(device, q->ring.owned);
    if (q->looked_at) promise_release(&q->looked_at->promise);
    stream_entered_t entered;
    if (stream_enter(device, &entered)) {
        keel_status_release(stream_device_settle(device, q)); // while there is a stream
        stream_watchers_destroy(q);
        stream_shapes_return(q);
        if (q->stream && !q->adopted) device->api->stream_destroy(device->vendor, q->stream);
        stream_leave(&entered);
    }
    if (q->freed) promise_release(&q->freed->promise);
    lock_enter(&device->lock);
    LIST_REMOVE(device->queues, q);
    lock_leave(&device->lock);
    mem_free(q);
}

void stream_queue_destroy(keel_queue_t *queue)
{
    stream_queue_t *q = stream_queue(queue);
    stream_device_t *device = stream_device(queue->device);
    if (!stream_device_is_ours(device)) {
        mem_free(q); // its threads, and the vendor's memory, stayed with the parent
        return;
    }
    // What a queue's thread ends may be what kept the queue, or another one, whose thread is just
    // ending the first: each would wait for the other. The keeper waits for both, or whoever closes
    // the device.
    if (helper_here() && helper_here() != &device->keeper) {
        lock_enter(&device->lock);
        bool later = !device->stopped;
        if (later) atomic_store(&q->dead, true); // the keeper's from then on
        lock_leave(&device->lock);
        if (later) helper_wake(&device->keeper);
        if (later) return;
    }
    queue_dispose(device, q);
}

void stream_queues_bury(stream_device_t *device)
{
    for (;;) {
        lock_enter(&device->lock);
        stream_queue_t *q = device->queues;
        while (q && !atomic_load(&q->dead)) q = q->next;
        lock_leave(&device->lock);
        if (!q) return;
        queue_dispose(device, q);
    }
}

bool stream_queue_stays_full(stream_queue_t *q)
{
    stream_queue_poll(q, false);
    // relaxed: as in stream_queue_is_full.
    return atomic_load_explicit(&q->launches, memory_order_relaxed) -
               atomic_load_explicit(&q->launches_over, memory_order_relaxed) >=
           q->most;
}

// Leaves the right to issue to whoever has all queues held up. False if nobody has any more.
static bool queue_park(stream_queue_t *q, const stream_device_t *device)
{
    atomic_store(&q->parked, true); // and then look; queues_let_go does it the other way round
    return atomic_load(&device->holding) || !atomic_exchange(&q->parked, false);
}

// Issues a run, if given, and what is on the list. False if that was too much: the rest, and the
// right to issue it, are still there. A patient thread may be held up by the stream.
KEEL_HOT static bool queue_drain(stream_queue_t *q, stream_run_t *run, bool patient)
{
    stream_device_t *device = stream_device(q->base.device);
    stream_entered_t entered;
    bool vendor = stream_enter(device, &entered), enough = false, held = false;
    q->most = patient || device->options.serial ? UINT64_MAX : device->most_pending;
    for (uint32_t i = 0; !enough && (run || (run = (stream_run_t *)(void *)inbox_take(&q->inbox)));
         i++, run = NULL) {
        held = atomic_load(&device->holding); // seq_cst: pairs with stream_may_free
        enough = held || (!patient && i >= ISSUE_RUNS) || stream_queue_is_full(q);
        // relaxed: for messages only.
        atomic_store_explicit(&q->at, run->base.id, memory_order_relaxed);
        inbox_set_ours(&q->inbox, true);
        if (__builtin_expect(enough || !stream_run_go(run), 0))
            inbox_put_back(&q->inbox, &run->base);
        inbox_set_ours(&q->inbox, false);
        atomic_store_explicit(&q->at, 0, memory_order_relaxed);
    }
    if (__builtin_expect(vendor, 1)) stream_leave(&entered);
    return held ? queue_park(q, device) : !enough;
}

// Leaves the rest to the queue's own thread; without one the caller has to be patient.
static void queue_pass_on(stream_queue_t *q)
{
    atomic_store(&q->passed_on, true);
    if (!helper_wake(&q->issuer)) stream_queue_issue(q);
}

// Leaves it to the device's, which issues to all queues in turns, and never waits for one.
static void queue_hand_on(stream_queue_t *q)
{
    atomic_store(&q->handed_on, true);
    bool woken = helper_wake(&stream_device(q->base.device)->issuer);
    if (!woken && atomic_exchange(&q->handed_on, false)) queue_pass_on(q);
}

static void queue_issue(stream_queue_t *q, stream_run_t *run)
{
    if (__builtin_expect(queue_drain(q, run, false), 1)) return;
    if (stream_queue_is_full(q))
        queue_pass_on(q);
    else
        queue_hand_on(q);
}

uint64_t stream_queues_issue(void *argument)
{
    stream_device_t *device = argument;
    for (stream_queue_t *q = stream_queue_next(device, NULL); q; q = stream_queue_next(device, q))
        if (atomic_exchange(&q->handed_on, false)) queue_issue(q, NULL);
    return KEEL_FOREVER;
}

void stream_queue_go_on(stream_queue_t *q)
{
    if (atomic_exchange(&q->parked, false)) queue_issue(q, NULL);
}

void stream_queue_shed(stream_queue_t *q)
{
    if (!inbox_claim(&q->inbox)) return;
    stream_events_put(stream_device(q->base.device), q->spare);
    q->spare = NULL;
    if (!inbox_unclaim(&q->inbox)) queue_hand_on(q);
}

void stream_queue_yield(stream_queue_t *q, uint64_t deadline)
{
    // What is issued may end, and what waited for that be issued by the same thread, elsewhere.
    bool ours = inbox_is_ours(&q->inbox), claimed = false;
    while (kept_handle(&q->kept) && !ours && !(claimed = inbox_claim(&q->inbox)) &&
           keel_now_ns() < deadline)
        sched_yield();
    if (ours || claimed) stream_kept_free(q);
    if (claimed && !inbox_unclaim(&q->inbox)) queue_hand_on(q);
}

void stream_queue_push(stream_queue_t *q, stream_run_t *run)
{
    if (!inbox_put(&q->inbox, &run->base)) return;
    object_retain(&q->base.object); // what is issued may end, and the queue with it
    if (waiters_fired() <= ISSUE_RUNS) {
        queue_issue(q, run);
    } else {
        inbox_put_back(&q->inbox, &run->base);
        queue_hand_on(q);
    }
    keel_queue_release(&q->base);
}

KEEL_HOT void stream_queue_submit(keel_queue_t *queue, keel_submission_t *submission)
{
    stream_queue_t *q = stream_queue(queue);
    stream_run_t *run = (stream_run_t *)(void *)submission;
    memset((char *)run + sizeof run->base, 0, sizeof *run - sizeof run->base);
    run->at = keel_commands_first(&submission->commands);
    const keel_command_t *end = keel_commands_end(&submission->commands);
    run->phased = __builtin_expect((submission->commands.kinds & STREAM_HOST_KINDS) != 0, 0);
    const stream_device_t *device = stream_device(queue->device);
    if (device->peeks) run->phased |= stream_submission_peeks(device, submission);
    // A run that begins on the host begins when its points are reached, not when they are promised.
    if (run->phased && run->at != end && stream_host_is(run->at->kind))
        submission_wait(submission, stream_run_start);
    else if (submission_wait_early(submission, stream_run_start) &&
             inbox_put(&q->inbox, submission))
        queue_issue(q, run); // whoever submits keeps the queue
}

uint64_t stream_queue_issue(void *queue)
{
    stream_queue_t *q = queue;
    if (!atomic_exchange(&q->passed_on, false)) return KEEL_FOREVER;
    object_retain(&q->base.object);
    while (!queue_drain(q, NULL, true)) continue;
    keel_queue_release(&q->base);
    return KEEL_FOREVER;
}

bool stream_queues_poll(stream_device_t *device, bool *alone)
{
    // Frees may leave no event behind: those under way, and that thresholds were not looked at for.
    bool busy = atomic_load(&device->frees) != device->relieved && !stream_device_is_lost(device);
    *alone = false;
    for (stream_queue_t *q = stream_queue_next(device, NULL); q; q = stream_queue_next(device, q)) {
        stream_queue_poll(q, true);
        lock_enter(&q->lock);
        busy |= q->flight != NULL;
        *alone |= q->flight && !stream_is_watched(q, q->flight->promise.number);
        lock_leave(&q->lock);
    }
    return busy;
}

// Whether the last reference to a queue has gone, and the queue not yet. If none, and it is for the
// last time: from here on there is no thread of a queue that could let go of one.
bool stream_queues_going(stream_device_t *device, bool last)
{
    lock_enter(&device->lock);
    stream_queue_t *q = device->queues;
    while (q && atomic_load(&q->base.object.refs)) q = q->next;
    if (last) device->stopped = !q;
    lock_leave(&device->lock);
    return q;
}

void stream_queues_stop(stream_device_t *device)
{
    for (stream_queue_t *q = stream_queue_next(device, NULL); q; q = stream_queue_next(device, q))
        queue_stop(q);
    // One that its own thread is just letting go is dead in a moment, and nobody comes after us.
    for (stream_queues_bury(device); stream_queues_going(device, true); stream_queues_bury(device))
        sched_yield();
}
