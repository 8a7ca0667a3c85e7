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

// A call has waited for the mark, or for all of the context: what was freed before it on its
// stream, or on another that this one had waited for, is known to be free and may be given back. No
// query, and no time that passes, does that on a card.
void pools_settle(CUcontext context, const mark_t *mark);
// A context ends, and its allocations with it.
void pools_forget(CUcontext context);

#endif
