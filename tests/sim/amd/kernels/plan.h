// SPDX-License-Identifier: Apache-2.0
// The dispatches that diverge_test and the host run of the kernels of diverge.py, and what is
// printed of each.
#ifndef TESTS_SIM_AMD_KERNELS_PLAN_H_
#define TESTS_SIM_AMD_KERNELS_PLAN_H_

#include <stdint.h>

enum {
    PLAN_KERNELS = 4,
    PLAN_DISPATCHES = 14,
    PLAN_GROUP_MAX = 256,
    PLAN_ITEMS_MAX = 512,
    PLAN_IN = 256, // words that kernels read
    PLAN_OWN = 4,  // words that each item writes
    PLAN_SUMS = 8, // words that all items add to
    PLAN_OUT = PLAN_SUMS + PLAN_OWN * PLAN_ITEMS_MAX,
};

typedef struct {
    uint32_t groups, size;
} plan_shape_t;

// Whole waves, waves with some lanes, one lane; several waves in a group, several groups.
static inline plan_shape_t plan_shape(uint32_t dispatch)
{
    static const plan_shape_t shapes[] = {{1, 64}, {3, 64},  {2, 100}, {5, 33},
                                          {1, 1},  {2, 256}, {7, 64}};
    return shapes[dispatch % (sizeof shapes / sizeof *shapes)];
}

static inline uint32_t plan_input(uint32_t dispatch, uint32_t word)
{
    uint32_t x = (dispatch * PLAN_IN + word + 1) * 0x9e3779b9;
    x = (x ^ x >> 16) * 0x85ebca6b;
    return x ^ x >> 13;
}

static inline uint32_t plan_checksum(const uint32_t *out)
{
    uint32_t sum = 0;
    for (uint32_t k = 0; k < PLAN_OUT; k++) sum = (sum << 5 | sum >> 27) * 0x01000193 ^ out[k];
    return sum;
}

#endif
