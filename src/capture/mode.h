// SPDX-License-Identifier: Apache-2.0
// What is to be recorded, by the variables KEEL_TRACE_MODE and KEEL_TRACE_CALLS.
#ifndef KEEL_SRC_CAPTURE_MODE_H_
#define KEEL_SRC_CAPTURE_MODE_H_

#include <stdbool.h>

typedef struct capture_mode_t {
    bool kernels;   // of GPUs
    bool launches;  // of CUDA are counted, instead of all else of CUDA: CUPTI is not opened
    bool copies;    // and kernels for which a packet must be added to the application's queue
    bool calls;     // of HIP and CUDA
    bool all_calls; // of CUDA: also those that only tell something
} capture_mode_t;

// The same at each call. Any thread.
const capture_mode_t *capture_mode(void);

#endif
