// SPDX-License-Identifier: Apache-2.0
#ifndef KEEL_SRC_CAPTURE_HSA_TOOL_H_
#define KEEL_SRC_CAPTURE_HSA_TOOL_H_

#include <stdbool.h>

// What GPUs run is recorded, as the runtime has loaded this library. Any thread.
bool hsa_is_recorded(void);

#endif
