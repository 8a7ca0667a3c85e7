// SPDX-License-Identifier: Apache-2.0
// MTLResidencySet: what the GPU may see in all command buffers of a queue.
#ifndef SIM_METAL_RESIDENCY_H_
#define SIM_METAL_RESIDENCY_H_

#include "metal/classes.h"

typedef struct residency_t residency_t;

// What the set has, as of its last commit: an array of its own, each retained.
object_t **residency_take(residency_t *set, unsigned *count);
void *device_residency(void *self, sel_t cmd, void *descriptor, void **error); // of the device

#endif
