// SPDX-License-Identifier: Apache-2.0
// A user's kernel.
#include <keel/kernel.h>

#include "twice.h"

KEEL_KERNEL(twice, KEEL_GROUP(32), KEEL_INOUT(uint32_t, x))
{
    KEEL_ITEMS {
        uint64_t i = keel_global_id(0);
        if (i < keel_count(x)) x[i] *= FACTOR;
    }
}
