// SPDX-License-Identifier: Apache-2.0
// `repeat` submissions of one dispatch, each waiting for the point of the one before, then a wait
// for the last. A sample is the whole divided by their number.
#include "rig.h"

#include <stdlib.h>

typedef struct chain_t {
    setting_t setting;
    rig_t rig;
} chain_t;

static void chain_end(void *state)
{
    chain_t *self = state;
    rig_close(&self->rig);
    free(self);
}

static keel_status_t chain_begin(const setting_t *setting, void **state)
{
    chain_t *self = calloc(1, sizeof *self);
    if (!self) return KEEL_ERROR(KEEL_OUT_OF_MEMORY, "no memory");
    *state = self;
    self->setting = *setting;
    return rig_open(&self->rig, setting);
}

static keel_status_t chain_round(void *state, tally_t *tally)
{
    chain_t *self = state;
    const job_t *job = &self->setting.job;
    keel_op_t op = keel_op_dispatch(self->rig.entry, keel_groups(job->groups, 1, 1), NULL, 0,
                                    KEEL_NO_BINDINGS);
    for (uint32_t s = 0; s < job->samples; s++) {
        keel_point_t last;
        uint64_t start = keel_now_ns();
        KEEL_TRY(keel_queue_run(self->rig.queue, KEEL_NO_WAITS, op, &last));
        for (uint32_t i = 1; i < job->repeat; i++)
            KEEL_TRY(keel_queue_run(self->rig.queue, KEEL_AFTER(last), op, &last));
        KEEL_TRY(rig_wait(last));
        tally_add(tally, (double)(keel_now_ns() - start) / job->repeat);
    }
    return NULL;
}

const side_t keel_chain = {"keel", chain_begin, chain_round, chain_end};

const row_t submit_rows[] = {
    {.name = "submit.chain.1",
     .what = "1000 submissions of 1 empty group, chained on one queue by points, each",
     .job = {.kernel = "empty", .groups = 1, .repeat = 1000, .samples = 40},
     .sides = {&keel_chain, &opencl_chain},
     .bars = {AT_MOST_NS(1000), SPEED(10, 1)},
     .iree = {6600},
     .scales = true},
    {.name = "submit.chain.64",
     .what = "1000 submissions of 64 empty groups, chained on one queue by points, each",
     .job = {.kernel = "empty", .groups = 64, .repeat = 1000, .samples = 20},
     .sides = {&keel_chain, &opencl_chain},
     .bars = {SPEED(10, 1)},
     .iree = {8700},
     .scales = true},
    {0},
};
