// SPDX-License-Identifier: Apache-2.0
#include "kernels.h"

static int empty_kernel(const keel_host_dispatch_t *dispatch, const keel_host_group_t *group)
{
    return 0;
}

// A chain of dependent multiplications: its length in time is its length in steps, so a group that
// loses its processor takes longer, as real work would.
static int spin_kernel(const keel_host_dispatch_t *dispatch, const keel_host_group_t *group)
{
    const spin_constants_t *constants = dispatch->constants;
    uint64_t *counters = dispatch->bindings[0];
    uint64_t x = 1;
    for (uint64_t i = 0; i < constants->iterations; i++) {
        x = x * 3 + 1;
        __asm__ volatile("" : "+r"(x));
    }
    counters[group->worker * SPIN_COUNTER_STRIDE]++;
    return 0;
}

static int saxpy_kernel(const keel_host_dispatch_t *dispatch, const keel_host_group_t *group)
{
    const saxpy_constants_t *constants = dispatch->constants;
    const float *restrict x = dispatch->bindings[0];
    float *restrict y = dispatch->bindings[1];
    uint32_t first = group->id[0] * SAXPY_GROUP, end = first + SAXPY_GROUP;
    if (end > constants->count) end = constants->count;
    for (uint32_t i = first; i < end; i++) y[i] = constants->a * x[i] + y[i];
    return 0;
}

enum { R = KEEL_HOST_READ, W = KEEL_HOST_WRITE };

static const uint32_t three_access[] = {R, R, R | W};
static const uint32_t spin_access[] = {R | W};
static const uint32_t saxpy_access[] = {R, R | W};
static const uint32_t sgemm_access[] = {R, R, W};

static const keel_host_entry_t entries[] = {
    {.name = "empty", .kernel = empty_kernel, .group_size = {1, 1, 1}},
    {.name = "three",
     .kernel = empty_kernel,
     .group_size = {1, 1, 1},
     .constants = 16,
     .bindings = 3,
     .access = three_access},
    {.name = "spin",
     .kernel = spin_kernel,
     .group_size = {1, 1, 1},
     .constants = sizeof(spin_constants_t),
     .bindings = 1,
     .access = spin_access},
    {.name = "saxpy",
     .kernel = saxpy_kernel,
     .group_size = {SAXPY_GROUP, 1, 1},
     .constants = sizeof(saxpy_constants_t),
     .bindings = 2,
     .access = saxpy_access},
    {.name = "sgemm",
     .kernel = sgemm_kernel,
     .group_size = {SGEMM_TILE, SGEMM_TILE, 1},
     .constants = sizeof(sgemm_constants_t),
     .bindings = 3,
     .local_memory = SGEMM_LOCAL,
     .access = sgemm_access},
};

KEEL_HOST_LIBRARY(entries, NULL, 0)
