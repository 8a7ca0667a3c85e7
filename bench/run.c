// SPDX-License-Identifier: Apache-2.0
// A row from beginning to end.
#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

// Between sides: lets the threads of the one before go to sleep. libgomp's poll for milliseconds.
static void settle(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
}

// KEEL_UNSUPPORTED makes a peer absent, and is no error.
static keel_status_t side_begin(const side_t *side, const setting_t *setting, void **state,
                                side_result_t *result)
{
    keel_status_t status = side->begin(setting, state);
    if (keel_status_code(status) != KEEL_UNSUPPORTED) return status;
    snprintf(result->absent, sizeof result->absent, "%s", keel_status_message(status));
    keel_status_release(status);
    return NULL;
}

static keel_status_t side_round(const side_t *side, void *state, side_result_t *result,
                                uint32_t round)
{
    size_t before = result->tally.count;
    KEEL_TRY(side->round(state, &result->tally));
    size_t count = result->tally.count - before;
    if (!count) return KEEL_ERROR(KEEL_INTERNAL, "%s measured nothing", side->name);
    result->rounds[round] = median_of(result->tally.samples + before, count);
    return NULL;
}

static void side_summarise(side_result_t *result, uint32_t rounds)
{
    tally_t *tally = &result->tally;
    double medians[MAX_ROUNDS];
    if (!tally->count) return;
    memcpy(medians, result->rounds, rounds * sizeof *medians);
    result->median = median_of(medians, rounds);
    result->low = medians[0];
    result->high = medians[rounds - 1];
    result->p95 = percentile(tally->samples, tally->count, 0.95);
    result->p99 = percentile(tally->samples, tally->count, 0.99);
    result->max = tally->samples[tally->count - 1];
    for (size_t i = 0; i < tally->count; i++) result->tail += tally->samples[i] > TAIL_NS;
}

static keel_status_t rounds_run(const row_t *row, const plan_t *plan, void **states,
                                row_result_t *result)
{
    tally_t warm = {0};
    keel_status_t status = NULL;
    for (size_t s = 0; s < result->side_count && !status && !plan->once && result->rounds > 1; s++)
        if (!result->sides[s].absent[0]) status = row->sides[s]->round(states[s], &warm);
    free(warm.samples);

    for (uint32_t round = 0; round < result->rounds && !status; round++) {
        plan->progress(result->name, round + 1, result->rounds);
        for (size_t s = 0; s < result->side_count && !status; s++) {
            if (result->sides[s].absent[0]) continue;
            settle();
            status = side_round(row->sides[s], states[s], &result->sides[s], round);
        }
    }
    return status;
}

keel_status_t row_run(const row_t *row, const plan_t *plan, setting_t *setting,
                      row_result_t *result)
{
    void *states[MAX_SIDES] = {0};
    keel_status_t status = NULL;
    size_t begun = 0;

    result->row = row;
    result->rounds = plan->once ? 1 : row->rounds ? row->rounds : plan->rounds;
    setting->job = row->job;
    if (!row->rounds) setting->job.samples = (uint32_t)(row->job.samples * plan->effort);
    if (!setting->job.samples || plan->once) setting->job.samples = 1;

    while (result->side_count < MAX_SIDES && row->sides[result->side_count]) {
        side_result_t *side = &result->sides[result->side_count];
        side->name = row->sides[result->side_count]->name;
        if (result->side_count++ && plan->alone) strcpy(side->absent, "left out");
    }
    for (; begun < result->side_count && !status; begun++)
        if (!result->sides[begun].absent[0])
            status = side_begin(row->sides[begun], setting, &states[begun], &result->sides[begun]);
    if (!status) status = rounds_run(row, plan, states, result);
    for (size_t s = 0; s < begun; s++)
        if (states[s]) row->sides[s]->end(states[s]);
    for (size_t s = 0; s < result->side_count; s++)
        side_summarise(&result->sides[s], result->rounds);
    return status ? keel_status_wrap(status, "row %s", result->name) : NULL;
}

void row_finish(row_result_t *result)
{
    for (size_t s = 0; s < result->side_count; s++) free(result->sides[s].tally.samples);
    *result = (row_result_t){0};
}
