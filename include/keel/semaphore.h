// SPDX-License-Identifier: Apache-2.0
// Timeline semaphores, points on them, and waiting.
//
// A semaphore is a value below 2^63 that only grows. A point (semaphore, value) is reached once the
// value is at least that large. Host and queues wait for points and signal them, in all four
// directions and in either order: a wait may come long before the signal is submitted. A signal
// makes all earlier writes of its submission visible to every waiter, the host included.
//
// A semaphore can fail, and failure is final. Every point that was not reached by then fails with
// the first cause. Everything that waits for such a point, on the host or on a queue, fails at once
// with the same cause. A submission fails its signals only when the device no longer touches the
// submission's resources. Work that is to run however its predecessors ended, a cleanup or the next
// batch, waits for keel_ended(point): until the point is reached or has failed.
//
// The signals of one submission are made one by one, in the order of their list. A thread that
// finds the first one reached may find the second one not reached yet: wait for each point that
// matters, or for the submission's own, which comes last. If a signal in the middle of the list
// cannot be made, those before it stand.
//
// Each queue has a timeline of its own (keel_queue_timeline), on which every submission is a point.
//   - Queues are not FIFO and these points are independent: point 5 may be reached before point 4.
//   - A submission that fails, fails only its own point. keel_semaphore_value tells up to which
//     point all submissions have ended. keel_up_to(point) stands for the submission and all before
//     it on its queue, keel_up_to(keel_queue_newest(queue)) for all so far.
//   - Only the queue signals its timeline. It does so after the other signals of the submission. A
//     thread that sees one of these points reached also finds over all that the submission waited
//     for.
//   - The timeline knows of every point whether it failed, as long as it lives. It keeps the causes
//     of its newest 16384 failures at least. A point that failed before fails with KEEL_ABORTED and
//     says that its cause is no longer kept. What is known of these takes 24 bytes for a failure
//     that stands alone, for a row of any length, and for a pattern that repeats, and in no case
//     more than 24 bytes for 64 submissions. If the host has no memory for that, points up to
//     there that went well may fail with KEEL_OUT_OF_MEMORY, too; one that failed is never reported
//     as reached.
//
// A timeline semaphore of another API, of Vulkan for example, or a shared event of Metal's can be
// imported (keel_semaphore_import) and is used like any other.
//
// A semaphore can be shared between processes (keel_semaphore_options_t.shared): one process
// exports it, another one imports the descriptor. Queues of every device wait for it and signal it
// by way of the host.
//   - Value and failure are the same in all processes. Each signal must be larger than all before,
//     of all processes together. The code of a failure travels, and 511 bytes of its message.
//   - It fails for all when one process closes or loses the device that it made or imported the
//     semaphore with. A process that wants to leave the others alone releases the semaphore first.
//   - A process gives it up when it releases its last reference, or ends, in whatever way. What it
//     has signalled stays signalled. When no other process is left, waits for points that are not
//     reached fail with KEEL_ABORTED within about 0.1 s, also if a thread of this process was to
//     signal them. The end of one of three processes goes unnoticed.
//   - While a descriptor of it is open anywhere, another process may still come, and waits go on:
//     close a descriptor when it is passed on.
//   - A process that breaks these rules, by accident or on purpose, can signal, fail and hold up
//     the semaphore, and do no other harm. One that lowers the value fails it, with KEEL_ABORTED.
//
// Points are plain data and borrow their semaphore. Any thread may call every function. Only
// keel_wait and keel_wait_with wait; <keel/completion.h> has ways that do not.
#ifndef KEEL_SEMAPHORE_H_
#define KEEL_SEMAPHORE_H_

#include <keel/device.h>

typedef struct keel_semaphore_t keel_semaphore_t;

// What a wait for a point waits for, bits of keel_point_t.until. Without any: until the point is
// reached; its failure fails what waits.
typedef enum keel_until_t {
    // Until the point is reached or has failed. It passes no failure on: all that waits goes on
    // then, also when the device of the semaphore was closed or lost.
    KEEL_ENDED = 1 << 0,
    // On a queue's timeline: until the point and all before it have ended. Without KEEL_ENDED it
    // fails if one of these submissions failed, however long ago, with the cause of the earliest in
    // the order of the queue; but only when all have ended. On other semaphores it changes nothing,
    // since their values only grow.
    KEEL_UP_TO = 1 << 1,
} keel_until_t;

