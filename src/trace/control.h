// SPDX-License-Identifier: Apache-2.0
// A page that the traced processes and the tool share, FOLDER/control: by it the tool stops and
// starts the recording of programs that run.
#ifndef KEEL_SRC_TRACE_CONTROL_H_
#define KEEL_SRC_TRACE_CONTROL_H_

#include <stdatomic.h>
#include <stdint.h>

enum { TRACE_CONTROL_SIZE = 4096 };

typedef struct trace_control_t {
    _Atomic uint32_t paused; // 1: nothing but names is recorded
} trace_control_t;

// Maps the page of a folder, which is made if there is none. NULL with errno if that fails.
trace_control_t *trace_control_open(const char *folder);

#endif
