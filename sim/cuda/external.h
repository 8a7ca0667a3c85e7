// SPDX-License-Identifier: Apache-2.0
// Timeline semaphores of another API, and that API: what Vulkan would be on a machine with a card.
#ifndef SIM_CUDA_EXTERNAL_H_
#define SIM_CUDA_EXTERNAL_H_

#include "cuda/state.h"

// The other API. It needs nothing but the descriptor, so it may be called at any time and from any
// process. A semaphore is a file of one page: the 8 characters of SEMAPHORE_MAGIC and its value, 64
// bits in the host's order, which only grows.
#define SEMAPHORE_MAGIC "simtline"
// A new descriptor of a new semaphore, the caller's to close; -1 if there is none to be had.
__attribute__((visibility("default"))) int simSemaphoreCreate(uint64_t value);
// 0; -1 if that is no semaphore, or has such a value already.
__attribute__((visibility("default"))) int simSemaphoreSignal(int fd, uint64_t value);
// 0; -1 if that is no semaphore.
__attribute__((visibility("default"))) int simSemaphoreValue(int fd, uint64_t *value);

// Signals or waits, without the lock; a wait ends with its context.
void external_run(const semaphore_work_t *work, CUcontext context);
// It has ended, or never begins; under the lock.
void external_end(const semaphore_work_t *work);

// What has to wait for all streams of a context: they may be parked for ever, and on a card such a
// call does not return then either. Under the lock.
void external_settle(CUcontext context);

#endif
