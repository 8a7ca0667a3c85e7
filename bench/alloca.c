// SPDX-License-Identifier: Apache-2.0
// Queue-ordered memory: reserve a buffer, alloca it, dealloca it after that, release it. A sample
// is the time of `repeat` such pairs, submitted one after the other, until the last has ended,
// divided by their number. The pool is warm.
#include "rig.h"

#include <stdlib.h>

typedef struct pair_t {
    setting_t setting;
    rig_t rig;
} pair_t;

static void pair_end(void *state)
{
    pair_t *self = state;
    rig_close(&self->rig);
    free(self);
}

static keel_status_t pair_begin(const setting_t *setting, void **state)
{
    pair_t *self = calloc(1, sizeof *self);
    if (!self) return KEEL_ERROR(KEEL_OUT_OF_MEMORY, "no memory");
    *state = self;
    self->setting = *setting;
    return rig_open(&self->rig, setting);
}

static keel_status_t pair_submit(pair_t *self, keel_point_t *done)
{
    keel_buffer_t *buffer;
    keel_point_t ready;
    KEEL_TRY(keel_queue_alloca(self->rig.queue, NULL, self->setting.job.size, &buffer, &ready));
    keel_status_t status = keel_queue_dealloca(self->rig.queue, KEEL_AFTER(ready), buffer, done);
    keel_buffer_release(buffer);
    return status;
}

static keel_status_t pair_round(void *state, tally_t *tally)
{
    pair_t *self = state;
    const job_t *job = &self->setting.job;
    for (uint32_t s = 0; s < job->samples; s++) {
        keel_point_t done = {0};
        uint64_t start = keel_now_ns();
        for (uint32_t i = 0; i < job->repeat; i++) {
            KEEL_TRY(pair_submit(self, &done));
            if (job->wait_each) KEEL_TRY(rig_wait(done));
        }
        KEEL_TRY(rig_wait(done));
        tally_add(tally, (double)(keel_now_ns() - start) / job->repeat);
    }
    return NULL;
}

const side_t keel_pair = {"keel", pair_begin, pair_round, pair_end};

const row_t alloca_rows[] = {
    {.name = "alloca.4k",
     .what = "alloca + dealloca of 4 KB, 1000 pairs, each",
     .job = {.size = 4096, .repeat = 1000, .samples = 50},
     .sides = {&keel_pair},
     .bars = {AT_MOST_NS(500)},
     .iree = {3600}},
    {.name = "alloca.1m",
     .what = "alloca + dealloca of 1 MB, 1000 pairs, each",
     .job = {.size = 1 << 20, .repeat = 1000, .samples = 50},
     .sides = {&keel_pair},
     .bars = {AT_MOST_NS(500)},
     .iree = {10800}},
    {.name = "alloca.4k.wait",
     .what = "alloca + dealloca of 4 KB, 1000 pairs, a wait after each, each",
     .job = {.size = 4096, .repeat = 1000, .wait_each = true, .samples = 50},
     .sides = {&keel_pair},
     .bars = {AT_MOST_NS(500)}},
    {0},
};
