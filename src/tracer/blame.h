// SPDX-License-Identifier: Apache-2.0
// What operations waited for.
#ifndef KEEL_SRC_TRACER_BLAME_H_
#define KEEL_SRC_TRACER_BLAME_H_

#include "tracer/model.h"

// Zeroed, it knows of nothing.
typedef struct blame_t {
    const model_t *model;
    map_t works; // submissions by their calls
    map_t needs; // the first need of each submission
} blame_t;

keel_status_t blame_init(blame_t *blame, const model_t *model) KEEL_MUST_USE;
void blame_finish(blame_t *blame);

// What an operation waited for last, after `from_ns`: of the points that its submission needed, the
// one that came last; or, if all that are known came before, one of which it is not known when it
// came. NULL: nothing of that.
const need_t *blame_find(const blame_t *blame, const event_t *event, uint64_t from_ns);

// Names it: "queue 'copies' of cpu://", "semaphore 'frame'".
void blame_text(const blame_t *blame, const need_t *need, char *text, size_t size);

// The same for the same queue or semaphore, and never 0.
uint64_t blame_key(const blame_t *blame, const need_t *need);

#endif