// A value on a semaphore, which is borrowed.
typedef struct keel_point_t {
    keel_semaphore_t *semaphore;
    uint64_t value;
    uint32_t until; // of keel_until_t, for waits; 0 in signals
} keel_point_t;

// A list of points: what a submission waits for or signals. Borrowed for the call.
typedef struct keel_points_t {
    const keel_point_t *points; // may be NULL if count is 0
    size_t count;
} keel_points_t;

// Returns the point `value` on `semaphore`. Checks nothing and retains nothing.
static inline keel_point_t keel_point(keel_semaphore_t *semaphore, uint64_t value)
{
    keel_point_t point = {semaphore, value, 0};
    return point;
}

// Returns `point` with KEEL_ENDED: a wait for it is over when it is reached or has failed.
static inline keel_point_t keel_ended(keel_point_t point)
{
    point.until |= KEEL_ENDED;
    return point;
}

// Returns `point` with KEEL_UP_TO: a wait for it is for all submissions of its queue up to here.
static inline keel_point_t keel_up_to(keel_point_t point)
{
    point.until |= KEEL_UP_TO;
    return point;
}

// Returns a list of the `count` points at `points`, which must live as long as the list is used.
static inline keel_points_t keel_points(const keel_point_t *points, size_t count)
{
    keel_points_t list = {points, count};
    return list;
}

// Empty lists, for submissions that wait for nothing or signal nothing but their own point.
#define KEEL_NO_WAITS   keel_points(NULL, 0)
#define KEEL_NO_SIGNALS keel_points(NULL, 0)

// A list written in place: KEEL_POINTS(a, keel_point(s, 3)). KEEL_AFTER and KEEL_SIGNAL say what
// the list of a submission is for.
//
// Write it in the call that takes it: in C it lives until the end of the enclosing block, in C++
// until the end of the statement. For a list that lives longer, keep an array and pass
// KEEL_POINTS_OF(array).
#ifdef __cplusplus
extern "C++" {
#include <initializer_list>
// Internal: what KEEL_POINTS calls in C++.
static inline keel_points_t keel_points(std::initializer_list<keel_point_t> list)
{
    return keel_points(list.begin(), list.size());
}
}
#define KEEL_POINTS(...) keel_points({__VA_ARGS__})
#else
#define KEEL_POINTS(...)                                                                           \
    keel_points((const keel_point_t[]){__VA_ARGS__},                                               \
                sizeof((const keel_point_t[]){__VA_ARGS__}) / sizeof(keel_point_t))
#endif
#define KEEL_AFTER(...)       KEEL_POINTS(__VA_ARGS__)
#define KEEL_SIGNAL(...)      KEEL_POINTS(__VA_ARGS__)
#define KEEL_POINTS_OF(array) keel_points(array, KEEL_LENGTH(array))

// How to make a semaphore.
typedef struct keel_semaphore_options_t {
    uint64_t initial; // the first value, below 2^63
    const char *name; // used in messages; may be NULL
    bool shared;      // other processes can import it; one that is imported is shared in any case
} keel_semaphore_options_t;

// What keel_semaphore_info tells about a semaphore.
typedef struct keel_semaphore_info_t {
    keel_device_t *device; // whose it is
    const char *name;      // as asked for; "" without one, and for the timeline of a queue
} keel_semaphore_info_t;

// What a semaphore is known by outside of the process, or in another API.
typedef enum keel_semaphore_kind_t {
    KEEL_SEMAPHORE_TIMELINE_FD, // a file descriptor of a timeline semaphore (not of a binary one),
                                // as Vulkan exports it
                                // (VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT)
    KEEL_SEMAPHORE_SHARED_FD,   // a file descriptor of one that Keel shares between processes, as
                                // keel_semaphore_export gives it
    KEEL_SEMAPHORE_NATIVE,      // an object of the vendor's: on metal:// an id<MTLSharedEvent>
} keel_semaphore_kind_t;

// A semaphore to import, or an exported one.
typedef struct keel_external_semaphore_t {
    keel_semaphore_kind_t kind;
    union {
        int fd;       // KEEL_SEMAPHORE_TIMELINE_FD, KEEL_SEMAPHORE_SHARED_FD
        void *object; // KEEL_SEMAPHORE_NATIVE
    } handle;
} keel_external_semaphore_t;

