// SPDX-License-Identifier: Apache-2.0
// Workgroups that are deeper than they are wide, and than some devices take.
#include <keel/kernel.h>

KEEL_KERNEL(deep, KEEL_GROUP(1, 1, 128), KEEL_OUT(uint32_t, out))
{
    KEEL_ITEMS {
        out[keel_local_id(2)] = keel_local_id(2);
    }
}
