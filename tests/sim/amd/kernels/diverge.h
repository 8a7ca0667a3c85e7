// SPDX-License-Identifier: Apache-2.0
// What kernels of diverge.py include: on a GPU each body is a kernel, on the host the program runs
// the plan, one item after the other, and prints the checksums.
#ifndef TESTS_SIM_AMD_KERNELS_DIVERGE_H_
#define TESTS_SIM_AMD_KERNELS_DIVERGE_H_

#include "device.h"
#include "plan.h"

// One item: where it is and what it may touch.
#define ITEM                                                                                       \
    const uint32_t *in, uint32_t *out, uint32_t *sums, uint32_t id, uint32_t group, uint32_t lane

#ifdef __AMDGCN__
#define SHARED static LOCAL
#define BODY(n)                                                                                    \
    static void body_##n(ITEM);                                                                    \
    KERNEL void kernel_##n(const uint32_t *in, uint32_t *out, uint32_t size)                       \
    {                                                                                              \
        uint32_t lane = lane_in_group(), id = group_id() * size + lane;                            \
        body_##n(in, out + PLAN_SUMS + PLAN_OWN * id, out, id, group_id(), lane);                  \
    }                                                                                              \
    static void body_##n(ITEM)
#else
#define SHARED  static
#define BODY(n) static void body_##n(ITEM)
static void body_0(ITEM), body_1(ITEM), body_2(ITEM), body_3(ITEM);

int main(void)
{
    void (*const bodies[PLAN_KERNELS])(ITEM) = {body_0, body_1, body_2, body_3};
    for (uint32_t d = 0; d < PLAN_DISPATCHES; d++) {
        static uint32_t in[PLAN_IN], out[PLAN_OUT];
        plan_shape_t shape = plan_shape(d);
        for (uint32_t k = 0; k < PLAN_IN; k++) in[k] = plan_input(d, k);
        for (uint32_t k = 0; k < PLAN_OUT; k++) out[k] = 0;
        for (uint32_t id = 0; id < shape.groups * shape.size; id++) {
            bodies[d % PLAN_KERNELS](in, out + PLAN_SUMS + PLAN_OWN * id, out, id, id / shape.size,
                                     id % shape.size);
        }
        __builtin_printf("%08x\n", plan_checksum(out));
    }
    return 0;
}
#endif

// Words of the group's memory, of which each item has its own.
SHARED uint32_t shared[PLAN_OWN][PLAN_GROUP_MAX];

static inline uint32_t float_bits(float value)
{
    union {
        float value;
        uint32_t bits;
    } both = {value};
    return both.bits;
}

#endif
