// SPDX-License-Identifier: Apache-2.0
#include "suite/report.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const outcome_names[] = {
    [OUTCOME_CRASHED] = "crashed", [OUTCOME_PASSED] = "passed",  [OUTCOME_FAILED] = "failed",
    [OUTCOME_SKIPPED] = "skipped", [OUTCOME_STARVED] = "passed", [OUTCOME_TIMED_OUT] = "timed out",
};

static const char *const mode_names[] = {"plain", "torture", "shuffle", "fault"};

// Words for people; with --json they stay out of the document.
static FILE *words(const report_t *report)
{
    return report->settings->json ? stderr : stdout;
}

static void clear_progress(report_t *report)
{
    if (!report->progress) return;
    fprintf(stderr, "\r\033[K");
    report->progress = false;
}

static void show_progress(report_t *report, const char *name)
{
    if (!isatty(STDERR_FILENO)) return;
    fprintf(stderr, "\r\033[K%lu/%lu %s", report->runs, report->runs_wanted, name);
    fflush(stderr);
    report->progress = true;
}

static void print_output(FILE *to, FILE *output)
{
    char line[500];
    for (int lines = 0; fgets(line, sizeof line, output); lines++) {
        line[strcspn(line, "\n")] = 0;
        fprintf(to, "    | %s\n", line);
        if (lines == 200) {
            fprintf(to, "    | ...\n");
            return;
        }
    }
}

// How to see the same again.
static void print_again(const report_t *report, const job_t *job, const char *name)
{
    const settings_t *settings = report->settings;
    fprintf(words(report), "    again: %s --device='%s' --mode=%s --filter=%s", settings->command,
            settings->uri, mode_names[settings->mode], name);
    if (settings->partner) fprintf(words(report), " --partner='%s'", settings->partner);
    if (settings->kernels) fprintf(words(report), " --kernels='%s'", settings->kernels);
    if (settings->mode != MODE_PLAIN) {
        fprintf(words(report), " --seed=%llu", (unsigned long long)job->seed);
    }
    if (settings->mode == MODE_SHUFFLE) fprintf(words(report), " --runs=1");
    if (job->fail_at) {
        const char *what = settings->mode == MODE_FAULT ? "call" : "allocation";
        static const char *const ends[] = {"-", "", "+"};
        fprintf(words(report), " --%s=%s%s%llu%s", what, job->symbol ? job->symbol : "",
                job->symbol ? ":" : "", (unsigned long long)job->fail_at,
                settings->mode == MODE_FAULT ? ends[job->fault] : "");
    }
    fprintf(words(report), "\n");
}

static void fail(report_t *report, record_t *record, const char *reason)
{
    record->outcome = OUTCOME_FAILED;
    if (!record->reason[0]) snprintf(record->reason, sizeof record->reason, "%s", reason);
    clear_progress(report);
}

void report_skip(report_t *report, record_t *record, const char *need, const char *why)
{
    char name[128];
    record->outcome = OUTCOME_SKIPPED;
    record->skipped = true;
    snprintf(record->need, sizeof record->need, "%s", need);
    const expectation_t *line = expect_find(&report->expected, record->test, need);
    snprintf(record->reason, sizeof record->reason, "%s", line ? line->reason : why);
    test_name(record->test, name, sizeof name);
    if (report->expected.path && !line) {
        record->reason[0] = 0;
        fail(report, record, "skipped, which the list of expectations does not have");
        fprintf(words(report), "FAILED  %s: skipped for lack of %s, but %s does not say so\n", name,
                need, report->expected.path);
    } else if (report->settings->verbose) {
        fprintf(words(report), "skipped %s: %s: %s\n", name, need, record->reason);
    }
}

static void report_failure(report_t *report, record_t *record, const job_t *job,
                           const result_t *result, FILE *output)
{
    char name[128];
    test_name(record->test, name, sizeof name);
    record->failed_runs++;
    fail(report, record, result->reason);
    if (record->failed_runs > 3) return; // more of the same
    fprintf(words(report), "FAILED  %s (%.2f s): %s\n", name, result->seconds, result->reason);
    print_output(words(report), output);
    print_again(report, job, name);
}

