// SPDX-License-Identifier: Apache-2.0
// Semaphores of drivers outside of the tree: a remote_t that calls them by tables of their own.
#include <keel/driver/semaphore.h>

#include "base/memory.h"
#include "base/status.h"
#include "kit/remote.h"
#include "kit/submission.h"

typedef struct outer_t {
    remote_t remote;
    const keel_remote_ops_t *ops;
    void *own;
} outer_t;

static outer_t *outer_of(remote_t *remote)
{
    return (outer_t *)(void *)remote;
}

static keel_status_t outer_load(remote_t *remote, uint64_t *value)
{
    return outer_of(remote)->ops->load(outer_of(remote)->own, value);
}

static keel_status_t outer_signal(remote_t *remote, uint64_t value)
{
    bool done = outer_of(remote)->ops->signal(outer_of(remote)->own, value);
    return done ? NULL : remote_refusal(remote, value);
}

static void outer_fail(remote_t *remote, keel_status_t cause)
{
    outer_of(remote)->ops->fail(outer_of(remote)->own, cause);
}

static void outer_watch(remote_t *remote)
{
    (void)remote; // the end of a submission that signals looks by itself
}

static void outer_destroy(remote_t *remote)
{
    outer_of(remote)->ops->destroy(outer_of(remote)->own);
    mem_free_aligned(remote);
}

static const remote_ops_t outer_ops = {
    .load = outer_load,
    .signal = outer_signal,
    .fail = outer_fail,
    .watch = outer_watch,
    .destroy = outer_destroy,
};

keel_status_t keel_remote_create(keel_device_t *device, const keel_remote_ops_t *ops, void *own,
                                 uint64_t initial, keel_semaphore_t **semaphore)
{
    outer_t *outer = mem_zalloc_aligned(sizeof *outer, _Alignof(outer_t));
    if (!outer) return status_no_memory();
    remote_init(&outer->remote, &outer_ops, device, initial);
    outer->ops = ops;
    outer->own = own;
    *semaphore = &outer->remote.semaphore;
    return NULL;
}

void keel_submission_wait_remote(keel_submission_t *submission, void (*start)(keel_submission_t *))
{
    // An alloca may wait for its deallocas, and the library sees only what waits on the host.
    bool gives = submission->commands.kinds >> KEEL_CMD_DEALLOCA & 1;
    if (gives || submission->linked) // for a point of its own queue
        submission_wait(submission, start);
    else if (submission_wait_early(submission, start))
        submission_later(submission, start);
}

// What the device has to do with a point.
static void *point_own(const keel_submission_t *submission, keel_point_t point, uint64_t *value)
{
    remote_t *remote = remote_here(point.semaphore, submission->queue->device);
    if (!remote) return NULL;
    *value = point.value;
    return outer_of(remote)->own;
}

void *keel_submission_remote_wait(const keel_submission_t *submission, uint32_t index,
                                  uint64_t *value)
{
    const submission_wait_t *wait = &submission->waits[index];
    return wait->waiter.promise ? point_own(submission, wait->point, value) : NULL; // or is reached
}

void *keel_submission_remote_signal(const keel_submission_t *submission, uint32_t index,
                                    uint64_t *value)
{
    signal_t *signal = &submission->signals[index];
    void *own = point_own(submission, signal->point, value);
    signal->native |= own != NULL;
    return own;
}

void keel_submission_remote_leave(keel_submission_t *submission, uint32_t index)
{
    remote_leave(submission, index);
}
