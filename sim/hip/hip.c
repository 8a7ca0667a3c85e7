// SPDX-License-Identifier: Apache-2.0
// libamdhip64, for sim/forward.
#include <string.h>

#include "forward/forward.h"

extern call_site_t site_hipGetDeviceCount;

// A device that is lost does nothing any more, while the one below still has work, which writes
// memory that the program may give back at once: that work comes to its end first.
static void device_rest(void)
{
    int (*synchronize)(void);
    void *real = forward_find("hipDeviceSynchronize");
    memcpy(&synchronize, &real, sizeof synchronize);
    if (real) synchronize();
}

const forward_t forward = {
    .variable = "KEEL_SIM_HIP",
    .prefix = "hip",
    .files = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"},
    .opens = &site_hipGetDeviceCount,
    .unknown = 999,
    .fatal = true,
    .missing = 801, // not supported
    .lose = device_rest,
};
