// SPDX-License-Identifier: Apache-2.0
#ifndef KEEL_SRC_CAPTURE_CUDA_TOOL_H_
#define KEEL_SRC_CAPTURE_CUDA_TOOL_H_

#include <stdbool.h>

// What GPUs run is recorded, as the runtime has loaded this library; or its launches are counted,
// which is to cost no more than that. Any thread.
bool cuda_is_recorded(void);

#endif
