// SPDX-License-Identifier: Apache-2.0
// The schema of rocprofiler-sdk's databases, version 3.0: one that its tools (rocpd) read.
#ifndef KEEL_SRC_TRACER_ROCPD3_H_
#define KEEL_SRC_TRACER_ROCPD3_H_

#include "tracer/model.h"

// Writes a database that replaces one of that name once it is whole. Calls, spans and marks become
// regions, kernels and copies rows of their tables, one for each part. Operations that are neither,
// counters and submissions have no place there and are left out.
keel_status_t rocpd3_write(const model_t *model, const char *path) KEEL_MUST_USE;

#endif
