// SPDX-License-Identifier: Apache-2.0
// Runs: submissions that were started, for drivers whose host walks over the commands one by one.
// What the device does is prepared, what the host does begins at once. Where something must wait
// until all before has ended, what was prepared is handed over and the thread leaves; the last one
// to end has the device's thread go on with the run.
//
//     run_start --> walk: command, command ... --> commit --> leave
//                     ^                                         |
//                     +--- resume <--- the device's thread <----+  run_done, for the last time
//
// One thread at a time drives a run.
#ifndef KEEL_SRC_KIT_RUN_H_
#define KEEL_SRC_KIT_RUN_H_

#include <keel/driver/submission.h>

#include "base/lock.h"
#include "kit/chores.h"
#include "kit/promise.h"
#include "kit/transfer.h"

enum {
    RUN_MAX_DEPTH = 16, // of blocks
    RUN_FILES = 64,     // that a run moves at a time; each may need two copies
};

typedef enum run_outcome_t {
    RUN_GOES_ON, // with the next command
    RUN_WAITS,   // until all that was begun has ended; then the same command again
    RUN_STARVES, // there is no room (run_room_take): the run may be gone on with already
} run_outcome_t;

typedef struct run_t run_t;

// What becomes of a copy to or from memory of another device.
typedef enum run_across_t {
    RUN_ACROSS_DONE,     // it was prepared
    RUN_ACROSS_PREPARES, // it can be when the device has come to the other side
    RUN_ACROSS_BEYOND,   // it cannot: others are to make the copy
} run_across_t;

// The driver's. One thread at a time for a run.
typedef struct run_ops_t {
    // If what was handed over has ended, takes back what it needed, and clears `before`, `now` and
    // `barrier`. A run that does not lead (run->leads) fails here if a promise has failed.
    void (*settle)(run_t *run);
    // A command of the device's, or a block. Words that the host must read and does not see are
    // fetched, with `words` set and RUN_WAITS; then the command comes again.
    run_outcome_t (*command)(run_t *run, const keel_command_t *command,
                             const keel_cmd_execute_t *execute, keel_status_t *status);
    // Hands over what was prepared, with run_begin; or gives it up, if the run has failed and it
    // still can.
    void (*commit)(run_t *run);
    // All is over: gives back what the run has besides its room.
    void (*finish)(run_t *run);
    // For files: memory that both sides see, until the end of the run; and a copy.
    keel_status_t (*stage)(run_t *run, uint64_t size, void **data, uint64_t *address);
    keel_status_t (*copy)(run_t *run, const bound_copy_t *copy);
    // Whether the device can take one more copy to another: run_room_take, and what else there is.
    run_outcome_t (*room)(run_t *run);
    // A copy to or from another device, which stays open until it has ended.
    keel_status_t (*across)(run_t *run, const keel_cmd_across_t *command, run_across_t *how);
    // Optional. The run begins: it may have been started ahead of promises (promise.h), each of
    // which is counted by run_ahead_begin until it has come true or has failed.
    void (*begin)(run_t *run);
    // The submission that has made run->promise has ended, with `failure` (borrowed) or well. Takes
    // the promise over. Required if any is made.
    void (*kept)(promise_t *promise, keel_status_t failure);
    // Optional. Calls `go`, with what the device's thread needs around each run.
    void (*drive)(run_t *run, void (*go)(run_t *run));
    // Comes to memory of a peer. May take long; the device's thread for that. NULL: there is
    // nothing to do for it.
    keel_status_t (*peer)(keel_device_t *device, const keel_cmd_across_t *command);
} run_ops_t;

// Those of a device.
typedef struct runs_t {
    const run_ops_t *ops;
    keel_device_t *device;
    helper_t worker;           // goes on with runs, by runs_work
    _Atomic(run_t *) ready;    // those to go on with, newest first
    _Atomic uint32_t handlers; // of the vendor's, not called yet or still running, which the driver
                               // counts; and threads that may have no reference to the device
    chores_t errands;          // what copies to other devices need, which may take long
    aio_t *aio;                // owned
} runs_t;

