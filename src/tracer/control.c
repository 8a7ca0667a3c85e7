// SPDX-License-Identifier: Apache-2.0
#include "tracer/control.h"

#include <errno.h>

#include "base/status.h"

keel_status_t control_open(const char *folder, trace_control_t **control)
{
    *control = trace_control_open(folder);
    return *control ? NULL : status_from_errno(status_errno_code(errno), errno, folder);
}

void control_set(trace_control_t *control, bool records)
{
    atomic_store_explicit(&control->paused, !records, memory_order_relaxed);
}

bool control_records(const trace_control_t *control)
{
    return !atomic_load_explicit(&((trace_control_t *)(uintptr_t)control)->paused,
                                 memory_order_relaxed);
}
