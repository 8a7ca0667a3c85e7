// SPDX-License-Identifier: Apache-2.0
// What came out: one record per selected test, told as it happens and counted in the end.
#ifndef SUITE_REPORT_H_
#define SUITE_REPORT_H_

#include "suite/expect.h"
#include "suite/run.h"

#include <stdio.h>

typedef struct record_t {
    test_t *test;
    outcome_t outcome; // of all its runs; OUTCOME_CRASHED: none yet
    bool skipped;      // there is nothing to run
    unsigned runs, failed_runs;
    uint64_t places;  // where something can be made to fail, as counted in a run where nothing is
    tally_t *tallies; // fault: of which functions they are; owned, ended by one without a name
    double seconds;
    unsigned rank; // --tests: how many of its area come before it
    uint64_t lot;  // --tests: its place among those of a rank
    char need[32];
    char reason[200];
} record_t;

typedef struct report_t {
    const settings_t *settings;
    expectations_t expected;
    record_t *records;
    size_t count;
    size_t left_out; // runnable tests that the seed did not choose; they have no record
    unsigned long runs, runs_wanted;
    bool cut_short; // time was up before all runs were begun
    bool progress;  // there is a line to be overwritten on the terminal
} report_t;

// Skips the test before it runs.
void report_skip(report_t *report, record_t *record, const char *need, const char *why);
// A run of it has ended.
void report_run(report_t *report, record_t *record, const job_t *job, const result_t *result,
                FILE *output);
void report_finish(report_t *report);
// All have; prints the counts. Returns whether everything was as it should be.
bool report_total(report_t *report);

#endif
