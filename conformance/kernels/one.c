// SPDX-License-Identifier: Apache-2.0
// The kernel of the small containers that conformance/container.c loads.
#include <keel/kernel.h>

KEEL_KERNEL(seven, KEEL_GROUP(1), KEEL_OUT(uint32_t, out))
{
    KEEL_ONCE {
        out[keel_group_id(0)] = 7;
    }
}
