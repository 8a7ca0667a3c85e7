// SPDX-License-Identifier: Apache-2.0
// Timeline semaphores, points on them, and waiting.
//
// A semaphore is a value below 2^63 that only grows. A point (semaphore, value) is reached once the
// value is at least that large. Host and queues wait for points and signal them, in all four
// directions and in either order: waiting for what nobody has promised yet is normal. A signal
// releases all earlier writes of its operation to every waiter, the host included.
//
// A semaphore can fail. Failure is final: every point not reached by then fails with the first
// cause, and so does everything that waits for one, on the host or a queue, at once. An operation
// fails its signals only when the device can no longer touch the operation's resources.
//
// Each queue has a timeline of its own (keel_queue_timeline), on which every submission is a point.
// It comes last: whoever sees it reached finds the submission's signals made, in the order of their
// list; and whoever sees any of these finds reached what the submission waited for. Queues are not
// FIFO, and these points are independent of each other: point 5 may be reached before point 4, and
// a submission that fails, fails its point alone. keel_semaphore_value then tells up to where all
// of them have ended. Only the queue can signal it. Of points that failed the newest 16384 are
// remembered, or more if they have causes in common; one that failed before these counts as
// reached for whoever asks only then.
//
// A semaphore may be shared with another API, Vulkan for example: one of its timeline semaphores is
// imported and is used like any other. See keel_semaphore_import.
//
// Points are plain data and borrow their semaphore. All functions may be called from any thread.
#ifndef KEEL_SEMAPHORE_H_
#define KEEL_SEMAPHORE_H_

#include <keel/device.h>

typedef struct keel_semaphore_t keel_semaphore_t;

typedef struct keel_point_t {
    keel_semaphore_t *semaphore;
    uint64_t value;
} keel_point_t;

// A list of points: what a submission waits for or signals. Borrowed for the call.
typedef struct keel_points_t {
    const keel_point_t *points;
    size_t count;
} keel_points_t;

static inline keel_point_t keel_point(keel_semaphore_t *semaphore, uint64_t value)
{
    keel_point_t point = {semaphore, value};
    return point;
}

static inline keel_points_t keel_points(const keel_point_t *points, size_t count)
{
    keel_points_t list = {points, count};
    return list;
}

#define KEEL_NO_WAITS   keel_points(NULL, 0)
#define KEEL_NO_SIGNALS keel_points(NULL, 0)

#ifndef __cplusplus
// Points written in place: KEEL_AFTER(a, b) as waits, KEEL_SIGNAL(keel_point(s, 3)) as signals.
#define KEEL_AFTER(...)                                                                            \
    keel_points((const keel_point_t[]){__VA_ARGS__},                                               \
                sizeof((const keel_point_t[]){__VA_ARGS__}) / sizeof(keel_point_t))
#define KEEL_SIGNAL(...) KEEL_AFTER(__VA_ARGS__)
#endif

typedef struct keel_semaphore_options_t {
    uint64_t initial; // the value to begin with
    const char *name;
} keel_semaphore_options_t;

// A semaphore from or for outside.
typedef enum keel_semaphore_kind_t {
    KEEL_SEMAPHORE_TIMELINE_FD, // a file descriptor of a timeline semaphore, as Vulkan exports it
                                // (VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT); not a binary
} keel_semaphore_kind_t;

typedef struct keel_external_semaphore_t {
    keel_semaphore_kind_t kind;
    union {
        int fd;
    } handle;
} keel_external_semaphore_t;

typedef enum keel_wait_mode_t {
    KEEL_ALL, // until all points are reached; fails at once when one fails
    KEEL_ANY, // until one point is reached or fails
} keel_wait_mode_t;

typedef struct keel_wait_options_t {
    keel_wait_mode_t mode;
    uint64_t deadline_ns; // on keel_now_ns; 0: none
    uint64_t spin_ns;     // poll that long before going to sleep
    size_t *index; // receives which point ended the wait (KEEL_ANY, or a failure); may be NULL
} keel_wait_options_t;

// Tells an epoll loop that a wait has ended.
typedef struct keel_watch_t keel_watch_t;

