// SPDX-License-Identifier: Apache-2.0
// A Mac, which may have several GPUs.
#include "metal/device.h"

const bool on_ios = false;

EXPORT void *MTLCopyAllDevices(void); // count 1

void *MTLCopyAllDevices(void)
{
    return devices_all();
}
