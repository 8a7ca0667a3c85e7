// SPDX-License-Identifier: Apache-2.0
// One kernel for each function of same.h: answer n comes from item n.
#include "same.h"
#include "device.h"

#define DEFINE(name)                                                                               \
    KERNEL void name##_kernel(const item_t *in, answer_t *out, uint32_t count)                     \
    {                                                                                              \
        uint32_t n = group_id() * GROUP_SIZE + lane_in_group();                                    \
        if (n < count) name(&in[n], &out[n]);                                                      \
    }
SAME(DEFINE)
