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
//     KEEL_TRY(keel_wait(&copied, 1, KEEL_ALL, KEEL_FOREVER));
//
// Submitting never waits for points, memory or other work, however much is in flight (on
// cpu://inline it runs the work, if its waits are satisfied). If it returns an error nothing was
// submitted and nothing will be signalled. Errors that show only when the work runs fail the
// submission's points.
//
// Queues of higher priority get workers first; queues of one priority share them. All functions may
// be called from any thread.
#ifndef KEEL_QUEUE_H_
#define KEEL_QUEUE_H_

#include <keel/op.h>
#include <keel/pool.h>

typedef enum keel_queue_family_t {
    KEEL_QUEUE_COMPUTE,  // everything
    KEEL_QUEUE_TRANSFER, // everything but dispatches and recordings
} keel_queue_family_t;

typedef struct keel_queue_options_t {
    keel_queue_family_t family;
    int32_t priority; // between keel_caps_t.min_priority and max_priority; higher runs first
    uint32_t node;
    const char *name; // NULL: its number, in the order in which the device's queues were made
} keel_queue_options_t;

KEEL_EXTERN_C_BEGIN

KEEL_API keel_status_t keel_queue_create(keel_device_t *device, const keel_queue_options_t *options,
                                         keel_queue_t **queue) KEEL_MUST_USE;
KEEL_API keel_queue_t *keel_queue_retain(keel_queue_t *queue);
KEEL_API void keel_queue_release(keel_queue_t *queue);

// The queue's timeline; borrowed.
KEEL_API keel_semaphore_t *keel_queue_timeline(keel_queue_t *queue);
KEEL_API keel_device_t *keel_queue_device(keel_queue_t *queue); // borrowed

// `done`, if not NULL, receives the submission's point on the queue's timeline.
KEEL_API keel_status_t keel_queue_submit(keel_queue_t *queue, keel_points_t waits,
                                         const keel_op_t *ops, size_t count, keel_points_t signals,
                                         keel_point_t *done) KEEL_MUST_USE;

// As keel_device_wait_idle, for one queue.
KEEL_API keel_status_t keel_queue_wait_idle(keel_queue_t *queue, uint64_t timeout_ns) KEEL_MUST_USE;

KEEL_EXTERN_C_END

// Single operations.

KEEL_MUST_USE static inline keel_status_t keel_queue_run(keel_queue_t *queue, keel_points_t waits,
                                                         keel_op_t op, keel_point_t *done)
{
    return keel_queue_submit(queue, waits, &op, 1, KEEL_NO_SIGNALS, done);
}

// Nothing but waits and signals.
KEEL_MUST_USE static inline keel_status_t keel_queue_signal(keel_queue_t *queue,
                                                            keel_points_t waits,
                                                            keel_points_t signals,
                                                            keel_point_t *done)
{
    return keel_queue_submit(queue, waits, NULL, 0, signals, done);
}

KEEL_MUST_USE static inline keel_status_t keel_queue_fill(keel_queue_t *queue, keel_points_t waits,
                                                          keel_ref_t target, uint32_t pattern,
                                                          uint32_t pattern_size, keel_point_t *done)
{
    return keel_queue_run(queue, waits, keel_op_fill(target, pattern, pattern_size), done);
}

KEEL_MUST_USE static inline keel_status_t keel_queue_copy(keel_queue_t *queue, keel_points_t waits,
                                                          keel_ref_t source, keel_ref_t target,
                                                          keel_point_t *done)
{
    return keel_queue_run(queue, waits, keel_op_copy(source, target), done);
}

KEEL_MUST_USE static inline keel_status_t
keel_queue_execute(keel_queue_t *queue, keel_points_t waits, keel_recording_t *recording,
                   keel_refs_t bindings, keel_point_t *done)
{
    return keel_queue_run(queue, waits, keel_op_execute(recording, bindings), done);
}

// Reserves a buffer of `size` bytes from `pool` (NULL: the device's) and allocates it in queue
// order, after nothing.
KEEL_MUST_USE static inline keel_status_t keel_queue_alloca(keel_queue_t *queue, keel_pool_t *pool,
                                                            uint64_t size, keel_buffer_t **buffer,
                                                            keel_point_t *ready)
{
    keel_buffer_options_t options = KEEL_ZERO;
    keel_status_t status;
    options.size = size;
    *buffer = NULL;
    if (!pool) pool = keel_device_pool(keel_queue_device(queue), 0);
    status = keel_buffer_reserve(pool, &options, buffer);
    if (!status) status = keel_queue_run(queue, KEEL_NO_WAITS, keel_op_alloca(*buffer), ready);
    if (status) {
        keel_buffer_release(*buffer);
        *buffer = NULL;
    }
    return status;
}

KEEL_MUST_USE static inline keel_status_t keel_queue_dealloca(keel_queue_t *queue,
                                                              keel_points_t waits,
                                                              keel_buffer_t *buffer,
                                                              keel_point_t *done)
{
    return keel_queue_run(queue, waits, keel_op_dealloca(buffer), done);
}

#endif
