// SPDX-License-Identifier: Apache-2.0
#include "suite/plan.h"

#include "suite/process.h"

#include <string.h>

// Of a test that does a great deal, torture and fault try this many places.
#define HEAVY_SAMPLE 48

typedef struct plan_t {
    const settings_t *settings;
    report_t *report;
    size_t index;      // of the next test
    uint64_t step;     // of the next run of that test
    uint64_t round;    // shuffle: how often all tests have been run
    uint64_t until_ns; // no new run is begun then
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
    return result.outcome == OUTCOME_PASSED;
}

static void run_done(void *user, const job_t *job, const result_t *result, FILE *output)
{
    plan_t *plan = user;
    report_run(plan->report, &plan->report->records[job->index], job, result, output);
}

// Runs of each test in turn, as many as `wanted` says.
static bool next_in_order(plan_t *plan, job_t *job, uint64_t (*wanted)(plan_t *, record_t *))
{
    for (; plan->index < plan->report->count; plan->index++, plan->step = 0) {
        record_t *record = &plan->report->records[plan->index];
        if (plan->step >= wanted(plan, record)) continue;
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

// All tests with one seed, then all with the next. However short the time, each runs once.
static bool next_shuffled(void *user, job_t *job)
{
    plan_t *plan = user;
    bool timed = plan->settings->seconds > 0;
    while (!next_in_order(plan, job, wanted_once)) {
        if (++plan->round >= plan->settings->runs && !timed) return false;
        if (plan->report->runs_wanted == 0) return false;
        plan->index = 0;
    }
    job->seed += plan->round;
    return plan->round == 0 || !timed || keel_now_ns() < plan->until_ns;
}

// How often a test is run again whose good run has shown so many places for a failure. A call can
// fail by itself, or be the one with which the device is lost.
static uint64_t wanted_failures(plan_t *plan, record_t *record)
{
    if (record->outcome != OUTCOME_PASSED) return 0;
    uint64_t count = record->places;
    if (plan->settings->place) return count >= plan->settings->place;
    if (record->test->heavy && count > HEAVY_SAMPLE) count = HEAVY_SAMPLE;
    return plan->settings->mode == MODE_FAULT ? 2 * count : count;
}

static bool next_failure(void *user, job_t *job)
{
    plan_t *plan = user;
    if (!next_in_order(plan, job, wanted_failures)) return false;
    const record_t *record = &plan->report->records[job->index];
    uint64_t wanted = wanted_failures(plan, &plan->report->records[job->index]);
    uint64_t step = plan->step - 1;
    if (plan->settings->place) {
        job->fail_at = plan->settings->place;
        job->onwards = plan->settings->onwards;
        return true;
    }
    if (plan->settings->mode == MODE_FAULT) {
        job->onwards = step % 2;
        step /= 2;
        wanted /= 2;
    }
    job->fail_at = 1 + step * record->places / wanted;
    return true;
}

static uint64_t random_step(plan_t *plan)
{
    plan->random = plan->random * 6364136223846793005u + 1442695040888963407u;
    return plan->random >> 33;
}

// Any test, any of its places, until time is up.
static bool next_sample(void *user, job_t *job)
{
    plan_t *plan = user;
    for (int attempts = 0; attempts < 1000; attempts++) {
        if (keel_now_ns() > plan->until_ns) return false;
        size_t index = random_step(plan) % plan->report->count;
        record_t *record = &plan->report->records[index];
        if (record->outcome != OUTCOME_PASSED || !record->places) continue;
        *job = (job_t){.test = record->test, .seed = plan->settings->seed, .index = index};
        job->fail_at = 1 + random_step(plan) % record->places;
        job->onwards = plan->settings->mode == MODE_FAULT && random_step(plan) % 2;
        return true;
    }
    return false;
}

// Counts the places of each test, then lets them fail.
static bool plan_failures(plan_t *plan)
{
    const job_source_t count = {plan, next_plain, run_done};
    if (!process_run(plan->settings, &count)) return false;
    plan->index = plan->step = 0;
    plan->report->runs_wanted = 0;
    const job_source_t each = {plan, next_failure, run_done};
    const job_source_t some = {plan, next_sample, run_done};
    if (plan->settings->seconds == 0) return process_run(plan->settings, &each);
    plan->until_ns = keel_now_ns() + (uint64_t)(plan->settings->seconds * 1e9);
    return process_run(plan->settings, &some);
}

bool plan_run(const settings_t *settings, report_t *report)
{
    plan_t plan = {.settings = settings, .report = report, .random = settings->seed};
    for (size_t i = 0; i < report->count; i++) {
        report->runs_wanted += !report->records[i].skipped;
    }
    if (settings->mode == MODE_TORTURE || settings->mode == MODE_FAULT) return plan_failures(&plan);
    if (settings->mode == MODE_SHUFFLE) {
        report->runs_wanted *= settings->runs;
        if (settings->seconds > 0) {
            plan.until_ns = keel_now_ns() + (uint64_t)(settings->seconds * 1e9);
        }
    }
    const job_source_t source = {&plan, settings->mode == MODE_SHUFFLE ? next_shuffled : next_plain,
                                 run_done};
    return process_run(settings, &source);
}
