// SPDX-License-Identifier: Apache-2.0
// How much memory of GPUs a process has at each moment, by its calls that take it and give it back.
#ifndef KEEL_SRC_TRACER_USAGE_H_
#define KEEL_SRC_TRACER_USAGE_H_

#include "tracer/model.h"

typedef struct change_t {
    uint64_t ns;
    uint64_t address;
    uint64_t bytes; // that are taken; 0: those at the address are given back
    uint32_t track; // the thread
} change_t;

// Of one process. Zeroed, it is empty.
typedef struct usage_t {
    change_t *changes; // owned
    uint32_t count, capacity;
} usage_t;

keel_status_t usage_add(usage_t *usage, change_t change) KEEL_MUST_USE;

// Adds the values of a counter to a model. What is given back without having been taken counts for
// nothing: it was taken before recording began.
keel_status_t usage_count(usage_t *usage, model_t *model, const char *name) KEEL_MUST_USE;

void usage_finish(usage_t *usage);

#endif
