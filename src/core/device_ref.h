// SPDX-License-Identifier: Apache-2.0
// How an object keeps its device's memory. These references do not count as the application's: the
// device is closed without regard to them, and its memory goes with the last.
#ifndef KEEL_SRC_CORE_DEVICE_REF_H_
#define KEEL_SRC_CORE_DEVICE_REF_H_

#include <keel/driver/driver.h>

void device_hold(keel_device_t *device);
void device_drop(keel_device_t *device); // NULL is fine

#endif
