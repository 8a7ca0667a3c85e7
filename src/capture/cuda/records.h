// SPDX-License-Identifier: Apache-2.0
// What CUPTI tells, as records of the trace. One thread at a time.
#ifndef KEEL_SRC_CAPTURE_CUDA_RECORDS_H_
#define KEEL_SRC_CAPTURE_CUDA_RECORDS_H_

#include "capture/cuda/buffers.h"

// Before all: the number of CUPTI's clock.
void records_begin(uint32_t clock);

// Records all that a buffer has.
void records_add(buffer_t *buffer);

#endif
