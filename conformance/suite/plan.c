// SPDX-License-Identifier: Apache-2.0
#include "suite/plan.h"

#include "suite/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Of a test that does a great deal, torture tries this many places, and fault this many calls of
// each function.
#define HEAVY_SAMPLE 48
#define HEAVY_EACH   3

typedef struct plan_t {
    const settings_t *settings;
    report_t *report;
    size_t index;      // of the record of the next test
    uint64_t step;     // of the next run of that test
    uint64_t round;    // shuffle: how often all tests have been run
    uint64_t until_ns; // no new run is begun then; 0: no matter when
} plan_t;

static void probe_done(void *user, const job_t *job, const result_t *result, FILE *output)
{
    *(result_t *)user = *result;
    char line[500];
    if (result->outcome == OUTCOME_PASSED) return;
    fprintf(stderr, "keel conformance: cannot use the device: %s\n", result->reason);
    while (fgets(line, sizeof line, output)) fprintf(stderr, "    | %s", line);
}

static bool probe_next(void *user, job_t *job)
{
    result_t *result = user;
    *job = (job_t){0};
    bool first = result->seconds == 0;
    result->seconds = 1;
    return first;
}

bool plan_probe(const settings_t *settings, probe_t *probe)
{
    result_t result = {0};
    job_source_t source = {&result, probe_next, probe_done};
    process_run(settings, &source);
    *probe = result.probe;
    if (result.outcome != OUTCOME_PASSED) return false;
    if (settings->mode != MODE_FAULT || result.places) return true;
    fprintf(stderr, "keel conformance: the library of the device counts no calls; --mode=fault "
                    "needs a stand-in, as cuda://0?lib=build/sim/cuda/libcuda.so.1\n");
    return false;
}

static void run_done(void *user, const job_t *job, const result_t *result, FILE *output)
{
    plan_t *plan = user;
    report_run(plan->report, &plan->report->records[job->index], job, result, output);
}

// Runs of each test in turn, as many as `wanted` says, until time is up.
static bool next_in_order(plan_t *plan, job_t *job, uint64_t (*wanted)(plan_t *, record_t *))
{
    report_t *report = plan->report;
    for (; plan->index < report->count; plan->index++, plan->step = 0) {
        record_t *record = &report->records[plan->index];
        if (plan->step >= wanted(plan, record)) continue;
        report->cut_short |= plan->until_ns && keel_now_ns() > plan->until_ns;
        if (report->cut_short) return false;
        *job = (job_t){.test = record->test, .seed = plan->settings->seed, .index = plan->index};
        plan->step++;
        return true;
    }
    return false;
}

static uint64_t wanted_once(plan_t *plan, record_t *record)
{
    return !record->skipped;
}

static bool next_plain(void *user, job_t *job)
{
    return next_in_order(user, job, wanted_once);
}

// All tests with one seed, then all with the next.
static bool next_shuffled(void *user, job_t *job)
{
    plan_t *plan = user;
    while (!next_in_order(plan, job, wanted_once)) {
        if (plan->report->cut_short || ++plan->round >= plan->settings->runs) return false;
        plan->index = 0;
    }
    job->seed += plan->round;
    return true;
}

static uint64_t mixed(uint64_t value, uint64_t more)
{
    value = (value + more + 1) * 0x9e3779b97f4a7c15u;
    return value ^ value >> 32;
}

// The same for the same seed, test and number, whatever other tests there are and do.
static uint64_t random_of(const plan_t *plan, const test_t *test, uint64_t number)
{
    char name[128];
    uint64_t value = mixed(mixed(0, plan->settings->seed), number);
    for (const char *at = test_name(test, name, sizeof name); *at; at++)
        value = mixed(value, (unsigned char)*at);
    return value;
}

// How many calls of a function are tried, each with every fault.
static uint64_t wanted_calls(const plan_t *plan, const record_t *record, const tally_t *tally)
{
    uint64_t most = plan->settings->each ? plan->settings->each : UINT64_MAX;
    if (record->test->heavy && most > HEAVY_EACH) most = HEAVY_EACH;
    return tally->calls < most ? tally->calls : most;
}

// How many failures there are to try of a test whose good run has shown so many places for one.
static uint64_t possible_failures(const plan_t *plan, const record_t *record)
{
    uint64_t count = 0;
    if (plan->settings->mode == MODE_FAULT) {
        for (const tally_t *tally = record->tallies; tally->symbol[0]; tally++)
            count += FAULT_COUNT * wanted_calls(plan, record, tally);
        return count;
    }
    count = record->places;
    return record->test->heavy && count > HEAVY_SAMPLE ? HEAVY_SAMPLE : count;
}

// Whether the seed chooses among them.
static bool is_sampled(const plan_t *plan, const record_t *record)
{
    unsigned samples = plan->settings->samples;
    return samples && samples < possible_failures(plan, record);
}

// How often the test is run again.
static uint64_t wanted_failures(plan_t *plan, record_t *record)
{
    if (record->outcome != OUTCOME_PASSED) return 0;
    if (plan->settings->place) return record->places >= plan->settings->place;
    if (is_sampled(plan, record)) return plan->settings->samples;
    return possible_failures(plan, record);
}

