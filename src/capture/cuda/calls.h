// SPDX-License-Identifier: Apache-2.0
// Calls of CUDA's runtime and driver: CUPTI calls a function of ours when one begins, and when it
// ends. Its own records of calls cost several times as much.
#ifndef KEEL_SRC_CAPTURE_CUDA_CALLS_H_
#define KEEL_SRC_CAPTURE_CUDA_CALLS_H_

#include <stdbool.h>

#include "capture/cuda/abi.h"

// Numbers of calls that are not those of other runtimes (capture/call.h), by CUPTI's.
static inline uint64_t calls_number(uint32_t correlation)
{
    return 1ull << 62 | correlation;
}

// What CUPTI calls, on the thread that calls CUDA.
void calls_seen(void *user, uint32_t domain, uint32_t function, const cupti_call_t *call);

// Starts or stops to record. False: CUPTI refuses all functions. One thread at a time.
bool calls_set(void *subscriber, bool on);

// The calls of the calling thread are left out, for ever.
void calls_leave_out(void);

#endif
