// SPDX-License-Identifier: Apache-2.0
// Finds a number of 32 bits by an id, as map.h does. Ids that come in turn, with numbers that do,
// take no room.
#ifndef KEEL_SRC_TRACER_RUNS_H_
#define KEEL_SRC_TRACER_RUNS_H_

#include "tracer/map.h"

// `count` ids from `id` on, which have numbers from `value` on.
typedef struct run_t {
    int64_t id;
    uint32_t value, count;
} run_t;

// Zeroed, it is empty.
typedef struct runs_t {
    run_t *runs; // owned; by ids
    uint32_t count, capacity;
    map_t others; // ids that came after larger ones
} runs_t;

// Puts a value at an id; one that is there stays.
keel_status_t runs_put(runs_t *runs, int64_t id, uint32_t value) KEEL_MUST_USE;

// False: there is none.
bool runs_get(const runs_t *runs, int64_t id, uint32_t *value);

void runs_finish(runs_t *runs);

#endif
