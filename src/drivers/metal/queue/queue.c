// SPDX-License-Identifier: Apache-2.0
// Queues, and what they keep for their command buffers: fences, and capture scopes.
#include "drivers/metal/queue/queue.h"
#include "base/memory.h"
#include "base/status.h"
#include "drivers/metal/memory/memory.h"
#include "kit/object.h"

// Without one nothing is amiss: a debugger has other places to begin at.
static void scope_make(metal_device_t *device, metal_queue_t *queue,
                       const keel_queue_options_t *options)
{
    const metal_api_t *api = device->api;
    id manager = mtl_capture_manager(api, api->objc_getClass("MTLCaptureManager"));
    const char *name = options && options->name ? options->name : "keel";
    queue->scope = mtl_new_scope(api, manager, queue->queue);
    mtl_set_label(api, queue->scope, mtl_string(api, api->string_class, name));
}

void metal_scope_begin(metal_run_t *run)
{
    metal_queue_t *q = metal_queue(run->base.submission.queue);
    if (!q->scope) return;
    lock_enter(&q->lock);
    if (q->scoped++ == 0) mtl_begin_scope(metal_run_device(run)->api, q->scope);
    lock_leave(&q->lock);
}

void metal_scope_end(metal_run_t *run)
{
    metal_queue_t *q = metal_queue(run->base.submission.queue);
    if (!q->scope) return;
    lock_enter(&q->lock);
    if (--q->scoped == 0) mtl_end_scope(metal_run_device(run)->api, q->scope);
    lock_leave(&q->lock);
}

// There is one kind of queue, and no priorities.
keel_status_t metal_queue_create(keel_device_t *device, const keel_queue_options_t *options,
                                 keel_queue_t **queue)
{
    metal_device_t *d = metal_device(device);
    metal_queue_t *q = mem_zalloc(sizeof *q);
    if (!q) return status_no_memory();
    void *pool = metal_enter(d->api);
    q->queue = mtl_new_queue(d->api, d->device, METAL_OUTSTANDING);
    if (d->residency) mtl_add_residency_set(d->api, q->queue, d->residency);
    if (d->captures && q->queue) scope_make(d, q, options);
    metal_leave(d->api, pool);
    if (!q->queue) {
        mem_free(q);
        return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "Metal has no command queue left");
    }
    q->base.submission_size = sizeof(metal_run_t);
    q->base.early = true;
    run_queue_init(&q->runs, "keel-metal-call", METAL_OUTSTANDING);
    *queue = &q->base;
    return NULL;
}

void metal_queue_destroy(keel_queue_t *queue)
{
    metal_queue_t *q = metal_queue(queue);
    if (object_is_ours(&queue->object)) {
        const metal_api_t *api = metal_device(queue->device)->api;
        chores_stop(&q->runs.calls);
        void *pool = metal_enter(api);
        for (uint32_t i = 0; i < q->fence_count; i++) mtl_release(api, q->fences[i]);
        for (uint32_t i = 0; i < q->words_count; i++)
            metal_memory_remove(metal_device(queue->device), q->words[i]);
        mtl_release(api, q->scope);
        mtl_release(api, q->queue);
        metal_leave(api, pool);
    }
    mem_free(q);
}

id metal_fence_take(metal_run_t *run)
{
    metal_queue_t *q = metal_queue(run->base.submission.queue);
    metal_device_t *device = metal_run_device(run);
    id fence = NULL;
    lock_enter(&q->lock);
    if (q->fence_count) fence = q->fences[--q->fence_count];
    lock_leave(&q->lock);
    return fence ? fence : mtl_new_fence(device->api, device->device);
}

void metal_fence_give_back(metal_run_t *run)
{
    metal_queue_t *q = metal_queue(run->base.submission.queue);
    if (!run->fence) return;
    lock_enter(&q->lock);
    bool kept = q->fence_count < METAL_FENCES;
    if (kept) q->fences[q->fence_count++] = run->fence;
    lock_leave(&q->lock);
    if (!kept) mtl_release(metal_run_device(run)->api, run->fence);
    run->fence = NULL;
}
