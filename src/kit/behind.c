// SPDX-License-Identifier: Apache-2.0
#include "kit/behind.h"

#include "kit/device.h"
#include "kit/submission.h"

static bool waits_for(const keel_submission_t *submission, const points_t *points)
{
    for (uint32_t i = 0; i < submission->wait_count; i++)
        if (points_serve(points, &submission->waits[i].point)) return true;
    return false;
}

bool behind_more(keel_device_t *device, points_t *points, pool_found_t *found, void *user)
{
    bool more = false;
    keel_queue_t *queue = device_next_queue(device, NULL);
    for (; queue; queue = device_next_queue(device, queue)) {
        uint64_t id = 0;
        for (keel_submission_t *s; (s = submission_hold_next(queue, &id)); submission_let_go(s)) {
            if (points_of(points, s) || !waits_for(s, points)) continue;
            points_add(points, s);
            found(user, s);
            more = true;
        }
    }
    return more && !points->failed;
}

void behind_find(keel_device_t *device, points_t *points, pool_found_t *found, void *user)
{
    while (behind_more(device, points, found, user)) continue;
}