// When a wait for several points ends.
typedef enum keel_wait_mode_t {
    KEEL_ALL, // when all points are reached; with a failure as soon as one point fails
    KEEL_ANY, // when one point is reached or fails; keel_point_t.until says what is a failure
} keel_wait_mode_t;

// How keel_wait_with waits.
typedef struct keel_wait_options_t {
    uint64_t spin_ns; // the thread polls this long before it sleeps
    size_t *index;    // receives the point that ended the wait, for KEEL_ANY or a failure; else it
                      // is not written; may be NULL
} keel_wait_options_t;

KEEL_EXTERN_C_BEGIN

// Makes a semaphore. It belongs to `device`: it fails when the device is closed or lost. Queues of
// any device may wait for it and signal it.
//
// KEEL_INVALID_ARGUMENT for an initial value of 2^63 or more. For one that is shared:
// KEEL_UNSUPPORTED without KEEL_CAP_SHARED_SEMAPHORE; KEEL_RESOURCE_EXHAUSTED if the process has no
// descriptor or memory left. It takes one descriptor.
KEEL_API keel_status_t keel_semaphore_create(keel_device_t *device,
                                             const keel_semaphore_options_t *options,
                                             keel_semaphore_t **semaphore) KEEL_MUST_USE;

// Makes a semaphore of one that another process or another API made. The file descriptor is
// duplicated; the caller still closes its own. An object is retained. options->initial is a value
// that the semaphore is known to have reached.
//
// KEEL_SEMAPHORE_SHARED_FD: the descriptor came from another process, by a socket (SCM_RIGHTS) or
// by inheritance. The top of this file says what holds for such semaphores.
//
// KEEL_SEMAPHORE_TIMELINE_FD: queues of any device, the host and the other API wait for its points
// and signal them.
//   - A signal made here reaches the other side soon after. A queue of the semaphore's own device
//     makes it without the host.
//   - Keel observes a signal of the other side only while something here waits for it.
//     keel_semaphore_value knows no more than these waits found out. A wait with a timeout of 0
//     starts the observation.
//   - Each signal must be larger than all before, on both sides together. Keel cannot check this
//     across the border.
//   - The other side does not learn of failures: a signal that fails here is never made there.
//
// KEEL_SEMAPHORE_NATIVE: an MTLSharedEvent that the program made, that another framework has, or
// that another process sent (XPC, as an MTLSharedEventHandle). The same holds as for
// KEEL_SEMAPHORE_TIMELINE_FD, with these differences.
//   - keel_semaphore_value asks the event. A thread or a submission that waits for a signal of the
//     other side is woken by a listener of Metal's.
//   - The command buffer of a submission on metal:// makes the signal, without the host, where it
//     ends the submission and the submission did not begin ahead of what it waits for; and where
//     the signals before it in the list are such, too. Else the host makes it when the submission
//     has ended.
//   - A value of 2^63 or more, which the other side may set, counts as 2^63 - 1.
//
// KEEL_UNSUPPORTED without KEEL_CAP_SHARED_SEMAPHORE or KEEL_CAP_IMPORT_SEMAPHORE, as the kind
// demands, and for a kind that the device does not take: devices of metal:// take objects, the
// others descriptors. KEEL_INVALID_ARGUMENT if the descriptor is not open, is no semaphore of that
// kind, or belongs to another GPU; if the object is NULL or is none of these; and if a shared one
// or an event has not reached options->initial. KEEL_RESOURCE_EXHAUSTED if the process has no
// descriptor left, or Metal no listener.
KEEL_API keel_status_t keel_semaphore_import(keel_device_t *device,
                                             const keel_external_semaphore_t *external,
                                             const keel_semaphore_options_t *options,
                                             keel_semaphore_t **semaphore) KEEL_MUST_USE;

