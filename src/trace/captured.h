// SPDX-License-Identifier: Apache-2.0
// Whether what a device runs is recorded below Keel.
#ifndef KEEL_SRC_TRACE_CAPTURED_H_
#define KEEL_SRC_TRACE_CAPTURED_H_

#include <stdbool.h>

// libkeeltrace.so is in this process and records what a runtime's GPUs run: "cuda" or "hip". To be
// asked once the runtime is initialised. Any thread.
bool trace_is_captured(const char *runtime);

#endif
