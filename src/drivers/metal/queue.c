// SPDX-License-Identifier: Apache-2.0
// Queues, and the thread of a device that goes on with runs.
#include "base/memory.h"
#include "base/status.h"
#include "drivers/metal/metal.h"
#include "kit/object.h"

keel_status_t metal_queue_create(keel_device_t *device, const keel_queue_options_t *options,
                                 keel_queue_t **queue)
{
    (void)options; // one kind, and no priorities
    metal_device_t *d = metal_device(device);
    metal_queue_t *q = mem_zalloc(sizeof *q);
    if (!q) return status_no_memory();
    void *pool = metal_enter(d->api);
    q->queue = mtl_new_queue(d->api, d->device, METAL_OUTSTANDING);
    metal_leave(d->api, pool);
    if (!q->queue) {
        mem_free(q);
        return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "Metal has no command queue left");
    }
    q->last_starved = &q->starved;
    q->base.submission_size = sizeof(metal_run_t);
    chores_init(&q->calls, "keel-metal-call", NULL, q);
    *queue = &q->base;
    return NULL;
}

void metal_queue_destroy(keel_queue_t *queue)
{
    metal_queue_t *q = metal_queue(queue);
    if (object_is_ours(&queue->object)) {
        const metal_api_t *api = metal_device(queue->device)->api;
        chores_stop(&q->calls);
        void *pool = metal_enter(api);
        for (uint32_t i = 0; i < q->fence_count; i++) mtl_release(api, q->fences[i]);
        mtl_release(api, q->queue);
        metal_leave(api, pool);
    }
    mem_free(q);
}

bool metal_slot_take(metal_run_t *run)
{
    metal_queue_t *q = metal_queue(run->base.queue);
    if (run->slot) return true;
    lock_enter(&q->lock);
    run->slot = q->outstanding < METAL_OUTSTANDING;
    if (run->slot) {
        q->outstanding++;
    } else {
        run->next = NULL;
        *q->last_starved = run;
        q->last_starved = &run->next;
    }
    bool has = run->slot; // who gives one back may go on with it from here on
    lock_leave(&q->lock);
    return has;
}

// The next one that waits gets it.
void metal_slot_give_back(metal_run_t *run)
{
    metal_queue_t *q = metal_queue(run->base.queue);
    if (!run->slot) return;
    run->slot = false;
    lock_enter(&q->lock);
    metal_run_t *next = q->starved;
    if (next) {
        q->starved = next->next;
        if (!q->starved) q->last_starved = &q->starved;
        next->slot = true;
    } else {
        q->outstanding--;
    }
    lock_leave(&q->lock);
    if (next) metal_resume(next);
}

id metal_fence_take(metal_run_t *run)
{
    metal_queue_t *q = metal_queue(run->base.queue);
    metal_device_t *device = metal_run_device(run);
    id fence = NULL;
    lock_enter(&q->lock);
    if (q->fence_count) fence = q->fences[--q->fence_count];
    lock_leave(&q->lock);
    return fence ? fence : mtl_new_fence(device->api, device->device);
}

void metal_fence_give_back(metal_run_t *run)
{
    metal_queue_t *q = metal_queue(run->base.queue);
    if (!run->fence) return;
    lock_enter(&q->lock);
    bool kept = q->fence_count < METAL_FENCES;
    if (kept) q->fences[q->fence_count++] = run->fence;
    lock_leave(&q->lock);
    if (!kept) mtl_release(metal_run_device(run)->api, run->fence);
    run->fence = NULL;
}

void metal_resume(metal_run_t *run)
{
    metal_device_t *device = metal_run_device(run);
    run->next = atomic_load(&device->ready);
    while (!atomic_compare_exchange_weak(&device->ready, &run->next, run)) {
    }
    helper_wake(&device->worker);
}

static metal_run_t *take_ready(metal_device_t *device)
{
    metal_run_t *run = atomic_exchange(&device->ready, NULL), *oldest = NULL;
    while (run) {
        metal_run_t *next = run->next;
        run->next = oldest;
        oldest = run;
        run = next;
    }
    return oldest;
}

uint64_t metal_worker(void *device)
{
    metal_run_t *next;
    for (metal_run_t *run = take_ready(device); run; run = next) {
        next = run->next;
        metal_run_drive(run);
    }
    return KEEL_FOREVER;
}
