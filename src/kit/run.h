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
#include "kit/helper.h"

enum { RUN_MAX_DEPTH = 16 }; // of blocks

typedef enum run_outcome_t {
    RUN_GOES_ON, // with the next command
    RUN_WAITS,   // until all that was begun has ended; then the same command again
    RUN_STARVES, // there is no room (run_room_take): the run may be gone on with already
} run_outcome_t;

typedef struct run_t run_t;

// The driver's.
typedef struct run_ops_t {
    // Before the walk: if what was handed over has ended, takes back what it needed.
    run_outcome_t (*resume)(run_t *run);
    // One command: no barrier, and not the execution of a recording. A block whose value the host
    // does not see sets `value`.
    run_outcome_t (*command)(run_t *run, const keel_command_t *command,
                             const keel_cmd_execute_t *execute, keel_status_t *status);
    // Hands over what was prepared, with run_begin; gives it up if the run has failed.
    void (*commit)(run_t *run);
    // All is over: gives back what the run has.
    void (*finish)(run_t *run);
} run_ops_t;

// Those of a device.
typedef struct runs_t {
    const run_ops_t *ops;
    helper_t worker;        // goes on with runs, by runs_work
    _Atomic(run_t *) ready; // those to go on with, newest first
} runs_t;

// Room for so many runs at a time; zero but for `most`.
typedef struct run_room_t {
    lock_t lock;
    uint32_t most, taken;
    run_t *first, **last; // those that wait
} run_room_t;

// What a driver's struct for a submission begins with. `pending` counts what the run waits for, and
// the thread that drives it.
struct run_t {
    keel_submission_t submission;
    runs_t *runs;
    run_t *next;                       // of those that are ready, or wait for room
    const keel_command_t *at;          // of the submission, the next one
    const keel_cmd_execute_t *execute; // the recording that runs; NULL: none
    const keel_command_t *inner;       // of that recording, the next one
    uint32_t loops[RUN_MAX_DEPTH];
    _Atomic(keel_status_t) failure; // the first; owned
    _Atomic uint32_t pending;
    uint32_t value;  // of the block at hand, if `has_value`
    bool has_value;  // the driver has fetched it
    bool driven;     // the thread that drives it is counted, or it waits for room
    bool has_room;   // of a run_room_t
    bool unfinished; // the driver has more to do of what was begun, before barriers are passed
    // What was prepared, or handed over and has not ended; the driver sets `now`, and clears all
    // when it has ended.
    bool before;  // the last barrier
    bool now;     // since then
    bool barrier; // what comes next waits for what is before; the driver clears it then
};

void runs_init(runs_t *runs, const run_ops_t *ops, const char *name, uint64_t (*work)(void *),
               void *owner);
// Goes on with all that are ready. The device's thread.
void runs_work(runs_t *runs);

// Starts a submission, which begins with a run_t.
void run_start(runs_t *runs, keel_submission_t *submission);
void run_fail(run_t *run, keel_status_t status); // the first failure stays
// Whether something was begun that has not ended, besides what the device does. Who drives it.
bool run_is_busy(run_t *run);
// Something that the run waits for begins, and ends. Any thread.
void run_begin(run_t *run);
void run_done(run_t *run);
// The same, with how it ended, for a command of the submission.
void run_done_with(run_t *run, const keel_command_t *command, keel_status_t status);

// Whether there is room for the run. False: it will be gone on with when there is.
bool run_room_take(run_room_t *room, run_t *run);
// The next one that waits gets it.
void run_room_give_back(run_room_t *room, run_t *run);

// What the host does for a run: each begins here and ends on another thread.
keel_status_t run_call(run_t *run, chores_t *calls, keel_cmd_call_t *command) KEEL_MUST_USE;
keel_status_t run_alloca(run_t *run, keel_cmd_alloca_t *command) KEEL_MUST_USE;

#endif
