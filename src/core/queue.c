// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include "base/live.h"
#include "base/lock.h"
#include "base/memory.h"
#include "core/check.h"
#include "core/device_ref.h"
#include "core/recorder.h"
#include "kit/ledger.h"
#include "kit/pool.h"
#include "kit/submission.h"

// False if the device has been closed meanwhile.
static bool queue_link(keel_queue_t *queue)
{
    keel_device_t *device = queue->device;
    lock_enter(device_lock(device));
    if (atomic_load(&device->closed)) {
        lock_leave(device_lock(device));
        return false;
    }
    queue->link.next = device->all_queues;
    if (device->all_queues) device->all_queues->link.previous = queue;
    device->all_queues = queue;
    queue->linked = true;
    lock_leave(device_lock(device));
    return true;
}

static void queue_unlink(keel_queue_t *queue)
{
    keel_device_t *device = queue->device;
    lock_enter(device_lock(device));
    if (queue->link.previous)
        queue->link.previous->link.next = queue->link.next;
    else
        device->all_queues = queue->link.next;
    if (queue->link.next) queue->link.next->link.previous = queue->link.previous;
    lock_leave(device_lock(device));
}

static keel_status_t timeline_create(keel_device_t *device, keel_semaphore_t **timeline)
{
    KEEL_TRY(ledger_create(timeline));
    (*timeline)->device = device;
    (*timeline)->info = (keel_semaphore_info_t){device, ""};
    device_hold(device);
    object_init(&(*timeline)->object);
    return NULL;
}

static keel_status_t options_check(const keel_device_t *device, const keel_queue_options_t *options)
{
    const keel_caps_t *caps = &device->caps;
    CHECK((unsigned)options->family < 32 && (caps->queue_families >> options->family & 1),
          KEEL_UNSUPPORTED,
          "options->family is %d, which the device has not (keel_caps_t.queue_families)",
          (int)options->family);
    CHECK(options->priority >= caps->min_priority && options->priority <= caps->max_priority,
          KEEL_OUT_OF_RANGE, "options->priority is %d; the device takes %d to %d",
          options->priority, caps->min_priority, caps->max_priority);
    CHECK(options->node < caps->nodes, KEEL_OUT_OF_RANGE, "options->node is %u; the device has %u",
          options->node, caps->nodes);
    return NULL;
}

keel_status_t keel_queue_create(keel_device_t *device, const keel_queue_options_t *options,
                                keel_queue_t **queue)
{
    CHECK_NOT_NULL(queue);
    *queue = NULL;
    CHECK_NOT_NULL(device);
    KEEL_TRY(device_check(device));
    keel_queue_options_t own = options ? *options : (keel_queue_options_t){0};
    KEEL_TRY(options_check(device, &own));
    keel_semaphore_t *timeline = NULL;
    KEEL_TRY(timeline_create(device, &timeline));
    char number[16], *name = NULL;
    snprintf(number, sizeof number, "%u", atomic_fetch_add(&device->numbers, 1));
    keel_queue_t *q = NULL;
    keel_status_t status = copy_name(own.name && *own.name ? own.name : number, &name);
    if (!status) status = device->ops->queue_create(device, &own, &q);
    if (status) {
        mem_free(name);
        keel_semaphore_release(timeline);
        return status;
    }
    q->device = device;
    device_hold(device);
    q->info = (keel_queue_info_t){device, own.family, own.priority, own.node, name};
    q->name = name;
    q->timeline = timeline;
    object_init(&q->object);
    live_add(LIVE_QUEUE, 1);
    if (!queue_link(q)) {
        keel_queue_release(q);
        return KEEL_ERROR(KEEL_FAILED_PRECONDITION, "device '%s' is closed", device->name);
    }
    *queue = q;
    return NULL;
}

keel_queue_t *keel_queue_retain(keel_queue_t *queue)
{
    if (queue) object_retain(&queue->object);
    return queue;
}

