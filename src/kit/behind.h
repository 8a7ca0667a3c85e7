// SPDX-License-Identifier: Apache-2.0
// Which submissions of a device wait for others, directly or over more of them. That the host, or
// work of another device, waits for them and then goes on cannot be told.
#ifndef KEEL_SRC_KIT_BEHIND_H_
#define KEEL_SRC_KIT_BEHIND_H_

#include "kit/pool.h"

// submission.c

// The next one of the queue, after *id, that waits for points, which does not start or end until
// submission_let_go; *id becomes its own. NULL: there is none. One that is just being submitted may
// be left out. No lock may be held.
keel_submission_t *submission_hold_next(keel_queue_t *queue, uint64_t *id);
void submission_let_go(keel_submission_t *submission);

// behind.c

// One look at those that wait on the host, as behind_find has several. Whether it found any, and is
// to look again.
bool behind_more(keel_device_t *device, points_t *points, pool_found_t *found, void *user);

// As pool_behind_t. What it holds up meanwhile may start here.
void behind_find(keel_device_t *device, points_t *points, pool_found_t *found, void *user);

#endif
