// SPDX-License-Identifier: Apache-2.0
// Queues: how they are made, take submissions and end.
#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/memory.h"
#include "base/status.h"
#include "drivers/stream/driver.h"
#include "kit/object.h"

enum { STOCK = 64 }; // events that a queue begins with

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
    if (!status) status = stream_launch_slots_make(q);
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
    stream_watchers_init(q, stream_watch);
    helper_init(&q->issuer, "keel-issue", stream_queue_issue_own, q);
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

// Takes a queue apart, on any thread but its own.
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
        if (q->stream && !q->adopted) device->api->stream_destroy(device->vendor, q->stream);
        stream_leave(&entered);
    }
    stream_launch_slots_free(q);
    if (q->returns.last) promise_release(&q->returns.last->promise);
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
        mem_free(q->slots);
        mem_free(q); // its threads, and the vendor's memory, stayed with the parent
        return;
    }
    // What a queue's thread ends may be what kept the queue, or another one, whose thread is just
    // ending the first: each would wait for the other. The keeper waits for both, or the thread
    // that closes the device.
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

void stream_queues_reap(stream_device_t *device)
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

static void run_start(keel_submission_t *submission)
{
    stream_run_t *run = (stream_run_t *)(void *)submission;
    stream_queue_push(stream_run_queue(run), &run->segment);
}

KEEL_HOT void stream_queue_submit(keel_queue_t *queue, keel_submission_t *submission)
{
    stream_queue_t *q = stream_queue(queue);
    stream_run_t *run = (stream_run_t *)(void *)submission;
    memset((char *)run + sizeof run->base, 0, sizeof *run - sizeof run->base);
    run->at = keel_commands_first(&submission->commands);
    const keel_command_t *end = keel_commands_end(&submission->commands);
    run->hosted = __builtin_expect((submission->commands.kinds & STREAM_HOST_KINDS) != 0, 0);
    const stream_device_t *device = stream_device(queue->device);
    if (device->peeks) run->hosted |= stream_submission_peeks(device, submission);
    // A run that begins on the host begins when its points are reached, not when they are promised.
    if (run->hosted && run->at != end && stream_host_is(run->at->kind))
        submission_wait(submission, run_start);
    else if (submission_wait_early(submission, run_start) && inbox_put(&q->inbox, submission))
        stream_queue_issue(q, &run->segment); // the caller keeps the queue
}

// Whether no queue is about to be taken apart. Then no thread of a queue is left that could release
// one.
static bool queues_are_stopped(stream_device_t *device)
{
    lock_enter(&device->lock);
    bool stopped = device->stopped = !stream_queues_are_going(device);
    lock_leave(&device->lock);
    return stopped;
}

void stream_queues_stop(stream_device_t *device)
{
    STREAM_EACH_QUEUE(q, device)
    queue_stop(q);
    // A queue that its own thread is just destroying is dead in a moment, and no thread comes after
    // this one.
    for (stream_queues_reap(device); !queues_are_stopped(device); stream_queues_reap(device))
        sched_yield();
}