// Those of a queue: there is room for `most` at a time, the others wait for it.
typedef struct run_queue_t {
    chores_t calls; // of the application
    lock_t lock;    // for what follows
    uint32_t most, taken;
    run_t *first, **last; // those that wait
} run_queue_t;

// What a driver's struct for a submission begins with. `pending` counts what the run waits for, and
// the thread that drives it.
struct run_t {
    keel_submission_t submission;
    runs_t *runs;
    run_queue_t *queue;
    run_t *next;                       // of those that are ready, or wait for room
    const keel_command_t *at;          // of the submission, the next one
    const keel_cmd_execute_t *execute; // the recording that runs; NULL: none
    const keel_command_t *inner;       // of that recording, the next one
    uint32_t loops[RUN_MAX_DEPTH];
    _Atomic(keel_status_t) failure; // the first; owned
    _Atomic uint32_t pending;
    _Atomic uint32_t ahead; // of these, promises that it was started ahead of
    bool leads; // there were such when the walk began. The host then does nothing for it but
                // prepare what the device is to do, to the end of the walk: a promise that ends
                // meanwhile may have failed, which `settle` finds out.
    promise_t *promise;    // that it has made; owned; NULL: none
    const uint32_t *words; // that the command at hand reads, if the driver has them fetched to
                           // where the host sees them: its counts, or the value of a block; NULL:
                           // it has not. There once the run goes on.
    bool driven;           // the thread that drives it is counted, or it waits for room
    bool has_room;         // of its queue
    bool visits;           // what was prepared uses memory of other devices, which wait for it
    uint32_t files;        // that were begun, since the last barrier that waited for them
    transfers_t transfers;
    // What was prepared, or handed over and has not ended; the driver sets `now`.
    bool before;  // the last barrier
    bool now;     // since then
    bool barrier; // what comes next waits for what is before; the driver clears it then
};

// `name` is that of the thread, `aid` that of the one for errands; `work` calls runs_work.
void runs_init(runs_t *runs, const run_ops_t *ops, keel_device_t *device, const char *name,
               const char *aid, uint64_t (*work)(void *));
keel_status_t runs_start(runs_t *runs) KEEL_MUST_USE;
// All runs have ended: ends the threads, when the last handler is over. Also after a failed start.
void runs_stop(runs_t *runs);
void runs_free(runs_t *runs); // in the child of a fork, too
// Goes on with all that are ready. The device's thread.
void runs_work(runs_t *runs);

void run_queue_init(run_queue_t *queue, const char *name, uint32_t most);

// Starts a submission, which begins with a run_t.
void run_start(runs_t *runs, run_queue_t *queue, keel_submission_t *submission);
void run_fail(run_t *run, keel_status_t status); // the first failure stays
// Whether something was begun that has not ended, besides what the device does. Who drives it.
bool run_is_busy(run_t *run);
// Nothing will be left to do when what was prepared has ended. Who drives it, when it commits.
bool run_is_last(run_t *run);
// A promise that the run went ahead of, and its end. The first for run_ops_t.begin.
void run_ahead_begin(run_t *run);
void run_ahead_done(run_t *run);
// Something that the run waits for begins, and ends. Any thread.
void run_begin(run_t *run);
void run_done(run_t *run);
// The same, with how it ended, for a command of the submission.
void run_done_with(run_t *run, const keel_command_t *command, keel_status_t status);

// Whether there is room for the run. False: it will be gone on with when there is.
bool run_room_take(run_t *run);
// The next one that waits gets it.
void run_room_give_back(run_t *run);

// run_host.c, for run.c: what the host does. Each begins here and ends on another thread, while the
// run goes on up to the next barrier.
bool run_is_for_host(uint32_t kind);
run_outcome_t run_host(run_t *run, const keel_command_t *command, keel_status_t *status);
// Files: the copies and the steps that were begun are over, and the next ones begin.
run_outcome_t run_files(run_t *run);

// run_across.c, for run.c.
run_outcome_t run_across(run_t *run, const keel_command_t *command, keel_status_t *status);
// What was prepared has ended, or was given up: leaves the devices that it visited.
void run_visits_end(run_t *run);

// For handlers of the vendor's: what was handed over has ended. Others need not wait for the rest
// of the run to get its room, or to close. In place of run_done.
void run_handed_back(run_t *run);

#endif
