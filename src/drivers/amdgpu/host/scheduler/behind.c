// SPDX-License-Identifier: Apache-2.0
// Who waits for whom, on host and GPU. A submission that the GPU has waits there for semaphores of
// the device, of which kit/behind.c knows nothing: for that it has begun.
#include "kit/behind.h"

#include "drivers/amdgpu/host/scheduler/scheduler.h"
#include "kit/submission.h"

// Whether the GPU waits for one of the points before the submission runs.
static bool run_waits_for(const amdgpu_run_t *run, const points_t *points)
{
    const keel_submission_t *submission = &run->base.submission;
    for (uint32_t i = 0; i < submission->wait_count; i++) {
        const keel_point_t *point = &submission->waits[i].point;
        const cell_t *cell = amdgpu_cell_of(point->semaphore, submission->queue->device);
        // relaxed: where it changes now, what was found out so far was right before.
        uint64_t value = cell ? PROTOCOL_LOAD(&cell->value, __ATOMIC_RELAXED) : UINT64_MAX;
        // The bit of a failed one is above all values.
        if (value < point->value && points_serve(points, point)) return true;
    }
    return false;
}

// One look at those that the GPU has. None of them ends meanwhile: it is unlisted first.
static bool runs_more(amdgpu_scheduler_t *s, points_t *points, pool_found_t *found, void *user)
{
    bool more = false;
    lock_enter(&s->runs_lock);
    for (const amdgpu_run_t *run = s->runs; run; run = run->flight.next) {
        const keel_submission_t *submission = &run->base.submission;
        if (points_of(points, submission) || !run_waits_for(run, points)) continue;
        points_add(points, submission);
        found(user, submission);
        more = true;
    }
    lock_leave(&s->runs_lock);
    return more && !points->failed;
}

void amdgpu_behind_find(keel_device_t *base, points_t *points, pool_found_t *found, void *user)
{
    amdgpu_scheduler_t *s = amdgpu_device(base)->scheduler;
    bool more = true;
    while (more) {
        more = behind_more(base, points, found, user);
        if (s && !points->failed) more |= runs_more(s, points, found, user);
    }
}
