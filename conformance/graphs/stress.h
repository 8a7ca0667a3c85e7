// SPDX-License-Identifier: Apache-2.0
// Very many small submissions from several threads: is a wake-up ever lost?
#ifndef GRAPHS_STRESS_H_
#define GRAPHS_STRESS_H_

#include "graphs/env.h"
#include "graphs/random.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    STRESS_THREADS = 16,
    STRESS_FAN = 24,     // submissions side by side
    STRESS_AHEAD = 512,  // submissions before a host wait, about
    STRESS_SLOTS = 1024, // more than can be in flight
    STRESS_SLOT = 16,    // bytes
};

typedef struct stress_options_t {
    uint64_t submissions, seed;
    size_t threads;
    double limit_s; // without progress: a hang
    bool mute;      // for the test of this tester: questions are not answered
} stress_options_t;

// Runs it on a device. False, with a report on stdout, if it hangs, computes nonsense or leaves
// something behind; the process is then of no more use.
bool stress_run(const stress_options_t *options, const char *uri);

typedef struct stress_t stress_t;

// A thread that submits, and one beside it that only waits for points and answers them.
typedef struct submitter_t {
    stress_t *stress;
    pthread_t thread, echo;
    random_t random;
    keel_buffer_t *buffer;      // one word, which chains change in a known way
    keel_buffer_t *scratch;     // a slot for each submission in flight
    uint32_t word;              // what it must be
    keel_semaphore_t *gate;     // signalled by the host
    keel_semaphore_t *question; // signalled by queues, awaited by the echo
    keel_semaphore_t *answer;   // signalled by the echo, awaited by queues
    uint64_t gate_value, question_value;
    uint64_t unawaited; // submissions since the last host wait
    keel_point_t last;  // the latest submission
    // For the report of a hang.
    _Atomic(const char *) doing;
    _Atomic uint64_t submitted;
    // The latest submission, for others to wait for: its value on the timeline of queue 0.
    _Atomic uint64_t published;
} submitter_t;

struct stress_t {
    env_t env;
    uint64_t submissions; // that each thread is to make
    size_t thread_count;
    submitter_t submitters[STRESS_THREADS];
    _Atomic uint64_t steps; // anything that anybody did: a hang is when it stands still
    _Atomic size_t running;
    _Atomic bool stop; // the echoes
    bool mute;
    _Atomic(const char *) problem;
};

// Submits in random patterns until the thread has made its share.
void *submitter_run(void *user);
// Answers each question.
void *echo_run(void *user);

#endif
