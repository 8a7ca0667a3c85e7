// SPDX-License-Identifier: Apache-2.0
// Within the runner.
#ifndef GRAPHS_RUNNER_H_
#define GRAPHS_RUNNER_H_

#include "graphs/kernels/arith.h"
#include "graphs/run.h"

#include <pthread.h>

enum { PART_OFFSET = 16 };

typedef struct run_t run_t;

// What a host call gets.
typedef struct call_t {
    run_t *run;
    const op_t *op;
    size_t action;
    keel_host_call_t *handle; // while it is put off
    struct call_t *next;
} call_t;

struct run_t {
    env_t *env;
    const graph_t *graph;
    const run_options_t *options;
    outcome_t *outcome;
    uint64_t deadline_ns;
    keel_live_t live; // before

    keel_queue_t *queues[MAX_DEVICES][MAX_QUEUES];
    keel_buffer_t *buffers[MAX_SPACES][MAX_DEVICES];
    keel_buffer_t *parts[MAX_SPACES][MAX_DEVICES]; // each from PART_OFFSET on, if it is that long
    keel_file_t *files[MAX_SPACES][MAX_DEVICES];
    void *shared[MAX_SPACES];
    int fds[MAX_SPACES];
    keel_semaphore_t *semaphores[MAX_SEMAPHORES];
    keel_recording_t *recordings[MAX_RECORDINGS]; // one-shot ones are their thread's
    keel_point_t points[MAX_ACTIONS];             // own points, once begun
    call_t calls[MAX_ACTIONS][MAX_OPS];

    pthread_mutex_t mutex;
    pthread_cond_t changed; // anything below
    uint64_t begun;         // actions; host actions when done
    size_t threads;         // still running
    call_t *put_off;
    bool closing;
};

// What an execution gives to one command of its recording.
typedef struct given_t {
    uint32_t number;
    uint32_t groups[3];
    uint8_t data[GIVEN_SIZE];
} given_t;

// Translated operations, with what they point to.
typedef struct built_t {
    keel_op_t ops[MAX_COMMANDS];
    keel_ref_t refs[MAX_COMMANDS][MAX_SPANS];
    arith_constants_t constants[MAX_COMMANDS];
    uint8_t data[MAX_COMMANDS][SPACE_SIZE];
    keel_patch_t patches[MAX_COMMANDS];
    given_t given[MAX_EXECUTES][MAX_COMMANDS];
    size_t executes; // of these
} built_t;

// Translates operations of `action` (in a recording: of the one that executes it) for `device`.
void ops_build(run_t *run, size_t action, uint8_t device, const op_t *ops, size_t count,
               built_t *built);
keel_status_t recording_build(run_t *run, size_t index, size_t action,
                              keel_recording_t **recording) KEEL_MUST_USE;

// A thread's part of the graph, from its first action to its last.
void *thread_run(void *user);
typedef struct thread_t {
    run_t *run;
    uint8_t number;
} thread_t;

// Host calls, and the thread that ends those put off.
keel_status_t call_begin(void *user, keel_host_call_t *handle);
void *calls_end(void *user);

// Consumes the status.
void cause_take(keel_status_t status, cause_t *cause);
void run_problem(run_t *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Consumes the status; notes it as a problem if it is an error.
bool run_good(run_t *run, keel_status_t status, const char *what);

keel_point_t point_build(const run_t *run, const point_t *point);

#endif