static void report_pass(report_t *report, record_t *record, const result_t *result)
{
    char name[128];
    const expectation_t *line = expect_find(&report->expected, record->test, NULL);
    if (!line && result->kernels)
        line = expect_find(&report->expected, record->test, need_name(0, NEED_KERNELS));
    test_name(record->test, name, sizeof name);
    if (line && record->outcome != OUTCOME_FAILED) {
        fail(report, record, "passed, though the list expects a skip");
        fprintf(words(report), "FAILED  %s: passed, but %s:%d says it cannot\n", name, line->path,
                line->line);
        return;
    }
    if (record->outcome == OUTCOME_CRASHED) record->outcome = OUTCOME_PASSED;
    if (report->settings->verbose && record->runs == 1) {
        fprintf(words(report), "passed  %s (%.2f s)\n", name, result->seconds);
    }
}

static void count_places(record_t *record, const result_t *result)
{
    size_t count = 0;
    while (count < TALLIES_MAX && result->tallies[count].symbol[0]) count++;
    record->places = result->places;
    free(record->tallies);
    record->tallies = calloc(count + 1, sizeof *record->tallies);
    if (!record->tallies) abort();
    memcpy(record->tallies, result->tallies, count * sizeof *record->tallies);
}

void report_run(report_t *report, record_t *record, const job_t *job, const result_t *result,
                FILE *output)
{
    char name[128];
    report->runs++;
    record->runs++;
    record->seconds += result->seconds;
    if (!job->fail_at && !record->tallies) count_places(record, result); // jobs point at them
    switch (result->outcome) {
    case OUTCOME_PASSED:
    case OUTCOME_STARVED: report_pass(report, record, result); break;
    case OUTCOME_SKIPPED: report_skip(report, record, result->need, result->reason); break;
    default: report_failure(report, record, job, result, output); break;
    }
    show_progress(report, test_name(record->test, name, sizeof name));
}

static void print_json_text(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') {
            printf("\\%c", c);
        } else if (c < 0x20) {
            printf("\\u%04x", c);
        } else {
            putchar(c);
        }
    }
    putchar('"');
}

static void print_json(const report_t *report, const unsigned *counts)
{
    printf("{\"device\": ");
    print_json_text(report->settings->uri);
    printf(", \"mode\": \"%s\", \"seed\": %llu, \"version\": \"%s\",\n \"tests\": [",
           mode_names[report->settings->mode], (unsigned long long)report->settings->seed,
           keel_version());
    for (size_t i = 0; i < report->count; i++) {
        const record_t *record = &report->records[i];
        char name[128];
        printf("%s\n  {\"name\": \"%s\", \"outcome\": \"%s\", \"runs\": %u, \"seconds\": %.3f",
               i ? "," : "", test_name(record->test, name, sizeof name),
               outcome_names[record->outcome], record->runs, record->seconds);
        if (record->need[0]) printf(", \"need\": \"%s\"", record->need);
        if (record->reason[0]) {
            printf(", \"reason\": ");
            print_json_text(record->reason);
        }
        printf("}");
    }
    printf("],\n \"passed\": %u, \"failed\": %u, \"skipped\": %u}\n", counts[OUTCOME_PASSED],
           counts[OUTCOME_FAILED], counts[OUTCOME_SKIPPED]);
}

void report_finish(report_t *report)
{
    for (size_t i = 0; i < report->count; i++) free(report->records[i].tallies);
    free(report->records);
    expect_finish(&report->expected);
}

bool report_total(report_t *report)
{
    unsigned counts[OUTCOME_TIMED_OUT + 1] = {0};
    char name[128];
    clear_progress(report);
    size_t left = 0;
    const test_t *first_left = NULL;
    for (size_t i = 0; i < report->count; i++) {
        const record_t *record = &report->records[i];
        counts[record->outcome]++;
        if (record->runs || record->skipped) continue;
        if (!left++) first_left = record->test;
    }
    if (report->settings->json) print_json(report, counts);
    if (report->settings->mode != MODE_PLAIN)
        fprintf(words(report), "%lu runs%s\n", report->runs,
                report->cut_short ? ", then time was up" : "");
    if (left)
        fprintf(words(report), "%zu tests, from %s on, were left out when time was up\n", left,
                test_name(first_left, name, sizeof name));
    if (report->left_out)
        fprintf(words(report), "%zu tests were left to other seeds\n", report->left_out);
    fprintf(words(report), "%u passed, %u failed, %u skipped\n", counts[OUTCOME_PASSED],
            counts[OUTCOME_FAILED], counts[OUTCOME_SKIPPED]);
    return counts[OUTCOME_FAILED] == 0;
}
