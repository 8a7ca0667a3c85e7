// SPDX-License-Identifier: Apache-2.0
// Queues: where work is submitted.
//
// A submission waits for points, runs operations, and signals points. Queues are not FIFO: two
// submissions are ordered only if one waits for a point the other signals. Each submission is also
// a point on the queue's own timeline, so simple programs need no semaphore:
//
//     keel_point_t filled, copied;
//     KEEL_TRY(keel_queue_fill(q, KEEL_NO_WAITS, keel_whole(x), 0, 4, &filled));
//     KEEL_TRY(keel_queue_copy(q, KEEL_AFTER(filled), keel_whole(x), keel_whole(y), &copied));
//     KEEL_TRY(keel_wait(KEEL_POINTS(copied), KEEL_ALL, KEEL_FOREVER));
//
// Submitting never waits for points, memory or other work, however much is in flight. On
// cpu://inline it runs the work, if its waits are satisfied. If it returns an error, nothing was
// submitted and nothing will be signalled. An error that shows only when the work runs fails the
// submission's points.
//
// A device starts with one queue per node (keel_device_queue). More queues let independent work
// overlap, or give it another priority. Queues of a higher priority get workers first. Queues of
// the same priority share them.
//
// Any thread may call every function, for the same queue, too. Only keel_queue_wait_idle waits.
#ifndef KEEL_QUEUE_H_
#define KEEL_QUEUE_H_

#include <keel/op.h>
#include <keel/pool.h>

// What a queue can run. keel_caps_t.queue_families says which families a device has.
typedef enum keel_queue_family_t {
    KEEL_QUEUE_COMPUTE,  // everything
    KEEL_QUEUE_TRANSFER, // everything but dispatches and recordings
} keel_queue_family_t;

// What a submission did when it was cancelled.
typedef enum keel_cancel_t {
    KEEL_CANCEL_WAITING, // it waited for its points: it fails, and the device never sees it
    KEEL_CANCEL_RUNNING, // it was the device's, which ends it as soon as it can
    KEEL_CANCEL_ENDED,   // it had ended: nothing changes
} keel_cancel_t;

// How to make a queue.
typedef struct keel_queue_options_t {
    keel_queue_family_t family;
    int32_t priority; // between keel_caps_t.min_priority and max_priority; higher runs first
    uint32_t node;    // which node of the device; below keel_caps_t.nodes
    const char *name; // used in messages; NULL: its number among the queues that the device made
} keel_queue_options_t;

// What keel_queue_info tells about a queue: what it was made with. `name` is its number if it was
// made without a name.
//
// The device is borrowed: a queue keeps the memory of its device, but does not keep it open. The
// name is borrowed from the queue.
typedef struct keel_queue_info_t {
    keel_device_t *device;      // whose it is
    keel_queue_family_t family; // what it can run
    int32_t priority;           // higher runs first
    uint32_t node;              // which node of the device
    const char *name;           // used in messages
} keel_queue_info_t;

KEEL_EXTERN_C_BEGIN

// Makes a queue. `options` may be NULL: a compute queue of priority 0 on node 0.
//
// KEEL_UNSUPPORTED for a family that the device does not have. KEEL_OUT_OF_RANGE for a priority or
// a node that it does not have.
KEEL_API keel_status_t keel_queue_create(keel_device_t *device, const keel_queue_options_t *options,
                                         keel_queue_t **queue) KEEL_MUST_USE;

// Adds a reference and returns `queue`. NULL is fine.
KEEL_API keel_queue_t *keel_queue_retain(keel_queue_t *queue);

// Gives up a reference. Submissions in flight hold the queue and run to their end. Points on the
// queue's timeline are valid as long as the application holds the queue or the timeline. NULL is
// fine. Does not wait for work.
KEEL_API void keel_queue_release(keel_queue_t *queue);

// Returns the semaphore on which each submission of the queue is a point. Borrowed; retain it to
// keep it beyond the queue.
KEEL_API keel_semaphore_t *keel_queue_timeline(keel_queue_t *queue);

