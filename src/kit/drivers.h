// SPDX-License-Identifier: Apache-2.0
// The drivers of this build.
#ifndef KEEL_SRC_KIT_DRIVERS_H_
#define KEEL_SRC_KIT_DRIVERS_H_

#include <keel/driver/driver.h>

extern const keel_driver_t *const drivers_built_in[]; // ended by NULL; src/drivers/register.c

#endif
