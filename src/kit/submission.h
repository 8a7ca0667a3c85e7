// SPDX-License-Identifier: Apache-2.0
// Submissions: work handed to a queue, from the call that submits it until its points are
// signalled.
//
//     create --> open --> wait for points --> start (the driver's) --> end: release what it used,
//                               |                                       ^   signal, recycle
//                               +-- a point failed, or the device closed +
//
// A submission holds references to all it touches. It waits without a thread: the thread that
// brings the last point starts it; or, if the driver's device can wait by itself, the thread that
// brings the last promise of that device (promise.h). Starting and ending may set off others, which
// are put on a list of the thread and taken in turn, so that a chain of any length needs no deep
// stack.
#ifndef KEEL_SRC_KIT_SUBMISSION_H_
#define KEEL_SRC_KIT_SUBMISSION_H_

#include <keel/driver/submission.h>

#include "kit/command.h"
#include "kit/semaphore.h"
#include "trace/event.h"

typedef struct keel_submission_wait_t {
    waiter_t waiter;    // first
    keel_point_t point; // semaphore retained
    keel_submission_t *submission;
} submission_wait_t;

// Room for commands and points that needs no allocation of its own.
enum { SUBMISSION_ROOM = 1024 };

// A submission with room for its points, which the caller fills in, retaining the semaphores.
keel_status_t submission_create(keel_queue_t *queue, size_t waits, size_t signals,
                                keel_submission_t **submission) KEEL_MUST_USE;

// Takes back one that was not opened.
void submission_discard(keel_submission_t *submission) KEEL_COLD;

// Gives it its point, with everything filled in. Fails without memory, or if the queue is closed;
// else it is the driver's from here on.
keel_status_t submission_open(keel_submission_t *submission) KEEL_MUST_USE;

// For drivers: calls `start` once the waits are reached, on this thread or another, or ends it if
// one fails.
void submission_wait(keel_submission_t *submission, void (*start)(keel_submission_t *));

// The same, but points that are promised by the queue's own device count as reached: the promise is
// in waits[i].waiter.promise then, and the driver makes its work wait for that. True if all are
// already: then nothing is called, and the driver goes on by itself.
bool submission_wait_promised(keel_submission_t *submission, void (*start)(keel_submission_t *));
static inline bool submission_wait_early(keel_submission_t *submission,
                                         void (*start)(keel_submission_t *))
{
    return !submission->wait_count || submission->follows ||
           submission_wait_promised(submission, start);
}

// For drivers, from `start`: the work cannot be made to wait for promises after all. Gives them up,
// and calls `start` once the waits themselves are reached, as submission_wait.
void submission_wait_again(keel_submission_t *submission,
                           void (*start)(keel_submission_t *)) KEEL_COLD;

// For drivers: all its points will be reached when `promise` comes true. The driver keeps it until
// the end, which is sure to be a good one unless the device is lost, or a signal of it turns out to
// be out of order: then the work itself has ended well; or unless it may fail. One without a device
// says only
// when the end will be known, and only to those who wait for the queue's own point.
void submission_promise(keel_submission_t *submission, promise_t *promise);

// For drivers: it has ended; `status` is consumed. Releases what it used and signals its points.
// The memory stays until submission_recycle, for a driver that has others looking at it.
void submission_signal(keel_submission_t *submission, keel_status_t status);
void submission_recycle(keel_submission_t *submission);

// Both at once.
void submission_end(keel_submission_t *submission, keel_status_t status);

// The same for several of one queue, linked by `next`, each with its status in `failure`.
void submission_end_all(keel_submission_t *first);

// Cancels submission `id` of a queue's timeline, and tells in which state it was: if it
// waits, it fails; if it was started, its driver is asked to end it (`cancelled`). Any thread, with
// no lock held: what waits for it is told here. Does not block.
keel_cancel_t submission_cancel(keel_semaphore_t *timeline, uint64_t id);

// The same for all of the queue, with `cause` (borrowed). For the end of its device, after which
// none can come to wait.
void submission_cancel_all(keel_queue_t *queue, keel_status_t cause);

// For drivers: whether it is to end now, and what with: a new reference to why its device has
// ended, or an error of its own.
static inline bool submission_is_cancelled(const keel_submission_t *submission)
{
    // relaxed: the driver sees it a little later.
    return __builtin_expect(atomic_load_explicit(&submission->cancelled, memory_order_relaxed), 0);
}
keel_status_t submission_cancelled(const keel_submission_t *submission) KEEL_COLD;

// Whether it may close a circle: an alloca waits for a dealloca, which waits for the alloca, by
// points of work between them. Its deallocas may be those, or may wait for what it signals behind
// its own waits. A point of a queue is no reason, for only work that comes later waits for that.
// Then pools_look (pool.h) is due, once the driver has it.
static inline bool submission_may_close(const keel_submission_t *submission)
{
    return submission->commands.kinds >> KEEL_CMD_DEALLOCA & 1 ||
           (submission->wait_count && submission->signal_count);
}

// Frees the recycled ones, when the queue goes away.
void submission_free_spares(keel_queue_t *queue);

// Runs `fn` on `submission` now, or when the outermost caller on this thread's stack is done: for
// continuations that could otherwise nest without bound.
void submission_later(keel_submission_t *submission, void (*fn)(keel_submission_t *));

// Around code of the application that the library calls in the course of a device's work (a host
// call, the release of imported memory): what it sets off must not wait until it returns, for it
// may wait for that; and a device must not wait for itself.
typedef struct nest_t {
    struct nest_t *outer;
    const keel_device_t *device; // whose work it is
} nest_t;
void submission_nest(nest_t *nest, const keel_device_t *device);
void submission_unnest(nest_t *nest);
bool submission_is_inside(const keel_device_t *device); // the thread does work of that device

// An error, said to have happened at a command of the submission; or, if `execute` is not NULL, of
// the recording that it executes there.
keel_status_t submission_blame(const keel_submission_t *submission,
                               const keel_cmd_execute_t *execute, const keel_command_t *command,
                               keel_status_t status) KEEL_COLD;

// The first one of the queue that has not ended; 0: there is none.
uint64_t submission_first(keel_queue_t *queue);

// How a trace names it. Until its end; where trace_is_on says so.
trace_work_t submission_traced(const keel_submission_t *submission) KEEL_COLD;

// Names one of each of several queues in a message, as many as there is room for, and says how many
// more there are: "; WORDS queue 'main', submission 3; queue 'copies', submission 1; 7 more
// queues".
typedef struct submission_names_t {
    const char *words;   // before the first
    size_t length, left; // of the names; and those without room
    char text[400];
} submission_names_t;
void submission_names_add(submission_names_t *names, const keel_queue_t *queue, uint64_t id);

#endif
