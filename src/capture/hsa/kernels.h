// SPDX-License-Identifier: Apache-2.0
// Names of kernels by what packets have, from the code that is loaded.
#ifndef KEEL_SRC_CAPTURE_HSA_KERNELS_H_
#define KEEL_SRC_CAPTURE_HSA_KERNELS_H_

#include "capture/hsa/table.h"

// What replaces the runtime's function: code is ready to run from here on.
hsa_status_t kernels_freeze(hsa_executable_t executable, const char *options);

// The name's number in the trace. A kernel that no code object told of is named by its address.
uint32_t kernels_name(uint64_t object);

#endif
