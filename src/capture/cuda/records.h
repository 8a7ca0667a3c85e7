// SPDX-License-Identifier: Apache-2.0
// What CUPTI tells, as records of the trace. One thread at a time.
#ifndef KEEL_SRC_CAPTURE_CUDA_RECORDS_H_
#define KEEL_SRC_CAPTURE_CUDA_RECORDS_H_

#include "capture/cuda/buffers.h"

// Before all: the number of CUPTI's clock.
void records_begin(uint32_t clock);

// The calls of a thread are left out, by its number in the system. Any thread.
void records_leave_out(uint64_t thread);

// Records all that a buffer has.
void records_add(buffer_t *buffer);

// The name of a function; NULL: there is none.
const char *records_function(cupti_domain_t domain, uint32_t function);
enum { RECORDS_FUNCTIONS = 1200 }; // of a domain, more than there are

#endif
