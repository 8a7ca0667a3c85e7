// SPDX-License-Identifier: Apache-2.0
// Memory operations at work.
#ifndef SIM_CUDA_MEMOP_H_
#define SIM_CUDA_MEMOP_H_

#include "cuda/work.h"

// Under the lock.
bool memops_check(const memop_work_t *memops, moment_t moment, const char *maker);
// Without it. Ends early when the context fails.
void memops_run(const memop_work_t *memops, CUcontext context);

#endif