// Calls of rare functions are as likely as others.
static void sample_call(const plan_t *plan, const record_t *record, job_t *job)
{
    size_t count = 0;
    while (record->tallies[count].symbol[0]) count++;
    uint64_t number = 3 * plan->step;
    const tally_t *tally = &record->tallies[random_of(plan, job->test, number) % count];
    job->symbol = tally->symbol;
    job->fault = (fault_t)(random_of(plan, job->test, number + 1) % FAULT_COUNT);
    job->fail_at = 1 + random_of(plan, job->test, number + 2) % tally->calls;
}

// Of a function with more calls than are tried: half of them from the beginning, the last, and any
// between.
static void choose_call(const plan_t *plan, const record_t *record, job_t *job)
{
    const tally_t *tally = record->tallies;
    uint64_t step = (plan->step - 1) / FAULT_COUNT, wanted;
    for (; step >= (wanted = wanted_calls(plan, record, tally)); tally++) step -= wanted;
    job->symbol = tally->symbol;
    job->fault = (fault_t)((plan->step - 1) % FAULT_COUNT);
    if (wanted == tally->calls || step < wanted / 2)
        job->fail_at = 1 + step;
    else if (step == wanted - 1)
        job->fail_at = tally->calls;
    else
        job->fail_at =
            1 + wanted / 2 + random_of(plan, job->test, plan->step) % (tally->calls - wanted / 2);
}

// All places, or so many at equal distances, or as many that the seed gives.
static uint64_t choose_allocation(plan_t *plan, record_t *record, const job_t *job)
{
    if (is_sampled(plan, record))
        return 1 + random_of(plan, job->test, plan->step) % record->places;
    return 1 + (plan->step - 1) * record->places / wanted_failures(plan, record);
}

static bool next_failure(void *user, job_t *job)
{
    plan_t *plan = user;
    const settings_t *settings = plan->settings;
    if (!next_in_order(plan, job, wanted_failures)) return false;
    record_t *record = &plan->report->records[job->index];
    if (settings->place) {
        job->fail_at = settings->place;
        job->symbol = settings->symbol[0] ? settings->symbol : NULL;
        job->fault = settings->fault;
    } else if (settings->mode == MODE_TORTURE) {
        job->fail_at = choose_allocation(plan, record, job);
    } else if (is_sampled(plan, record)) {
        sample_call(plan, record, job);
    } else {
        choose_call(plan, record, job);
    }
    return true;
}

// Counts the places of each test, then lets them all fail.
static bool plan_failures(plan_t *plan)
{
    const job_source_t count = {plan, next_plain, run_done};
    if (!process_run(plan->settings, &count)) return false;
    plan->index = plan->step = 0;
    plan->report->runs_wanted = 0;
    for (size_t i = 0; i < plan->report->count; i++)
        plan->report->runs_wanted += wanted_failures(plan, &plan->report->records[i]);
    plan->report->runs_wanted += plan->report->runs;
    const job_source_t each = {plan, next_failure, run_done};
    return process_run(plan->settings, &each);
}

// Skipped ones last, then by rank, then as the seed has it.
static int by_choice(const void *a, const void *b)
{
    const record_t *one = a, *other = b;
    if (one->skipped != other->skipped) return one->skipped ? 1 : -1;
    if (one->rank != other->rank) return one->rank < other->rank ? -1 : 1;
    return (one->lot > other->lot) - (one->lot < other->lot);
}

// How many tests before this one are of its area.
static unsigned rank_of(const record_t *records, size_t index)
{
    unsigned rank = 0;
    for (size_t i = 0; i < index; i++)
        rank += strcmp(records[i].test->area, records[index].test->area) == 0;
    return rank;
}

// By the seed: one test of each area, then another of each, until there are enough. Skipped ones
// stay, the others leave the report.
static void choose_tests(const plan_t *plan)
{
    report_t *report = plan->report;
    record_t *records = report->records;
    size_t runnable = 0, wanted = plan->settings->tests;
    for (size_t i = 0; i < report->count; i++) runnable += !records[i].skipped;
    if (!wanted || wanted >= runnable) return;
    for (size_t i = 0; i < report->count; i++) records[i].lot = random_of(plan, records[i].test, 0);
    qsort(records, report->count, sizeof *records, by_choice);
    for (size_t i = 0; i < runnable; i++) records[i].rank = rank_of(records, i);
    qsort(records, report->count, sizeof *records, by_choice);
    report->left_out = runnable - wanted;
    memmove(&records[wanted], &records[runnable], (report->count - runnable) * sizeof *records);
    report->count -= report->left_out;
}

bool plan_run(const settings_t *settings, report_t *report)
{
    plan_t plan = {.settings = settings, .report = report};
    const job_source_t plain = {&plan, next_plain, run_done};
    const job_source_t shuffle = {&plan, next_shuffled, run_done};
    choose_tests(&plan);
    for (size_t i = 0; i < report->count; i++) report->runs_wanted += !report->records[i].skipped;
    if (settings->seconds > 0) plan.until_ns = keel_now_ns() + (uint64_t)(settings->seconds * 1e9);
    if (settings->mode == MODE_PLAIN) return process_run(settings, &plain);
    if (settings->mode != MODE_SHUFFLE) return plan_failures(&plan);
    report->runs_wanted *= settings->runs;
    return process_run(settings, &shuffle);
}
