// SPDX-License-Identifier: Apache-2.0
// Kernels of the kernel language on the processor, beside the loops one would write by hand: each
// runs on one thread, and nothing but the loop is measured.
#include "kernels/region.h"
#include "gemm.h"

#include <stdlib.h>
#include <string.h>

typedef struct region_t {
    setting_t setting;
    rig_t rig;
    keel_buffer_t *buffers[3];
    keel_op_t op;
    keel_ref_t bindings[3];
    saxpy_constants_t saxpy;
    sgemm_constants_t sgemm;
} region_t;

// Numbers that saxpy does not let grow, and whose products are exact.
static keel_status_t buffers_fill(region_t *self, size_t count)
{
    for (int i = 0; i < 3; i++) {
        float *data;
        keel_buffer_options_t options = {.size = count * sizeof(float)};
        KEEL_TRY(keel_buffer_create(self->rig.device, &options, &self->buffers[i]));
        KEEL_TRY(keel_buffer_map(self->buffers[i], 0, KEEL_WHOLE, KEEL_ACCESS_ALL, (void **)&data));
        for (size_t k = 0; k < count; k++) data[k] = (float)(k % 7);
        keel_buffer_unmap(self->buffers[i]);
        self->bindings[i] = keel_whole(self->buffers[i]);
    }
    return NULL;
}

static keel_status_t region_begin(const setting_t *setting, void **state)
{
    region_t *self = calloc(1, sizeof *self);
    if (!self) return KEEL_ERROR(KEEL_OUT_OF_MEMORY, "no memory");
    *state = self;
    self->setting = *setting;
    uint32_t n = (uint32_t)setting->job.size, side = n / SGEMM_TILE;
    bool saxpy = !strcmp(setting->job.kernel, "saxpy");
    KEEL_TRY(rig_open_regions(&self->rig, setting));
    KEEL_TRY(buffers_fill(self, saxpy ? n : (size_t)n * n));
    self->saxpy = (saxpy_constants_t){0.0f, n};
    self->sgemm.n = n;
    keel_groups_t groups = keel_groups(side, side, 1);
    if (saxpy) groups = keel_groups((n + SAXPY_GROUP - 1) / SAXPY_GROUP, 1, 1);
    self->op = keel_op_dispatch(
        self->rig.entry, groups, saxpy ? (const void *)&self->saxpy : &self->sgemm,
        saxpy ? sizeof self->saxpy : sizeof self->sgemm, keel_refs(self->bindings, saxpy ? 2 : 3));
    return NULL;
}

static keel_status_t region_round(void *state, tally_t *tally)
{
    region_t *self = state;
    uint32_t repeat = self->setting.job.repeat;
    keel_point_t done;
    for (uint32_t s = 0; s < self->setting.job.samples; s++) {
        uint64_t start = keel_now_ns();
        for (uint32_t i = 0; i < repeat; i++) {
            KEEL_TRY(keel_queue_run(self->rig.queue, KEEL_NO_WAITS, self->op, &done));
            KEEL_TRY(rig_wait(done));
        }
        tally_add(tally, (double)(keel_now_ns() - start) / repeat);
    }
    return NULL;
}

static void region_end(void *state)
{
    region_t *self = state;
    for (int i = 0; i < 3; i++) keel_buffer_release(self->buffers[i]);
    rig_close(&self->rig);
    free(self);
}

static const side_t keel_region = {"keel", region_begin, region_round, region_end};

const row_t region_rows[] = {
    {.name = "region.saxpy",
     .what = "saxpy of 4 Mi elements from keel cc, against a plain loop by cc -O3 -march=native",
     .job = {.uri = "cpu://inline", .kernel = "saxpy", .size = 4 << 20, .repeat = 4, .samples = 10},
     .sides = {&keel_region, &plain_loop},
     .bars = {SPEED(0.95, 1)}},
    {.name = "region.saxpy-256k",
     .what = "the same of 256 Ki elements, which stay in a cache",
     .job =
         {.uri = "cpu://inline", .kernel = "saxpy", .size = 256 << 10, .repeat = 25, .samples = 20},
     .sides = {&keel_region, &plain_loop},
     .bars = {SPEED(0.95, 1)}},
    {.name = "region.sgemm",
     .what = "sgemm of 512 x 512 x 512 from keel cc, against three plain loops",
     .job = {.uri = "cpu://inline", .kernel = "sgemm", .size = 512, .repeat = 1, .samples = 2},
     .sides = {&keel_region, &plain_loop},
     .bars = {SPEED(3.0, 1)}},
    {0},
};