// Writes a new file descriptor of the semaphore to `external`; the caller closes it. It is closed
// on exec. `external->kind` says what is wanted: KEEL_SEMAPHORE_SHARED_FD of one that is shared
// between processes, KEEL_SEMAPHORE_TIMELINE_FD of one that another API made. Of an object that was
// imported, KEEL_SEMAPHORE_NATIVE gives it back: borrowed, for as long as the semaphore is there.
//
// KEEL_UNSUPPORTED for any other: no device can export what keel_semaphore_create made to another
// API (CUDA has no such call). Let that API make the semaphore and import it. Also if /proc is not
// mounted, for a shared one. KEEL_RESOURCE_EXHAUSTED if the process has no descriptor left.
KEEL_API keel_status_t keel_semaphore_export(keel_semaphore_t *semaphore,
                                             keel_external_semaphore_t *external) KEEL_MUST_USE;

// Adds a reference and returns `semaphore`. NULL is fine.
KEEL_API keel_semaphore_t *keel_semaphore_retain(keel_semaphore_t *semaphore);

// Gives up a reference. Submissions and waits (<keel/completion.h>) hold references of their own.
// NULL is fine. Never waits. If something waited for a point of a semaphore of another API that has
// not come, the device keeps observing it until the point comes or the process ends; a listener of
// Metal's stays with the event, which keeps nothing of the device.
KEEL_API void keel_semaphore_release(keel_semaphore_t *semaphore);

// Returns what the semaphore is. This never changes, and is borrowed from the semaphore. Never
// fails.
KEEL_API const keel_semaphore_info_t *keel_semaphore_info(const keel_semaphore_t *semaphore);

// Writes the value reached so far to `value`. If the semaphore has failed, the call still writes
// the last value, and returns the cause. Of a queue's timeline it is the value up to which all
// submissions have ended, and there is never a failure.
//
// May ask the device how far it is; does not wait.
KEEL_API keel_status_t keel_semaphore_value(keel_semaphore_t *semaphore,
                                            uint64_t *value) KEEL_MUST_USE;

// Sets the value to `value`, which must be larger than the present one, and wakes all waiters up to
// it. The calling thread may start work that waited for this (docs/threads.md, [T4]): hold no lock
// that a host call of cpu://inline takes.
//
// KEEL_FAILED_PRECONDITION if `value` is not larger, or if the semaphore is a queue's timeline. The
// cause if the semaphore has failed. KEEL_INVALID_ARGUMENT for 2^63 or more. A queue that is to
// signal a value that is not larger fails the semaphore instead, and the submission with it: two
// signals were not ordered. The path of the error names queue, submission and signal.
KEEL_API keel_status_t keel_semaphore_signal(keel_semaphore_t *semaphore,
                                             uint64_t value) KEEL_MUST_USE;

// Fails the semaphore with `cause`, and so all its points that are not reached and all work that
// waits for these. Consumes the reference to `cause`, also if it returns an error. Of several
// failures the first is kept; the later calls return NULL.
//
// KEEL_INVALID_ARGUMENT if `semaphore` or `cause` is NULL. KEEL_FAILED_PRECONDITION if the
// semaphore is a queue's timeline. KEEL_DEVICE_LOST in the child of a fork.
KEEL_API keel_status_t keel_semaphore_fail(keel_semaphore_t *semaphore,
                                           keel_status_t cause) KEEL_MUST_USE;

// Blocks the calling thread until the points are reached, as `mode` says, or until `timeout_ns` has
// passed. With no points it returns at once. A timeout of 0 polls: it looks at the device, and has
// nothing made that would wake the thread. Up to 8 points need no memory. The wait also ends, with
// the cause unless it asks for KEEL_ENDED, when the device of a semaphore is closed or lost.
// `options` may be NULL: no polling, no index.
//
// NULL if the points are reached. The cause if a point failed. KEEL_DEADLINE_EXCEEDED when the time
// is up. KEEL_INVALID_ARGUMENT for a point on a queue's timeline that is no submission yet, for a
// value of 2^63 or more, for unknown bits in `until`, and for 2^30 - 1 points or more.
KEEL_API keel_status_t keel_wait_with(keel_points_t points, keel_wait_mode_t mode,
                                      uint64_t timeout_ns,
                                      const keel_wait_options_t *options) KEEL_MUST_USE;

KEEL_EXTERN_C_END

// As keel_wait_with, without options:
//     KEEL_TRY(keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER));
KEEL_MUST_USE static inline keel_status_t keel_wait(keel_points_t points, keel_wait_mode_t mode,
                                                    uint64_t timeout_ns)
{
    return keel_wait_with(points, mode, timeout_ns, NULL);
}

#endif
