// SPDX-License-Identifier: Apache-2.0
// The same kernels called from OpenMP loops: one parallel region per dispatch, whose end is the
// barrier.
#include "rig.h"

#ifdef __clang__
#define RUNTIME "libomp"
#else
#define RUNTIME "libgomp"
#endif

#ifdef _OPENMP

#include "gemm.h"
#include <omp.h>
#include <stdlib.h>
#include <string.h>

typedef struct gomp_t {
    setting_t setting;
    keel_host_kernel_fn kernel;
    keel_host_dispatch_t dispatch;
    void *bindings[3];
    spin_constants_t spin;
    uint64_t *counters;
    saxpy_constants_t saxpy;
    float *vectors[2];
    gemm_t gemm;
    float *local; // SGEMM_LOCAL bytes per thread
} gomp_t;

static void gomp_end(void *state)
{
    gomp_t *self = state;
    gemm_finish(&self->gemm);
    free(self->counters);
    for (int i = 0; i < 2; i++) free(self->vectors[i]);
    free(self->local);
    free(self);
}

static keel_status_t gomp_make(const setting_t *setting, void **state)
{
    gomp_t *self = calloc(1, sizeof *self);
    if (!self) return KEEL_ERROR(KEEL_OUT_OF_MEMORY, "no memory");
    *state = self;
    self->setting = *setting;
    self->dispatch.bindings = self->bindings;
    return image_kernel(setting->job.kernel, &self->kernel);
}

static keel_status_t saxpy_begin(gomp_t *self)
{
    self->saxpy = (saxpy_constants_t){0.5f, (uint32_t)self->setting.job.size};
    for (int i = 0; i < 2; i++) {
        size_t size = (self->setting.job.size * sizeof(float) + 63) & ~(size_t)63;
        self->bindings[i] = self->vectors[i] = aligned_alloc(64, size);
        if (!self->vectors[i]) return KEEL_ERROR(KEEL_OUT_OF_MEMORY, "no memory");
        memset(self->vectors[i], 0, size);
    }
    self->dispatch.constants = &self->saxpy;
    return NULL;
}

static keel_status_t gomp_begin(const setting_t *setting, void **state)
{
    KEEL_TRY(gomp_make(setting, state));
    gomp_t *self = *state;
    if (!strcmp(setting->job.kernel, "saxpy")) return saxpy_begin(self);
    self->counters = calloc(MAX_WORKERS, SPIN_COUNTER_STRIDE * sizeof *self->counters);
    if (!self->counters) return KEEL_ERROR(KEEL_OUT_OF_MEMORY, "no memory");
    self->bindings[0] = self->counters;
    self->dispatch.constants = &self->spin;
    return spin_calibrate(setting->job.group_ns, &self->spin.iterations);
}

static keel_status_t gomp_round(void *state, tally_t *tally)
{
    gomp_t *self = state;
    const job_t *job = &self->setting.job;
    int threads = (int)self->setting.workers;
    for (uint32_t s = 0; s < job->samples; s++) {
        uint64_t start = keel_now_ns();
        for (uint32_t i = 0; i < job->repeat; i++) {
#pragma omp parallel for num_threads(threads) schedule(static)
            for (uint32_t g = 0; g < job->groups; g++) {
                keel_host_group_t group = {.id = {g}, .worker = (uint32_t)omp_get_thread_num()};
                self->kernel(&self->dispatch, &group);
            }
        }
        tally_add(tally, (double)(keel_now_ns() - start) / job->repeat);
    }
    return NULL;
}

static keel_status_t gemm_begin(const setting_t *setting, void **state)
{
    KEEL_TRY(gomp_make(setting, state));
    gomp_t *self = *state;
    KEEL_TRY(gemm_init(&self->gemm, setting->job.size));
    self->local = aligned_alloc(64, setting->workers * SGEMM_LOCAL);
    if (!self->local) return KEEL_ERROR(KEEL_OUT_OF_MEMORY, "no memory");
    self->bindings[0] = self->gemm.a;
    self->bindings[1] = self->gemm.b;
    self->bindings[2] = self->gemm.c;
    self->dispatch.constants = &self->gemm.constants;
    return NULL;
}

static keel_status_t gemm_round(void *state, tally_t *tally)
{
    gomp_t *self = state;
    int threads = (int)self->setting.workers;
    uint32_t side = self->gemm.constants.n / SGEMM_TILE;
    for (uint32_t s = 0; s < self->setting.job.samples; s++) {
        uint64_t start = keel_now_ns();
#pragma omp parallel for num_threads(threads) schedule(dynamic)
        for (uint32_t g = 0; g < side * side; g++) {
            uint32_t thread = (uint32_t)omp_get_thread_num();
            keel_host_group_t group = {.id = {g % side, g / side},
                                       .worker = thread,
                                       .local = (char *)self->local + thread * SGEMM_LOCAL};
            self->kernel(&self->dispatch, &group);
        }
        tally_add(tally, (double)(keel_now_ns() - start));
    }
    return gemm_check(&self->gemm, self->gemm.c);
}

#else

static keel_status_t gomp_begin(const setting_t *setting, void **state)
{
    return KEEL_ERROR(KEEL_UNSUPPORTED, "built without OpenMP");
}

#define gemm_begin gomp_begin
#define gomp_round NULL
#define gemm_round NULL
#define gomp_end   NULL

#endif

const side_t gomp_replay = {RUNTIME, gomp_begin, gomp_round, gomp_end};
const side_t gomp_gemm = {RUNTIME, gemm_begin, gemm_round, gomp_end};
