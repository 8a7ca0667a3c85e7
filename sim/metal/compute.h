// SPDX-License-Identifier: Apache-2.0
// MTLComputeCommandEncoder.
#ifndef SIM_METAL_COMPUTE_H_
#define SIM_METAL_COMPUTE_H_

#include "metal/command.h"

// Count 1.
void *compute_new(command_t *command);

#endif
