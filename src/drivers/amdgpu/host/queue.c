// SPDX-License-Identifier: Apache-2.0
// Queues, and who goes on with what is submitted to them: the GPU, or the host.
#include "base/memory.h"
#include "base/status.h"
#include "drivers/amdgpu/host/driver.h"
#include "drivers/amdgpu/host/record/record.h"
#include "kit/object.h"
#include "kit/submission.h"

static hsa_amd_queue_priority_t priority_of(int32_t priority)
{
    if (priority > 0) return HSA_AMD_QUEUE_PRIORITY_HIGH;
    return priority < 0 ? HSA_AMD_QUEUE_PRIORITY_LOW : HSA_AMD_QUEUE_PRIORITY_NORMAL;
}

static keel_status_t ring_create(amdgpu_device_t *device, const keel_queue_options_t *options,
                                 hsa_queue_t **queue)
{
    const hsa_symbols_t *hsa = device->hsa;
    int32_t priority = options->priority;
    KEEL_TRY(amdgpu_ring_make(device, options->node, AMDGPU_RING, queue));
    if (!priority) return NULL;
    keel_status_t status = HSA_CALL(hsa, hsa_amd_queue_set_priority, *queue, priority_of(priority));
    if (status) amdgpu_ring_destroy(device, *queue);
    return status;
}

keel_status_t amdgpu_queue_create(keel_device_t *device, const keel_queue_options_t *options,
                                  keel_queue_t **queue)
{
    // seq_cst, as is who sets the failure: either this sees it, or the worker sees a whole device.
    atomic_store(&amdgpu_device(device)->whole, true);
    KEEL_TRY(amdgpu_lost_cause(amdgpu_device(device)));
    amdgpu_queue_t *q = mem_zalloc(sizeof *q);
    if (!q) return status_no_memory();
    keel_status_t status = ring_create(amdgpu_device(device), options, &q->queue);
    if (!status) {
        status = amdgpu_scheduler_adopt(amdgpu_device(device), q, options->node);
        if (status) amdgpu_ring_destroy(amdgpu_device(device), q->queue);
    }
    if (status) {
        mem_free(q);
        return status;
    }
    q->base.submission_size = sizeof(amdgpu_run_t);
    run_queue_init(&q->runs, "keel-amdgpu-call", AMDGPU_SLOTS);
    *queue = &q->base;
    return NULL;
}

void amdgpu_queue_destroy(keel_queue_t *queue)
{
    amdgpu_queue_t *q = amdgpu_queue(queue);
    if (object_is_ours(&queue->object)) {
        chores_stop(&q->runs.calls);
        amdgpu_scheduler_leave(q);
        amdgpu_ring_destroy(amdgpu_device(queue->device), q->queue);
        amdgpu_scheduler_forget(q);
    }
    mem_free(q);
}

// Who waits on the GPU is found by amdgpu_behind_find: deallocas may, too.
static void wait_early(keel_submission_t *submission, void (*start)(keel_submission_t *))
{
    if (submission->linked) // for a point of its own queue
        submission_wait(submission, start);
    else if (submission_wait_early(submission, start))
        submission_later(submission, start);
}

void amdgpu_queue_submit(keel_queue_t *queue, keel_submission_t *submission)
{
    (void)queue;
    if (amdgpu_record_suits(submission))
        wait_early(submission, amdgpu_record_start);
    else if (amdgpu_request_suits(submission))
        wait_early(submission, amdgpu_request_start);
    else
        submission_wait(submission, amdgpu_host_start);
}
