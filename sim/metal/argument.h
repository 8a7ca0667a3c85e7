// SPDX-License-Identifier: Apache-2.0
// MTLArgumentEncoder: writes argument buffers, which are structs of pointers here.
#ifndef SIM_METAL_ARGUMENT_H_
#define SIM_METAL_ARGUMENT_H_

#include "metal/library.h"

// Count 1. For the argument buffer that the function takes at that index.
void *argument_encoder_new(const void *self, sel_t cmd, function_t *function, unsigned long index);

#endif
