// SPDX-License-Identifier: Apache-2.0
// What the rows for GPUs share: Keel with two queues, and the vendor's API beside it.
#ifndef BENCH_GPU_H_
#define BENCH_GPU_H_

#include "raw.h"
#include "rig.h"

typedef struct gpu_t {
    job_t job;
    rig_t rig;
    keel_queue_t *queues[2]; // the first is the device's, the second owned
    keel_semaphore_t *semaphore;
    uint64_t value; // last signalled, or to be
    keel_op_t op;   // one dispatch of the job's kernel, without arguments
} gpu_t;

// Sides begin and end with these.
keel_status_t gpu_begin(const setting_t *setting, void **state) KEEL_MUST_USE;
void gpu_end(void *state);
keel_status_t gpu_open(gpu_t *gpu, const setting_t *setting) KEEL_MUST_USE; // in a larger struct
void gpu_close(gpu_t *gpu);

// Polls until the point is reached.
keel_status_t gpu_spin(keel_point_t point) KEEL_MUST_USE;

typedef struct bare_t {
    job_t job;
    raw_t *raw;
} bare_t;

keel_status_t bare_begin(const setting_t *setting, void **state) KEEL_MUST_USE;
void bare_end(void *state);

#endif