// Returns the point of the queue's newest submission, by whatever thread; value 0, which is past,
// if there is none yet. keel_up_to makes it a point for all submissions so far, and keel_ended one
// that their failures do not fail:
//     keel_point_t all = keel_ended(keel_up_to(keel_queue_newest(queue)));
//     KEEL_TRY(keel_queue_dealloca(queue, KEEL_AFTER(all), buffer, &freed));
// Later submissions do not count, so a queue may wait for all before it. Checks nothing.
KEEL_API keel_point_t keel_queue_newest(keel_queue_t *queue);

// Returns what the queue is. This never changes, and is borrowed from the queue: copy what is
// needed longer. Never fails.
KEEL_API const keel_queue_info_t *keel_queue_info(const keel_queue_t *queue);

// Submits `count` operations. They start when all points of `waits` are reached, or have ended as
// their `until` says. When they have all ended, the queue signals the points of `signals` in their
// order, then its own timeline. `done`, if it is not NULL, receives the submission's point there.
// `count` may be 0: the submission then only waits and signals.
//
// The call copies the lists, constants and data, and retains the objects that the operations name,
// until the submission ends. Submissions are recycled: a program that keeps about as many in flight
// as before allocates nothing here.
//
// An error names the operation ("ops[3] (copy) is refused") and has the reason as its cause; op.h
// lists the reasons. For points: KEEL_INVALID_ARGUMENT for a NULL semaphore, a value of 2^63 and
// more, a signal of value 0, a signal on a queue's timeline, a signal with bits in `until`, a wait
// with unknown ones, or a wait for a point on a queue's timeline that is no submission yet.
//
// If a wait or an operation fails, the submission fails: operations that have not started do not
// run, and its point and all its signals fail with the cause. On a lost device the call succeeds
// and the points fail.
KEEL_API keel_status_t keel_queue_submit(keel_queue_t *queue, keel_points_t waits,
                                         const keel_op_t *ops, size_t count, keel_points_t signals,
                                         keel_point_t *done) KEEL_MUST_USE;

// Cancels the submission whose point on its queue's timeline is `point`, as keel_queue_submit gave
// it. `was`, if it is not NULL, receives how far the submission had come.
//   - One that waits fails with KEEL_CANCELLED at once, and so does all that depends on it. If the
//     device itself waits for the points, the submission counts as running, and fails soon.
//   - One that runs begins no more operations. A cpu device ends a dispatch at the next workgroup
//     and a loop at the next iteration; what a GPU has been given runs to its end. An alloca that
//     waits for memory is given up. A read or write of a file, and a host call, deferred ones too,
//     come to their own end first. Then the submission fails with KEEL_CANCELLED; or it ends well,
//     if there was nothing left to do.
//   - Too late is no error: `was` says so.
// Does not wait. May start or fail work that waited for the submission on the calling thread
// (docs/threads.md, [T4]).
//
// KEEL_INVALID_ARGUMENT if the point is not on a queue's timeline, or no submission has it yet.
// KEEL_DEVICE_LOST in the child of a fork.
KEEL_API keel_status_t keel_queue_cancel(keel_point_t point, keel_cancel_t *was) KEEL_MUST_USE;

KEEL_EXTERN_C_END

// Waits until everything that was submitted to the queue before the call has ended, well or not.
// It returns NULL also if some of that work failed: the points tell. Must not be called in a host
// call of the same queue.
//
// KEEL_DEADLINE_EXCEEDED if `timeout_ns` passed first.
KEEL_MUST_USE static inline keel_status_t keel_queue_wait_idle(keel_queue_t *queue,
                                                               uint64_t timeout_ns)
{
    keel_point_t all;
    if (!queue) return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "queue is NULL");
    all = keel_ended(keel_up_to(keel_queue_newest(queue)));
    return keel_wait(keel_points(&all, 1), KEEL_ALL, timeout_ns);
}

