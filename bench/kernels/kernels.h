// SPDX-License-Identifier: Apache-2.0
// What the kernels of the benchmark and their callers agree on.
#ifndef KERNELS_KERNELS_H_
#define KERNELS_KERNELS_H_

#include <keel/host_kernel.h>

#include "region.h"

// "spin": binding 0 holds one counter of groups per worker, a cache line apart.
#define SPIN_COUNTER_STRIDE 8

typedef struct spin_constants_t {
    uint64_t iterations; // of a loop whose steps depend on each other
} spin_constants_t;

// "sgemm", as in region.h, of a size that is a multiple of SGEMM_DEPTH too.
#define SGEMM_DEPTH 128 // of A and B packed at a time

#define SGEMM_LOCAL (2 * SGEMM_TILE * SGEMM_DEPTH * sizeof(float))

int sgemm_kernel(const keel_host_dispatch_t *dispatch, const keel_host_group_t *group);

#endif
