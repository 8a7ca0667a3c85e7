// SPDX-License-Identifier: Apache-2.0
// Completion: to learn that waits have ended without a thread that waits.
//
//   keel_on              calls a function when a wait ends
//   a completion queue   collects the ends of any number of waits; one descriptor for an event loop
//
// A wait is a list of points and a mode, as for keel_wait. It ends when the points are reached, or
// one fails, as the mode says. It also ends, with the cause, when the device of a semaphore is
// closed or lost. Both kinds retain the semaphores until the wait has ended, and ask devices to
// report: no thread of the application needs to be in a call of Keel.
//
// An event loop with thousands of jobs in flight needs one descriptor:
//
//     KEEL_TRY(keel_completion_add(queue, KEEL_POINTS(done), KEEL_ALL, job));
//     ...
//     epoll_wait(...);    // keel_completion_fd(queue) is readable while there is an end to take
//     while (!(none = keel_completion_next(queue, 0, &user, &status)))
//         job_finish(user, status);
//     keel_status_release(none);
//
// Any thread may call every function. Only keel_completion_next waits.
#ifndef KEEL_COMPLETION_H_
#define KEEL_COMPLETION_H_

#include <keel/semaphore.h>

// A wait that ends with a call.
typedef struct keel_on_t keel_on_t;

// A queue of waits that have ended.
typedef struct keel_completion_t keel_completion_t;

// What keel_on calls. `status` says how the wait ended: NULL if the points are reached, else the
// cause; the function owns the reference. It may use all of Keel. It must not block: the other
// calls of its device wait for it.
typedef void (*keel_on_fn)(void *user, keel_status_t status);

KEEL_EXTERN_C_BEGIN

// Calls `fn` with `user` when the wait for `points` ends, exactly once, unless it is cancelled
// before. It never runs inside a signal of the application: the thread "keel-on" of the device
// whose point ended the wait makes the call, also if the points were reached before. The calls of
// one thread come one after the other, in the order of the ends. When keel_device_release has
// closed a device, it has made all its calls.
//
// Where there is no such thread, the thread that ends the wait makes the call: if the system gives
// the device none, or the device is closed. With no points, and for points of a device that was
// closed before, that is the calling thread, before keel_on returns.
//
// `handle` may be NULL. Otherwise it receives what keel_on_cancel takes, and the caller calls that
// exactly once.
//
// If keel_on fails, `fn` is not called. It fails as keel_wait does.
KEEL_API keel_status_t keel_on(keel_points_t points, keel_wait_mode_t mode, keel_on_fn fn,
                               void *user, keel_on_t **handle) KEEL_MUST_USE;

// Gives up the wait, and the handle with it. True: the function was not called and will not be;
// what `user` points to may go. False: the wait has ended; the function was called, is being
// called, or is about to be. Does not wait for it. May be called at any time, also in the function.
// NULL is fine, and false.
KEEL_API bool keel_on_cancel(keel_on_t *handle);

// Makes a completion queue. It belongs to no device: waits may be for points of several.
//
// KEEL_RESOURCE_EXHAUSTED if the process has no descriptor left.
KEEL_API keel_status_t keel_completion_create(keel_completion_t **queue) KEEL_MUST_USE;

// Drops the waits that have not ended, and the ends that were not taken, and frees the queue. No
// other thread may be using it. NULL is fine. Does not wait.
KEEL_API void keel_completion_release(keel_completion_t *queue);

// Returns a descriptor that is readable while the queue has an end to take (level-triggered: it
// stays readable until the last one is taken). Borrowed until the release: poll it, do not read or
// close it. A queue whose descriptor was never asked for makes no system call for it.
KEEL_API int keel_completion_fd(keel_completion_t *queue);

// Adds a wait. Its end comes out of keel_completion_next with `user`, which may be anything. With
// no points it has ended at once. Queues recycle memory: one that keeps about as many waits of up
// to 4 points as before allocates nothing here.
//
// Fails as keel_wait does. KEEL_DEVICE_LOST if the queue was made before fork.
KEEL_API keel_status_t keel_completion_add(keel_completion_t *queue, keel_points_t points,
                                           keel_wait_mode_t mode, void *user) KEEL_MUST_USE;

// Takes the next end, in the order of ends; waits up to `timeout_ns` for one. `user` receives what
// was added, `status` how that wait ended: NULL, or the cause, a reference of the caller's. Several
// threads may take from one queue; each end goes to one of them.
//
// KEEL_DEADLINE_EXCEEDED if there was none in time; a timeout of 0 polls, and this error costs
// nothing then. KEEL_DEVICE_LOST if the queue was made before fork. After an error `user` and
// `status` are NULL.
KEEL_API keel_status_t keel_completion_next(keel_completion_t *queue, uint64_t timeout_ns,
                                            void **user, keel_status_t *status) KEEL_MUST_USE;

KEEL_EXTERN_C_END

#endif
