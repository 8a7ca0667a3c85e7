// SPDX-License-Identifier: Apache-2.0
// One run of one test, inside the process made for it; under a tool, in one process after another
// test. For the suite's own files.
#ifndef SUITE_RUN_H_
#define SUITE_RUN_H_

#include "suite/fixture.h"

#include <setjmp.h>

typedef enum run_mode_t { MODE_PLAIN, MODE_TORTURE, MODE_SHUFFLE, MODE_FAULT } run_mode_t;

// What becomes of a call of the vendor's library.
typedef enum fault_t {
    FAULT_REFUSED, // it lacks something, and the device goes on
    FAULT_FAILED,  // for unknown reasons
    FAULT_LOST,    // the device is lost with it, and all later calls fail
    FAULT_COUNT
} fault_t;

// What the command was asked for.
typedef struct settings_t {
    const char *command; // its words, for messages that repeat it
    const char *uri;
    const char *partner; // of tests with two devices of a driver; NULL: the device itself
    run_mode_t mode;
    uint64_t seed;
    double limit_s; // time limit of a test that states none
    const char *filter;
    const char *expect;  // path; NULL: no expectations
    const char *kernels; // path of the container to use in place of the suite's; NULL: none
    void *image;         // owned: what stands there
    size_t image_size;
    unsigned parallel;
    double seconds;   // no run begins later; 0: no matter when
    size_t tests;     // the seed chooses so many; 0: all of them
    unsigned samples; // torture, fault: it chooses so many failures of a test; 0: all of them
    uint64_t place;   // torture: only this allocation fails, fault: only this call; 0: each in turn
    char symbol[56];  // with a call given: it counts calls of this function; "": of all
    fault_t fault;    // with a call given: what becomes of it
    unsigned each;    // fault: at most so many calls of each function; 0: all of them
    unsigned runs;    // shuffle: seeds per test
    bool under_tool;  // in this process, and threads and descriptors are not counted
    bool json;
    bool verbose;
} settings_t;

typedef struct job_t {
    test_t *test;
    uint64_t seed;
    uint64_t fail_at;   // the allocation or call that fails; 0: none
    const char *symbol; // counted are calls of this function; NULL: of all
    size_t index;       // of the test, for the maker of the job
    fault_t fault;
} job_t;

// How often a function of the vendor's was called. Written by the library, as docs/sim.md has it.
typedef struct tally_t {
    char symbol[56]; // "": the list ends here
    uint64_t calls;
} tally_t;

enum { TALLIES_MAX = 160 };

// What a device can do.
typedef struct probe_t {
    keel_caps_t caps;
    bool survives;   // the process does, when a kernel goes astray
    bool reads_only; // memory of the host that may not be written
} probe_t;

// What the process has to say, in memory shared with the runner.
typedef struct result_t {
    outcome_t outcome;
    bool finished;   // the process got to its end
    uint64_t places; // allocations, or in fault mode calls
    bool hit;        // what was to fail did
    bool checked;    // the test checked something, here or in a child of its own
    bool kernels;    // it has loaded the suite's kernels
    double seconds;
    char need[32];                // skipped: what is lacking
    char reason[160];             // one line
    probe_t probe;                // of a job that is one
    tally_t tallies[TALLIES_MAX]; // fault
} result_t;

// Runs a test in this process. A job without a test probes the device: what it can do goes into the
// result.
void run_job(const settings_t *settings, const job_t *job, result_t *result);

// Has all that is kept in the process for good started, so that it does not look like a leak of the
// test.
void warm_up(const settings_t *settings, const test_t *test);
// Threads of the process, less those that are about to end.
int threads_now(void);

// Looks how crowded the machine is. Limits of time are there for what hangs: where more threads
// want to run than there are processors, all takes longer. Until the next call all limits stay the
// same, also in processes that are forked.
void limits_adapt(void);
// How long a test may take, in seconds.
double limit_of(const settings_t *settings, const test_t *test);

// The rest is for check.c and fixture.c.

extern _Thread_local jmp_buf *run_exit; // where a failed check goes; NULL: nowhere
const settings_t *run_settings(void);

// Records how the run ends; the first one that is not a pass stays, except that a failure is more
// than running out of memory. `format` is the one line.
void run_outcome(outcome_t outcome, const char *format, ...) KEEL_PRINTF(2, 3);
outcome_t run_outcome_now(void);
result_t *run_result(void);
_Noreturn void run_leave(void);

// Releases all that the test owns. After a failure, first ends whatever others might wait for.
void fixture_finish(bool failed);
void fixture_forget(void); // what was released is not to be given to the next test

// The allocator that counts, and fails on request (0: never).
void starve_install(uint64_t fail_at);
void starve_stop(void); // in a child of the test: from now on none fails
bool starve_hit(void);
int64_t starve_outstanding(void);

// Drivers for whose vendor's library there is a stand-in that can be told what to do.
typedef struct vendor_t {
    const char *driver;
    const char *variable; // that tells it
    const char *seed;     // the variable of the order in which things run; NULL: the first one
    bool keeps;           // the vendor's own library is behind it, and keeps threads and the like
    const char *mark;     // between the name of a function and a number
    const char *refusal;  // behind the number: that memory is short
} vendor_t;

// NULL: there is none for such devices.
const vendor_t *fault_vendor(const char *uri);
// In shuffle mode: sets the variable of the order, before the vendor's library is first used.
void fault_seed(const settings_t *settings, const job_t *job);
// Sets the other as the mode wants, before the test opens the device.
void fault_install(const settings_t *settings, const job_t *job);
// How many calls the library has had, of all functions and of each, and whether one was made to
// fail.
uint64_t fault_calls(tally_t tallies[TALLIES_MAX]);
bool fault_hit(void);
// What was made by its calls and is not given back, with the number of calls that made it. Returns
// how many things; 0 where the library does not say.
size_t fault_left(const char *uri, char *text, size_t size);

#endif