// Lets go of one of two references, of which the other may be kept for submissions that are not
// there. True: there is none left.
static bool queue_release_kept(keel_queue_t *queue)
{
    bool ours = object_is_ours(&queue->object);
    if (ours) lock_enter(&queue->timeline->lock);
    bool idle = queue->kept && !queue->in_use;
    uint32_t two = 2;
    // acq_rel: as object_release. Under the lock, so that a submission that ends sees it, or we its
    // end.
    bool last =
        idle && atomic_compare_exchange_strong_explicit(&queue->object.refs, &two, 0,
                                                        memory_order_acq_rel, memory_order_relaxed);
    if (!last) last = object_release(&queue->object);
    if (ours) lock_leave(&queue->timeline->lock);
    return last;
}

static bool queue_let_go(keel_queue_t *queue)
{
    uint32_t refs = atomic_load_explicit(&queue->object.refs, memory_order_relaxed);
    while (refs != 2) {
        // acq_rel: as object_release.
        if (atomic_compare_exchange_weak_explicit(&queue->object.refs, &refs, refs - 1,
                                                  memory_order_acq_rel, memory_order_relaxed))
            return refs == 1;
    }
    return queue_release_kept(queue);
}

void keel_queue_release(keel_queue_t *queue)
{
    if (!queue || !queue_let_go(queue)) return;
    keel_device_t *device = queue->device;
    if (object_is_ours(&queue->object)) {
        // The thread that released before us may just be leaving this lock.
        lock_enter(&queue->timeline->lock);
        lock_leave(&queue->timeline->lock);
        if (queue->linked) queue_unlink(queue);
    }
    submission_free_spares(queue);
    keel_semaphore_release(queue->timeline);
    mem_free(queue->name);
    device->ops->queue_destroy(queue);
    live_add(LIVE_QUEUE, -1);
    device_drop(device);
}

keel_semaphore_t *keel_queue_timeline(keel_queue_t *queue)
{
    return queue->timeline;
}

keel_point_t keel_queue_newest(keel_queue_t *queue)
{
    return keel_point(queue->timeline, ledger_last(queue->timeline));
}

const keel_queue_info_t *keel_queue_info(const keel_queue_t *queue)
{
    return &queue->info;
}

static keel_status_t waits_check(keel_points_t waits)
{
    CHECK(waits.points || !waits.count, KEEL_INVALID_ARGUMENT,
          "waits.points is NULL, but waits.count is %zu", waits.count);
    for (size_t i = 0; i < waits.count; i++) KEEL_TRY(point_check(&waits.points[i], "waits", i));
    return NULL;
}

static keel_status_t signals_check(keel_points_t signals)
{
    CHECK(signals.points || !signals.count, KEEL_INVALID_ARGUMENT,
          "signals.points is NULL, but signals.count is %zu", signals.count);
    for (size_t i = 0; i < signals.count; i++) {
        const keel_point_t *point = &signals.points[i];
        CHECK(point->semaphore, KEEL_INVALID_ARGUMENT, "signals[%zu].semaphore is NULL", i);
        CHECK(object_is_ours(&point->semaphore->object), KEEL_DEVICE_LOST,
              "signals[%zu]: the semaphore was made before fork and stayed with the parent process",
              i);
        CHECK(point->semaphore->ops->signal, KEEL_INVALID_ARGUMENT,
              "signals[%zu]: the timeline of a queue is signalled by the queue alone", i);
        CHECK(point->value && point->value < SEMAPHORE_FAILED, KEEL_INVALID_ARGUMENT,
              "signals[%zu].value is %llu; it must be between 1 and 2^63 - 1", i,
              (unsigned long long)point->value);
        CHECK(!point->until, KEEL_INVALID_ARGUMENT,
              "signals[%zu].until is 0x%x; it says what a wait waits for, and is 0 in signals", i,
              point->until);
    }
    return NULL;
}

static void points_fill(keel_submission_t *submission, keel_points_t waits, keel_points_t signals)
{
    for (size_t i = 0; i < waits.count; i++) {
        submission->waits[i] = (submission_wait_t){.point = waits.points[i]};
        if (waits.points[i].semaphore != submission->queue->timeline) // which the queue keeps
            object_retain(&waits.points[i].semaphore->object);
    }
    for (size_t i = 0; i < signals.count; i++) {
        submission->signals[i] = (signal_t){.point = signals.points[i]};
        object_retain(&signals.points[i].semaphore->object);
    }
}

