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
// Where time is bounded, so many failures of one test are tried before those of the next.
#define SAMPLES_IN_A_ROW 4

typedef struct plan_t {
    const settings_t *settings;
    report_t *report;
    size_t *order;     // of the tests, as indices of their records
    size_t index;      // in that order, of the next test
    size_t counted;    // samples: so many, from the first on, were begun without a failure
    uint64_t step;     // of the next run of that test
    uint64_t round;    // shuffle: how often all tests have been run
    uint64_t until_ns; // no new run is begun then; 0: no matter when
    uint64_t random;
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

bool plan_probe(const settings_t *settings, keel_caps_t *caps)
{
    result_t result = {0};
    job_source_t source = {&result, probe_next, probe_done};
    process_run(settings, &source);
    *caps = result.caps;
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

static job_t job_of(const plan_t *plan, size_t index)
{
    const record_t *record = &plan->report->records[index];
    return (job_t){.test = record->test, .seed = plan->settings->seed, .index = index};
}

// Runs of each test in turn, as many as `wanted` says.
static bool next_in_order(plan_t *plan, job_t *job, uint64_t (*wanted)(plan_t *, record_t *))
{
    for (; plan->index < plan->report->count; plan->index++, plan->step = 0) {
        size_t index = plan->order[plan->index];
        if (plan->step >= wanted(plan, &plan->report->records[index])) continue;
        *job = job_of(plan, index);
        plan->step++;
        return true;
    }
    return false;
}

static uint64_t wanted_once(plan_t *plan, record_t *record)
{
    return !record->skipped;
}

static bool is_over(const plan_t *plan)
{
    return plan->until_ns && keel_now_ns() > plan->until_ns;
}

static bool next_plain(void *user, job_t *job)
{
    return !is_over(user) && next_in_order(user, job, wanted_once);
}

// All tests with one seed, then all with the next.
static bool next_shuffled(void *user, job_t *job)
{
    plan_t *plan = user;
    if (is_over(plan)) return false;
    while (!next_in_order(plan, job, wanted_once)) {
        if (++plan->round >= plan->settings->runs && !plan->until_ns) return false;
        if (plan->report->runs_wanted == 0) return false;
        plan->index = 0;
    }
    job->seed += plan->round;
    return true;
}

static uint64_t random_step(plan_t *plan)
{
    plan->random = plan->random * 6364136223846793005u + 1442695040888963407u;
    return plan->random >> 33;
}

// How many calls of a function are tried, each with every fault.
static uint64_t wanted_calls(const plan_t *plan, const record_t *record, const tally_t *tally)
{
    uint64_t most = plan->settings->each ? plan->settings->each : UINT64_MAX;
    if (record->test->heavy && most > HEAVY_EACH) most = HEAVY_EACH;
    return tally->calls < most ? tally->calls : most;
}

// How often a test is run again whose good run has shown so many places for a failure.
static uint64_t wanted_failures(plan_t *plan, record_t *record)
{
    if (record->outcome != OUTCOME_PASSED) return 0;
    if (plan->settings->place) return record->places >= plan->settings->place;
    uint64_t count = 0;
    if (plan->settings->mode == MODE_FAULT) {
        for (const tally_t *tally = record->tallies; tally->symbol[0]; tally++)
            count += FAULT_COUNT * wanted_calls(plan, record, tally);
        return count;
    }
    count = record->places;
    return record->test->heavy && count > HEAVY_SAMPLE ? HEAVY_SAMPLE : count;
}

// Of a function with more calls than are tried: half of them from the beginning, the last, and any
// between.
static void choose_call(plan_t *plan, const record_t *record, job_t *job)
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
        job->fail_at = 1 + wanted / 2 + random_step(plan) % (tally->calls - wanted / 2);
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
    } else if (settings->mode == MODE_FAULT) {
        choose_call(plan, record, job);
    } else {
        job->fail_at = 1 + (plan->step - 1) * record->places / wanted_failures(plan, record);
    }
    return true;
}

static void sample_place(plan_t *plan, const record_t *record, job_t *job)
{
    uint64_t places = record->places;
    if (plan->settings->mode == MODE_FAULT) {
        size_t count = 0;
        while (record->tallies[count].symbol[0]) count++;
        const tally_t *tally = &record->tallies[random_step(plan) % count];
        places = tally->calls;
        job->symbol = tally->symbol;
        job->fault = (fault_t)(random_step(plan) % FAULT_COUNT);
    }
    job->fail_at = 1 + random_step(plan) % places;
}