KEEL_EXTERN_C_BEGIN

KEEL_API keel_status_t keel_semaphore_create(keel_device_t *device,
                                             const keel_semaphore_options_t *options,
                                             keel_semaphore_t **semaphore) KEEL_MUST_USE;

// A semaphore that another API made, for a device with KEEL_CAP_IMPORT_SEMAPHORE. The file
// descriptor is duplicated; the caller's stays the caller's. KEEL_INVALID_ARGUMENT if the device
// cannot use it: it is closed, no timeline semaphore, or one of another GPU. options->initial is a
// value that it is known to have reached.
//
// Queues of any device and the host wait for its points and signal them, and so does the other
// side. What is signalled here is seen there soon after, by a queue of the semaphore's own device
// without the host. What the other side signals is seen here if somebody waits for it:
// keel_semaphore_value knows no more than that, and a wait with a timeout of 0 begins to look.
// Nobody checks the order of signals across the border: whoever signals, here or there, signals a
// larger value than all before. What has failed here, for one reason or another, is never signalled
// there, and the other side is not told.
//
// The release never waits. A point that was awaited and never came stays with the device until it
// does, or until the process ends (docs/stream.md).
KEEL_API keel_status_t keel_semaphore_import(keel_device_t *device,
                                             const keel_external_semaphore_t *external,
                                             const keel_semaphore_options_t *options,
                                             keel_semaphore_t **semaphore) KEEL_MUST_USE;

// The other way: a new file descriptor, the caller's to close, of a semaphore that was imported.
// KEEL_UNSUPPORTED for one that was made here: no device can give these away (CUDA has no such
// call), so the other side has to make it. `external->kind` says what is wanted.
KEEL_API keel_status_t keel_semaphore_export(keel_semaphore_t *semaphore,
                                             keel_external_semaphore_t *external) KEEL_MUST_USE;

KEEL_API keel_semaphore_t *keel_semaphore_retain(keel_semaphore_t *semaphore);
KEEL_API void keel_semaphore_release(keel_semaphore_t *semaphore);

// The value reached so far, written also when the semaphore has failed; then returns the cause.
KEEL_API keel_status_t keel_semaphore_value(keel_semaphore_t *semaphore,
                                            uint64_t *value) KEEL_MUST_USE;

// Moves the value forward from the host and wakes whoever waits. KEEL_FAILED_PRECONDITION if
// `value` is not larger than the present one, the cause if the semaphore has failed. A queue whose
// signal comes to a larger value fails the semaphore: two signals were not ordered.
KEEL_API keel_status_t keel_semaphore_signal(keel_semaphore_t *semaphore,
                                             uint64_t value) KEEL_MUST_USE;

// Fails the semaphore with `cause` (consumed, not NULL). The first failure stays.
KEEL_API void keel_semaphore_fail(keel_semaphore_t *semaphore, keel_status_t cause);

// Blocks until the points are reached: NULL. KEEL_DEADLINE_EXCEEDED when time is up, the cause when
// a point failed. No points: returns at once. The wait ends in any case when the device of a
// semaphore is closed or lost.
KEEL_API keel_status_t keel_wait(const keel_point_t *points, size_t count, keel_wait_mode_t mode,
                                 uint64_t timeout_ns) KEEL_MUST_USE;
KEEL_API keel_status_t keel_wait_with(const keel_point_t *points, size_t count,
                                      const keel_wait_options_t *options) KEEL_MUST_USE;

// Makes a file descriptor that becomes readable when the wait ends, for whatever reason; keel_wait
// with a timeout of 0 then says which. The descriptor belongs to the watch: poll it, do not read or
// close it. The points' semaphores are retained until the release, which may come at any time.
KEEL_API keel_status_t keel_watch_create(const keel_point_t *points, size_t count,
                                         keel_wait_mode_t mode, keel_watch_t **watch) KEEL_MUST_USE;
KEEL_API int keel_watch_fd(const keel_watch_t *watch);
KEEL_API void keel_watch_release(keel_watch_t *watch);

KEEL_EXTERN_C_END

#endif
