// SPDX-License-Identifier: Apache-2.0
// Runs jobs in processes of their own, several at a time, each with a time limit. The runner itself
// never uses a device and has one thread, so that a fork is as good as a fresh start. Under a tool
// it runs the jobs itself, one after the other.
#ifndef SUITE_PROCESS_H_
#define SUITE_PROCESS_H_

#include "suite/run.h"

#include <stdio.h>

typedef struct job_source_t {
    void *user;
    // The next job; false: there is none (any more).
    bool (*next)(void *user, job_t *job);
    // A job has ended; `output` is what it printed, positioned at its beginning.
    void (*done)(void *user, const job_t *job, const result_t *result, FILE *output);
} job_source_t;

// Returns when the source has no more jobs and all have ended; false if a signal asked to stop.
bool process_run(const settings_t *settings, const job_source_t *source);

#endif