static bool is_counted(const record_t *record)
{
    return record->runs || record->skipped;
}

static bool can_fail(const record_t *record)
{
    return record->outcome == OUTCOME_PASSED && record->places;
}

// The test whose turn it is to fail; NULL: it has not been counted yet, or none can fail.
static record_t *next_to_fail(plan_t *plan)
{
    size_t count = plan->report->count;
    for (size_t tried = 0; tried <= count; tried++, plan->step = 0) {
        record_t *record = &plan->report->records[plan->order[plan->index]];
        if (can_fail(record) && plan->step++ < SAMPLES_IN_A_ROW) return record;
        if (!is_counted(record)) return NULL;
        plan->index = (plan->index + 1) % count;
    }
    return NULL;
}

// Counts the places of a test, lets some of them fail, and goes on to the next test, until time is
// up. Calls of rare functions are as likely as others.
static bool next_sample(void *user, job_t *job)
{
    plan_t *plan = user;
    const report_t *report = plan->report;
    if (is_over(plan)) return false;
    record_t *record = next_to_fail(plan);
    if (record) {
        *job = job_of(plan, (size_t)(record - report->records));
        sample_place(plan, record, job);
        return true;
    }
    while (plan->counted < report->count && report->records[plan->order[plan->counted]].skipped)
        plan->counted++;
    bool again = plan->counted == report->count; // the one whose turn it is still runs
    size_t index = plan->order[again ? plan->index : plan->counted++];
    *job = job_of(plan, index);
    return !again || !is_counted(&report->records[index]);
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

// How many tests before this one in the order are of its area.
static size_t rank_of(const plan_t *plan, const size_t *order, size_t at)
{
    const record_t *records = plan->report->records;
    size_t rank = 0;
    for (size_t i = 0; i < at; i++)
        rank += strcmp(records[order[i]].test->area, records[order[at]].test->area) == 0;
    return rank;
}

// By the seed: one test of each area, then another of each, and so on. However short the time, what
// is tried of all tests is of different areas.
static void order_by_seed(plan_t *plan)
{
    size_t count = plan->report->count, used = 0;
    size_t *any = calloc(count, sizeof *any), *ranks = calloc(count, sizeof *ranks);
    if (!any || !ranks) abort();
    for (size_t i = 0; i < count; i++) { // each goes to any place so far
        size_t place = random_step(plan) % (i + 1);
        any[i] = any[place];
        any[place] = i;
    }
    for (size_t i = 0; i < count; i++) ranks[i] = rank_of(plan, any, i);
    for (size_t rank = 0; used < count; rank++) {
        for (size_t i = 0; i < count; i++)
            if (ranks[i] == rank) plan->order[used++] = any[i];
    }
    free(any);
    free(ranks);
}

static bool plan_by_mode(plan_t *plan)
{
    const settings_t *settings = plan->settings;
    bool fails = settings->mode == MODE_TORTURE || settings->mode == MODE_FAULT;
    const job_source_t plain = {plan, next_plain, run_done};
    const job_source_t shuffle = {plan, next_shuffled, run_done};
    const job_source_t some = {plan, next_sample, run_done};
    if (fails && (!plan->until_ns || settings->place)) return plan_failures(plan);
    if (settings->mode == MODE_PLAIN) return process_run(settings, &plain);
    if (plan->until_ns) order_by_seed(plan);
    if (fails) plan->report->runs_wanted = 0;
    return process_run(settings, fails ? &some : &shuffle);
}

bool plan_run(const settings_t *settings, report_t *report)
{
    plan_t plan = {.settings = settings, .report = report, .random = settings->seed};
    plan.order = calloc(report->count, sizeof *plan.order);
    if (!plan.order) abort();
    for (size_t i = 0; i < report->count; i++) {
        plan.order[i] = i;
        report->runs_wanted += !report->records[i].skipped;
    }
    if (settings->mode == MODE_SHUFFLE) report->runs_wanted *= settings->runs;
    if (settings->seconds > 0) plan.until_ns = keel_now_ns() + (uint64_t)(settings->seconds * 1e9);
    bool whole = plan_by_mode(&plan);
    free(plan.order);
    return whole;
}
