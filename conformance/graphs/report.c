// SPDX-License-Identifier: Apache-2.0
#include "graphs/report.h"
#include "graphs/listing.h"
#include "graphs/minimise.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void expectation_print(const page_t *page, size_t index, FILE *file)
{
    const verdict_t *verdict = &page->judgement.verdict;
    if (page->graph.actions[index].kind != ACTION_SUBMIT) return;
    fputs(verdict->must_fail[index] ? " expected to fail,"
          : verdict->origins[index] ? " may fail,"
                                    : " expected to succeed,",
          file);
}

static void note_print(void *user, size_t index, FILE *file)
{
    static const char *const words[] = {"not begun", "not ended", "succeeded", "failed"};
    const page_t *page = user;
    const seen_t *seen = &page->outcome.actions[index];
    fputs(" #", file);
    expectation_print(page, index, file);
    fprintf(file, " %s", words[seen->state]);
    if (seen->state == SEEN_FAILED) fprintf(file, ": %.80s", seen->cause.text);
    if (page->judgement.complained & action_bit(index)) fputs(" <-- here", file);
}

void failure_print(const page_t *page, FILE *file)
{
    const char *line = page->judgement.complaints;
    while (*line) {
        size_t length = strcspn(line, "\n");
        fprintf(file, "# %.*s\n", (int)length, line);
        line += length + (line[length] == '\n');
    }
    graph_print(&page->graph, note_print, (void *)page, file);
    fflush(file);
}

typedef struct shrinking_t {
    page_t *trial; // where candidates run
    page_t *best;  // the last failure
    job_t job;
    uint32_t kinds; // of complaints that count
} shrinking_t;

static bool still_fails(void *user, const graph_t *graph)
{
    shrinking_t *shrinking = user;
    page_t *trial = shrinking->trial;
    trial->graph = *graph;
    memset(&trial->outcome, 0, sizeof trial->outcome);
    child_run(trial, &shrinking->job);
    // Another failure may hide behind the first, and is for another day.
    if (atomic_load(&trial->state) != CHILD_FAILED) return false;
    if (!(trial->judgement.kinds & shrinking->kinds)) return false;
    shrinking->best->outcome = trial->outcome;
    shrinking->best->judgement = trial->judgement;
    return true;
}

// How often a graph must be run to fail again: 0 if it does not.
static uint64_t runs_needed(shrinking_t *shrinking, const graph_t *graph, uint64_t deadline_ns)
{
    uint64_t runs = 0;
    shrinking->job.count = 50;
    do {
        if (still_fails(shrinking, graph)) return runs + atomic_load(&shrinking->trial->passed) + 1;
        runs += shrinking->job.count;
    } while (keel_now_ns() < deadline_ns);
    return 0;
}

void failure_minimise(page_t *page, const job_t *job, double seconds, FILE *file)
{
    shrinking_t shrinking = {page_create(), page, *job, page->judgement.kinds};
    uint64_t now = keel_now_ns(), budget = (uint64_t)(seconds * 1e9);
    shrinking.job.repeat = true;
    if (shrinking.job.run.limit_s > 3) shrinking.job.run.limit_s = 3;
    uint64_t runs = runs_needed(&shrinking, &page->graph, now + budget / 4);
    if (!runs) {
        fprintf(file, "# it did not fail again in %.0f s and is shown as it was\n", seconds / 4);
    } else {
        shrinking.job.count = runs * 4 < 20 ? 20 : runs * 4;
        size_t tried = graph_minimise(&page->graph, still_fails, &shrinking, now + budget);
        fprintf(file, "# fails about once in %" PRIu64 " runs; made smaller in %zu tries\n", runs,
                tried);
        still_fails(&shrinking, &page->graph);
    }
    page_destroy(shrinking.trial);
}
