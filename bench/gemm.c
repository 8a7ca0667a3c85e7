// SPDX-License-Identifier: Apache-2.0
// A kernel that works: what is lost by running it through Keel?
#include "gemm.h"

#include <stdlib.h>
#include <string.h>

keel_status_t gemm_init(gemm_t *gemm, uint64_t n)
{
    size_t count = n * n;
    gemm->constants.n = (uint32_t)n;
    gemm->a = aligned_alloc(64, count * sizeof(float));
    gemm->b = aligned_alloc(64, count * sizeof(float));
    gemm->c = aligned_alloc(64, count * sizeof(float));
    if (!gemm->a || !gemm->b || !gemm->c) return KEEL_ERROR(KEEL_OUT_OF_MEMORY, "no memory");
    memset(gemm->c, 0, count * sizeof(float));
    for (size_t i = 0; i < count; i++) {
        gemm->a[i] = (float)((int)(i % 7) - 3);
        gemm->b[i] = (float)((int)(i % 5) - 2);
    }
    return NULL;
}

void gemm_finish(gemm_t *gemm)
{
    free(gemm->a);
    free(gemm->b);
    free(gemm->c);
}

keel_status_t gemm_check(const gemm_t *gemm, float *c)
{
    size_t n = gemm->constants.n;
    for (size_t row = 0; row < n; row += 37) {
        for (size_t column = 0; column < n; column += 41) {
            float sum = 0;
            for (size_t k = 0; k < n; k++) sum += gemm->a[row * n + k] * gemm->b[k * n + column];
            if (sum != c[row * n + column])
                return KEEL_ERROR(KEEL_INTERNAL, "sgemm: C[%zu][%zu] is %g, not %g", row, column,
                                  (double)c[row * n + column], (double)sum);
        }
    }
    memset(c, 0, n * n * sizeof(float));
    return NULL;
}

typedef struct keel_gemm_t {
    setting_t setting;
    rig_t rig;
    gemm_t gemm;
    keel_buffer_t *buffers[3];
    keel_recording_t *recording;
} keel_gemm_t;

static keel_status_t recording_make(keel_gemm_t *self)
{
    uint32_t side = self->gemm.constants.n / SGEMM_TILE;
    keel_op_t op =
        keel_op_dispatch(self->rig.entry, keel_groups(side, side, 1), &self->gemm.constants,
                         sizeof self->gemm.constants,
                         KEEL_BIND(self->buffers[0], self->buffers[1], self->buffers[2]));
    KEEL_TRY(keel_recording_create(self->rig.device, NULL, &self->recording));
    KEEL_TRY(keel_recording_add(self->recording, &op, 1));
    KEEL_TRY(keel_recording_end(self->recording));
    return keel_recording_prepare(self->recording, self->rig.queue);
}

static keel_status_t gemm_begin(const setting_t *setting, void **state)
{
    keel_gemm_t *self = calloc(1, sizeof *self);
    if (!self) return KEEL_ERROR(KEEL_OUT_OF_MEMORY, "no memory");
    *state = self;
    self->setting = *setting;
    KEEL_TRY(rig_open(&self->rig, setting));
    KEEL_TRY(gemm_init(&self->gemm, setting->job.size));
    keel_buffer_options_t options = {.size = setting->job.size * setting->job.size * sizeof(float)};
    for (int i = 0; i < 3; i++)
        KEEL_TRY(keel_buffer_create(self->rig.device, &options, &self->buffers[i]));
    KEEL_TRY(keel_buffer_write(self->buffers[0], 0, self->gemm.a, options.size));
    KEEL_TRY(keel_buffer_write(self->buffers[1], 0, self->gemm.b, options.size));
    KEEL_TRY(keel_buffer_write(self->buffers[2], 0, self->gemm.c, options.size));
    return recording_make(self);
}

static keel_status_t gemm_round(void *state, tally_t *tally)
{
    keel_gemm_t *self = state;
    void *c;
    keel_point_t done;
    for (uint32_t s = 0; s < self->setting.job.samples; s++) {
        uint64_t start = keel_now_ns();
        KEEL_TRY(keel_queue_execute(self->rig.queue, KEEL_NO_WAITS, self->recording,
                                    KEEL_NO_BINDINGS, &done));
        KEEL_TRY(rig_wait(done));
        tally_add(tally, (double)(keel_now_ns() - start));
    }
    double n = (double)self->gemm.constants.n, ns = tally->samples[tally->count - 1];
    tally_note(tally, "%.1f GFLOP/s in the last sample", 2 * n * n * n / ns);
    KEEL_TRY(keel_buffer_map(self->buffers[2], 0, KEEL_WHOLE, KEEL_ACCESS_ALL, &c));
    keel_status_t status = gemm_check(&self->gemm, c);
    keel_buffer_unmap(self->buffers[2]);
    return status;
}

static void gemm_end(void *state)
{
    keel_gemm_t *self = state;
    keel_recording_release(self->recording);
    for (int i = 0; i < 3; i++) keel_buffer_release(self->buffers[i]);
    rig_close(&self->rig);
    gemm_finish(&self->gemm);
    free(self);
}

static const side_t keel_gemm = {"keel", gemm_begin, gemm_round, gemm_end};

const row_t gemm_rows[] = {
    {.name = "gemm.1024",
     .what = "sgemm of 1024 x 1024 x 1024, one dispatch of 256 groups, against an OpenMP loop over "
             "the same function",
     .job = {.kernel = "sgemm", .size = 1024, .samples = 6},
     .sides = {&keel_gemm, &gomp_gemm},
     .bars = {SPEED(0.97, 1)},
     .scales = true},
    {0},
};
