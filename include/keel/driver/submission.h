// SPDX-License-Identifier: Apache-2.0
// Submissions: the work that a queue is given, from the driver's queue_submit to its end.
//
//     queue_submit -> keel_submission_wait -> start (the driver's) -> keel_submission_end
//                              |                                              ^
//                              +-- a point failed, or the device has ended ---+
//
// From queue_submit until keel_submission_end the submission is the driver's. Every submission ends
// exactly once: by the driver, or by the library if it fails before `start`. All that its commands
// refer to is retained until then, recordings and their commands included. The memory is recycled
// with the end, so the driver must not touch it afterwards.
//
// A submission that was started may be asked to end early: `cancelled` is set when its device is
// closed or lost, or when the application cancels it. The driver looks at it as often as costs
// nothing (between commands, rounds of a loop, workgroups), begins nothing more and ends the
// submission with KEEL_CANCELLED. What its device cannot end runs to its end.
//
// A driver that needs more for each submission puts keel_submission_t at the beginning of a struct
// of its own and sets keel_queue_t.submission_size. What follows keel_submission_t in there is zero
// when the memory is new, and as the driver left it when it is recycled.
#ifndef KEEL_DRIVER_SUBMISSION_H_
#define KEEL_DRIVER_SUBMISSION_H_

#include <keel/driver/command.h>

struct keel_submission_t {
    keel_submission_t *next;  // free for the driver's own lists
    keel_queue_t *queue;      // retained
    uint64_t id;              // its value on the queue's timeline
    keel_commands_t commands; // what to do; see KEEL_EACH_COMMAND
    // The library's.
    struct keel_submission_wait_t *waits;
    uint32_t wait_count;
    uint32_t signal_count;
    struct keel_signal_t *signals;      // semaphores retained
    void (*start)(keel_submission_t *); // set by keel_submission_wait
    void *points;                     // owned: memory of waits and signals that did not fit in here
    bool linked;                      // its only wait was linked when it was opened
    bool follows;                     // or it is promised by its own queue, whose order will do
    KEEL_ATOMIC(bool) cancelled;      // to be ended early; for the driver to read
    KEEL_ATOMIC(uint32_t) waits_left; // and one for the call that waits
    KEEL_ATOMIC(struct keel_status *) failure; // of a wait, or what it ends with; owned
};

KEEL_EXTERN_C_BEGIN

// Calls `start` once all points that the submission waits for are reached; if one fails, or the
// device has ended, ends the submission with the cause instead. To be called once, from
// queue_submit. Does not block: `start` runs on this thread, now, or later on the thread that
// brings the last point, which may be any. So `start` must not block either, and the caller holds
// no lock that `start` takes.
KEEL_API void keel_submission_wait(keel_submission_t *submission,
                                   void (*start)(keel_submission_t *submission));

// Ends the submission: releases what it used, signals its points, or fails them with `status`, and
// recycles it. Consumes `status`. Any thread, with no lock held: submissions that waited for it may
// start, and code of the application may run, before this returns.
//
// A status says that the device can no longer touch what the submission uses: keep the first
// failure, start nothing more, wait for what runs, then end it.
KEEL_API void keel_submission_end(keel_submission_t *submission, keel_status_t status);

// Adds to an error at which command of the submission it happened: queue, number, debug groups,
// command. If `execute` is not NULL, `command` is one of the recording that it executes. Consumes
// `status` and returns what takes its place; without memory the same. Any thread.
KEEL_API keel_status_t keel_submission_blame(const keel_submission_t *submission,
                                             const keel_cmd_execute_t *execute,
                                             const keel_command_t *command,
                                             keel_status_t status) KEEL_COLD KEEL_MUST_USE;

// Makes a host call, on this thread, which holds no lock and is blocked by it for as long as the
// application's function takes. True: it is over, and *status, the caller's, says how. False: the
// application has deferred its end; then the command is the application's until `done` is called,
// once, on a thread of the application's, with `context` in it and a status to consume. A detached
// call, which the submission does not wait for, is made by a thread of the library's: it is over at
// once. KEEL_CAP_HOST_CALLS.
KEEL_API bool keel_call_run(const keel_submission_t *submission, keel_cmd_call_t *command,
                            void (*done)(keel_call_state_t *state, keel_status_t status),
                            void *context, keel_status_t *status);

// Reads or writes the file of a KEEL_CMD_READ or KEEL_CMD_WRITE from or to `data`, which has the
// bytes of its reference. Blocks until the system is done: for a thread of the driver's own.
// KEEL_CAP_FILES.
KEEL_API keel_status_t keel_file_transfer(const keel_cmd_transfer_t *command,
                                          void *data) KEEL_MUST_USE;

KEEL_EXTERN_C_END

#endif