KEEL_HOT static keel_status_t commands_fill(keel_submission_t *submission, const keel_op_t *ops,
                                            size_t count)
{
    keel_queue_t *queue = submission->queue;
    recorder_t recorder;
    recorder_init(&recorder, queue->device, &submission->commands);
    recorder.allowed = queue->info.family == KEEL_QUEUE_TRANSFER ? TRANSFER_OPS : QUEUE_OPS;
    keel_status_t status = recorder_add(&recorder, ops, count);
    if (!status) status = recorder_end(&recorder);
    return status;
}

// Deallocas for which allocas wait may now turn out to wait for those.
__attribute__((noinline)) static void submit_and_look(keel_submission_t *submission)
{
    keel_queue_t *queue = submission->queue; // the caller's
    queue->device->ops->queue_submit(queue, submission);
    pools_look(queue->device);
}

// Never part of its callers, of which there are two: it is to exist once, and be jumped to.
KEEL_HOT __attribute__((noinline)) static keel_status_t
queue_submit(keel_queue_t *queue, keel_points_t waits, const keel_op_t *ops, size_t count,
             keel_points_t signals, keel_point_t *done)
{
    CHECK_NOT_NULL(queue);
    CHECK(ops || !count, KEEL_INVALID_ARGUMENT, "ops is NULL, but count is %zu", count);
    KEEL_TRY(device_check(queue->device));
    KEEL_TRY(waits_check(waits));
    KEEL_TRY(signals_check(signals));
    keel_submission_t *submission;
    KEEL_TRY(submission_create(queue, waits.count, signals.count, &submission));
    points_fill(submission, waits, signals);
    keel_status_t status = commands_fill(submission, ops, count);
    if (!status) status = submission_open(submission);
    if (status) {
        recorder_undo_executes(&submission->commands);
        submission_discard(submission);
        return status;
    }
    if (done) *done = keel_point(queue->timeline, submission->id);
    if (__builtin_expect(submission_may_close(submission), 0))
        submit_and_look(submission);
    else
        queue->device->ops->queue_submit(queue, submission);
    return NULL;
}

// A call of its own, so that one that is not traced keeps nothing for it.
KEEL_COLD __attribute__((noinline)) static keel_status_t
submit_traced(keel_queue_t *queue, keel_points_t waits, const keel_op_t *ops, size_t count,
              keel_points_t signals, keel_point_t *done)
{
    keel_point_t point;
    uint64_t start = trace_now();
    KEEL_TRY(queue_submit(queue, waits, ops, count, signals, &point));
    trace_work_t work = {
        trace_queue(&queue->traced, queue->device->name, queue->name, queue->timeline),
        point.value};
    trace_submit(start, work, (trace_counts_t){count, waits.count, signals.count});
    for (size_t i = 0; i < waits.count; i++)
        trace_need(work, waits.points[i].semaphore, waits.points[i].semaphore->name,
                   waits.points[i].value);
    if (done) *done = point;
    return NULL;
}

KEEL_HOT keel_status_t keel_queue_submit(keel_queue_t *queue, keel_points_t waits,
                                         const keel_op_t *ops, size_t count, keel_points_t signals,
                                         keel_point_t *done)
{
    if (trace_is_on()) return submit_traced(queue, waits, ops, count, signals, done);
    return queue_submit(queue, waits, ops, count, signals, done);
}

keel_status_t keel_queue_cancel(keel_point_t point, keel_cancel_t *was)
{
    CHECK(point.semaphore, KEEL_INVALID_ARGUMENT, "point.semaphore is NULL");
    CHECK(object_is_ours(&point.semaphore->object), KEEL_DEVICE_LOST,
          "the submission was made before fork and stayed with the parent process");
    CHECK(!point.semaphore->ops->signal, KEEL_INVALID_ARGUMENT,
          "semaphore '%s' is no queue's timeline: its points are no submissions",
          TEXT_OF(point.semaphore->name));
    CHECK(point.value && point_exists(&point), KEEL_INVALID_ARGUMENT,
          "the queue has no submission %llu; the last one is %llu", (unsigned long long)point.value,
          (unsigned long long)ledger_last(point.semaphore));
    keel_cancel_t state = submission_cancel(point.semaphore, point.value);
    if (state == KEEL_CANCEL_RUNNING) device_withdraw(point.semaphore->device);
    if (was) *was = state;
    return NULL;
}
