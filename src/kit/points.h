// SPDX-License-Identifier: Apache-2.0
// A set of points that submissions signal: their queues' own, and those of other semaphores. They
// are only compared, so the set retains nothing.
#ifndef KEEL_SRC_KIT_POINTS_H_
#define KEEL_SRC_KIT_POINTS_H_

#include <keel/driver/submission.h>

enum { POINTS_FEW = 32 };

// Begins as zero.
typedef struct points_t {
    keel_point_t few[POINTS_FEW]; // a hash table, as long as it is large enough
    keel_point_t *many;           // owned: the one in its place; NULL: none
    uint32_t capacity;            // of that
    uint32_t count;
    bool failed; // there was no memory for some of them
} points_t;

// Adds what the submission signals.
void points_add(points_t *points, const keel_submission_t *submission);
// Whether the submission is one of those.
bool points_of(const points_t *points, const keel_submission_t *submission);
// Whether a wait for the point is one for what such a submission signals, as far as can be told: of
// other semaphores than queues' the very value.
bool points_serve(const points_t *points, const keel_point_t *point);
// Leaves none.
void points_clear(points_t *points);

#endif
