// SPDX-License-Identifier: Apache-2.0
// Whether what a device runs is recorded below Keel.
#ifndef KEEL_SRC_TRACE_CAPTURED_H_
#define KEEL_SRC_TRACE_CAPTURED_H_

#include <stdbool.h>

// libkeeltrace.so is in this process and records what a runtime's GPUs run: "cuda" or "hip". To be
// asked once the runtime is initialised. Any thread.
bool trace_is_captured(const char *runtime);

// libkeeltrace.so, where it is in this process, leaves alone the queues of AMD's that this thread
// makes from here on, because Keel records what they run; or does so no more. False: it records
// them all the same. Any thread, for itself.
bool trace_queues_leave(bool leave);

#endif
