// SPDX-License-Identifier: Apache-2.0
// The drivers of this build: the only place that lists them.
#include "kit/drivers.h"

extern const keel_driver_t amdgpu_driver, cpu_driver, cuda_driver, hip_driver, metal_driver,
    null_driver;

const keel_driver_t *const drivers_built_in[] = {
    &amdgpu_driver, &cpu_driver, &cuda_driver, &hip_driver, &metal_driver, &null_driver, NULL};
