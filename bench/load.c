// SPDX-License-Identifier: Apache-2.0
// Loading an executable: while another one of the same code is in use, and alone.
#include "rig.h"

#include <stdlib.h>

extern const unsigned char keel_embed_bench_kernels[];
extern const uint64_t keel_embed_bench_kernels_size;

typedef struct load_t {
    setting_t setting;
    rig_t rig; // holds the kernels
} load_t;

static keel_status_t again_begin(const setting_t *setting, void **state)
{
    load_t *self = calloc(1, sizeof *self);
    if (!self) return KEEL_ERROR(KEEL_OUT_OF_MEMORY, "no memory");
    *state = self;
    self->setting = *setting;
    return rig_open_regions(&self->rig, setting);
}

static keel_status_t alone_begin(const setting_t *setting, void **state)
{
    KEEL_TRY(again_begin(setting, state));
    load_t *self = *state;
    keel_executable_release(self->rig.executable);
    self->rig.executable = NULL;
    return NULL;
}

static keel_status_t load_round(void *state, tally_t *tally)
{
    load_t *self = state;
    const keel_executable_options_t image = {.data = keel_embed_bench_kernels,
                                             .size = keel_embed_bench_kernels_size};
    for (uint32_t s = 0; s < self->setting.job.samples; s++) {
        keel_executable_t *executable;
        uint64_t start = keel_now_ns();
        KEEL_TRY(keel_executable_load(self->rig.device, &image, &executable));
        tally_add(tally, (double)(keel_now_ns() - start));
        keel_executable_release(executable);
    }
    return NULL;
}

static void load_end(void *state)
{
    load_t *self = state;
    rig_close(&self->rig);
    free(self);
}

static const side_t again = {"keel", again_begin, load_round, load_end};
static const side_t alone = {"alone", alone_begin, load_round, load_end};

const row_t load_rows[] = {
    {.name = "load.again",
     .what = "load kernels that another executable holds; alone: that none holds",
     .job = {.uri = "cpu://inline", .samples = 100},
     .sides = {&again, &alone},
     .bars = {SPEED(1.5, 1)}},
    {.name = "gpu.load.again",
     .what = "the same on a GPU: kernels that another executable holds; alone: that none holds",
     .job = {.samples = 100},
     .sides = {&again, &alone},
     .bars = {SPEED(1.5, 1)},
     .gpu = true},
    {0},
};
