// SPDX-License-Identifier: Apache-2.0
// Stream-ordered memory. A pool holds what was freed in it as credit: bytes it has reserved of its
// device, with the place in a stream where they were freed. An allocation uses credit where the
// rules of reuse allow it, and reserves anew where not. Its addresses are always new, so that use
// after the free is noticed. All under the lock.
#ifndef SIM_CUDA_POOL_H_
#define SIM_CUDA_POOL_H_

#include "cuda/state.h"

bool pool_create_default(device_t *device);

// The stream has come to the allocation, or to its end.
void pool_begin(uint64_t address);
void pool_end(uint64_t address, CUstream stream, uint64_t number);

// A call has synchronised: what is free may be given back, and is known to be free.
void pools_settle(void);
// A context ends, and its allocations with it.
void pools_forget(CUcontext context);

#endif
