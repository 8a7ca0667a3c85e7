// SPDX-License-Identifier: Apache-2.0
// How many operations of a device were called for and not over: its queue depth.
#ifndef KEEL_SRC_TRACER_DEPTH_H_
#define KEEL_SRC_TRACER_DEPTH_H_

#include "tracer/model.h"

// Calls `fn` with each change, in the order of time.
typedef keel_status_t (*depth_fn)(void *user, uint64_t ns, int64_t depth);
keel_status_t depth_each(const model_t *model, uint32_t device, depth_fn fn,
                         void *user) KEEL_MUST_USE;

#endif
