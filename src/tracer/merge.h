// SPDX-License-Identifier: Apache-2.0
// Several traces in one model.
#ifndef KEEL_SRC_TRACER_MERGE_H_
#define KEEL_SRC_TRACER_MERGE_H_

#include "tracer/model.h"
#include "tracer/set.h"

// Adds a trace by its path. If it is of another machine, or of another start of it, than the first
// process of the model, its times are moved by the difference of both clocks to CLOCK_REALTIME.
// *moved_ns: by how much.
keel_status_t merge_add(model_t *model, const char *path, int64_t *moved_ns) KEEL_MUST_USE;

// The same with files that are open.
keel_status_t merge_add_set(model_t *model, const set_t *set) KEEL_MUST_USE;

#endif
