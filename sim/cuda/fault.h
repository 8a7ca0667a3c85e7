// SPDX-License-Identifier: Apache-2.0
// What happens when memory is touched that may not be.
#ifndef SIM_CUDA_FAULT_H_
#define SIM_CUDA_FAULT_H_

#include <stdbool.h>
#include <stdint.h>

// Once. A fault of the host is told of and goes the way it would have gone without.
void fault_init(void);

// Calls `body`; false when it touched what it may not, whose address is then in out_address. The
// body is left where it stood.
bool fault_guard(void (*body)(void *user), void *user, uint64_t *out_address);

#endif
