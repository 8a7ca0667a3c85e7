// SPDX-License-Identifier: Apache-2.0
// Stops and starts the recording of a trace that is being written.
#ifndef KEEL_SRC_TRACER_CONTROL_H_
#define KEEL_SRC_TRACER_CONTROL_H_

#include <keel/status.h>
#include <stdbool.h>

#include "trace/control.h"

// Finds the control of a folder of parts; it stays mapped.
keel_status_t control_open(const char *folder, trace_control_t **control) KEEL_MUST_USE;

// The file is the control of some folder of parts, by its name, its size and what is in it.
// `user`: not used.
bool control_is(const void *user, const char *path);

// Whether the processes record. Handlers of signals may call these.
void control_set(trace_control_t *control, bool records);
bool control_records(const trace_control_t *control);

#endif
