// SPDX-License-Identifier: Apache-2.0
// What got slower between two traces.
#ifndef KEEL_SRC_TRACER_COMPARE_H_
#define KEEL_SRC_TRACER_COMPARE_H_

#include <stdio.h>

#include "tracer/model.h"

// Prints, for operations and for calls, the `limit` names whose totals differ most.
keel_status_t compare_print(const model_t *before, const model_t *after, uint32_t limit,
                            FILE *out) KEEL_MUST_USE;

#endif