// Submits one operation that signals nothing but its point on the queue's timeline. As
// keel_queue_submit otherwise, and so are the functions that follow.
KEEL_MUST_USE static inline keel_status_t keel_queue_run(keel_queue_t *queue, keel_points_t waits,
                                                         keel_op_t op, keel_point_t *done)
{
    return keel_queue_submit(queue, waits, &op, 1, KEEL_NO_SIGNALS, done);
}

// Submits no operation: the queue signals `signals` when `waits` are reached. Use it to join
// several points into one, or to pass the end of work on to a semaphore of another device.
KEEL_MUST_USE static inline keel_status_t keel_queue_signal(keel_queue_t *queue,
                                                            keel_points_t waits,
                                                            keel_points_t signals,
                                                            keel_point_t *done)
{
    return keel_queue_submit(queue, waits, NULL, 0, signals, done);
}

// Submits one keel_op_fill: repeats a pattern of 1, 2 or 4 bytes over `target`. keel_op_fill lists
// the limits and failures.
KEEL_MUST_USE static inline keel_status_t keel_queue_fill(keel_queue_t *queue, keel_points_t waits,
                                                          keel_ref_t target, uint32_t pattern,
                                                          uint32_t pattern_size, keel_point_t *done)
{
    return keel_queue_run(queue, waits, keel_op_fill(target, pattern, pattern_size), done);
}

// Submits one keel_op_copy: copies `source` to `target`, which have the same length and do not
// overlap. keel_op_copy lists the limits and failures.
KEEL_MUST_USE static inline keel_status_t keel_queue_copy(keel_queue_t *queue, keel_points_t waits,
                                                          keel_ref_t source, keel_ref_t target,
                                                          keel_point_t *done)
{
    return keel_queue_run(queue, waits, keel_op_copy(source, target), done);
}

// Submits one keel_op_execute: runs `recording` with `bindings` as its binding table.
// keel_op_execute lists the limits and failures.
KEEL_MUST_USE static inline keel_status_t
keel_queue_execute(keel_queue_t *queue, keel_points_t waits, keel_recording_t *recording,
                   keel_refs_t bindings, keel_point_t *done)
{
    return keel_queue_run(queue, waits, keel_op_execute(recording, bindings), done);
}

// Reserves a buffer of `size` bytes from `pool` and submits its keel_op_alloca, which waits for
// nothing. A NULL pool is the first pool of the queue's node (keel_device_pool). `ready` receives
// the point at which the buffer has memory; work that uses the buffer waits for it. The caller
// releases the buffer.
//
// Fails as keel_buffer_reserve and keel_queue_submit do. KEEL_INVALID_ARGUMENT if `pool` is NULL
// and the device has no pools. If the pool cannot serve the alloca, `ready` fails.
KEEL_MUST_USE static inline keel_status_t keel_queue_alloca(keel_queue_t *queue, keel_pool_t *pool,
                                                            uint64_t size, keel_buffer_t **buffer,
                                                            keel_point_t *ready)
{
    const keel_queue_info_t *info = keel_queue_info(queue);
    keel_buffer_options_t options = KEEL_ZERO;
    keel_status_t status;
    options.size = size;
    *buffer = NULL;
    if (!pool) pool = keel_device_pool(info->device, info->node);
    status = keel_buffer_reserve(pool, &options, buffer);
    if (!status) status = keel_queue_run(queue, KEEL_NO_WAITS, keel_op_alloca(*buffer), ready);
    if (status) {
        keel_buffer_release(*buffer);
        *buffer = NULL;
    }
    return status;
}

// Submits one keel_op_dealloca: gives the memory of `buffer` back to its pool after `waits`, which
// must name the last work that uses the memory. The caller still releases the buffer. If it is
// released without a dealloca, its memory goes back to the pool with the last reference.
KEEL_MUST_USE static inline keel_status_t keel_queue_dealloca(keel_queue_t *queue,
                                                              keel_points_t waits,
                                                              keel_buffer_t *buffer,
                                                              keel_point_t *done)
{
    return keel_queue_run(queue, waits, keel_op_dealloca(buffer), done);
}

#endif
