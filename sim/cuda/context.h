// SPDX-License-Identifier: Apache-2.0
// Which context is current, and what happens to all of them. Under the lock.
#ifndef SIM_CUDA_CONTEXT_H_
#define SIM_CUDA_CONTEXT_H_

#include "cuda/state.h"

// The current context of this thread, or NULL. It may be destroyed.
CUcontext context_current(void);
bool context_push(CUcontext context);
void context_replace(CUcontext context); // NULL: none is current

// The context fails, or all of them for NULL, and that is known at once.
void contexts_fail(CUcontext which, CUresult code);
// All devices are lost: every context fails, and no other can be made.
void devices_lose(CUresult code);

#endif
