// SPDX-License-Identifier: Apache-2.0
// The drivers of this build: the only place that lists them.
#include <keel/driver/driver.h>

extern const keel_driver_t cpu_driver, cuda_driver, null_driver;

const keel_driver_t *const keel_drivers[] = {&cpu_driver, &cuda_driver, &null_driver, NULL};
