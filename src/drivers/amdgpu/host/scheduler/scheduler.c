// SPDX-License-Identifier: Apache-2.0
// The schedulers of a device: from their start to their end, and what they know of queues.
#include "drivers/amdgpu/host/scheduler/scheduler.h"

#include "base/memory.h"
#include "base/status.h"
#include "drivers/amdgpu/device/program.h"
#include "drivers/amdgpu/host/code/code.h"
#include "kit/object.h"

void amdgpu_scheduler_ask(amdgpu_control_t *control)
{
    amdgpu_scheduler_t *s = control->device->scheduler;
    lock_enter(&s->lock);
    if (!s->closing) tick_ask(control->shared);
    lock_leave(&s->lock);
}

void amdgpu_scheduler_wake(amdgpu_device_t *device, cell_t *cell)
{
    amdgpu_scheduler_t *s = device->scheduler;
    lock_enter(&s->lock);
    if (!s->closing) cell_wake(cell);
    lock_leave(&s->lock);
}

static keel_status_t kernels_find(amdgpu_device_t *device, amdgpu_scheduler_t *s)
{
    hsa_executable_t library = device->library;
    KEEL_TRY(amdgpu_kernel_find(device, library, "keel_tick", &s->tick));
    KEEL_TRY(amdgpu_kernel_find(device, library, "keel_advance", &s->advance));
    KEEL_TRY(amdgpu_kernel_find(device, library, "keel_issue", &s->issue));
    return amdgpu_kernel_find(device, library, "keel_patch", &s->patch);
}

keel_status_t amdgpu_scheduler_start(amdgpu_device_t *device, uint32_t each)
{
    amdgpu_scheduler_t *s = device->scheduler = mem_zalloc(sizeof *s);
    if (!s) return status_no_memory();
    KEEL_TRY(amdgpu_causes_init(s));
    KEEL_TRY(kernels_find(device, s));
    s->each = each;
    for (uint32_t i = 0; i < device->node_count * each; i++) {
        s->controls[i].device = device;
        s->controls[i].node = i / each;
        s->controls[i].number = i;
        s->control_count++;
        KEEL_TRY(amdgpu_control_start(&s->controls[i]));
    }
    return NULL;
}

static void queue_list(amdgpu_scheduler_t *s, amdgpu_queue_t *queue)
{
    lock_enter(&s->queues_lock);
    queue->next = s->queues;
    s->queues = queue;
    lock_leave(&s->queues_lock);
}

static void queue_unlist(amdgpu_scheduler_t *s, const amdgpu_queue_t *queue)
{
    lock_enter(&s->queues_lock);
    amdgpu_queue_t **link = &s->queues;
    while (*link != queue) link = &(*link)->next;
    *link = queue->next;
    lock_leave(&s->queues_lock);
}

// Of the control queue, too: the tick that wrote the last packets of the queue rings for them when
// they may have ended already, as others ring for theirs.
void amdgpu_scheduler_leave(amdgpu_queue_t *queue)
{
    if (!queue->shared) return;
    amdgpu_control_drain(queue->control, queue->queue);
    amdgpu_control_drain(queue->control, NULL);
    queue_unlist(amdgpu_device(queue->base.device)->scheduler, queue);
}

void amdgpu_scheduler_forget(amdgpu_queue_t *queue)
{
    amdgpu_device_t *device = amdgpu_device(queue->base.device);
    if (!queue->shared) return;
    if (atomic_load(&device->failed)) {
        // A tick that was not waited for may still write there.
        amdgpu_page_keep(device->scheduler, queue->advances);
    } else {
        amdgpu_shared_queue_give_back(device, queue->shared);
        blocks_return(&device->blocks, queue->advances, false);
    }
    queue->shared = NULL;
}

// The last record of each queue has ended, but the kernel that told so may still run. Queues that
// are on their way out count as well, which the device does not list any more.
static void queues_drain(amdgpu_scheduler_t *s)
{
    lock_enter(&s->queues_lock);
    for (const amdgpu_queue_t *queue = s->queues; queue; queue = queue->next)
        amdgpu_control_drain(queue->control, queue->queue);
    lock_leave(&s->queues_lock);
}

// All records have ended; the last ticks may still be on their way.
void amdgpu_scheduler_stop(amdgpu_device_t *device)
{
    amdgpu_scheduler_t *s = device->scheduler;
    if (!s) return;
    lock_enter(&s->lock);
    s->closing = true;
    lock_leave(&s->lock);
    queues_drain(s);
    for (uint32_t i = 0; i < s->control_count; i++) amdgpu_control_drain(&s->controls[i], NULL);
    for (uint32_t i = 0; i < s->control_count; i++) amdgpu_control_stop(&s->controls[i]);
}

void amdgpu_scheduler_clear(amdgpu_device_t *device)
{
    amdgpu_scheduler_t *s = device->scheduler;
    for (uint32_t i = 0; s && i < s->control_count; i++) amdgpu_control_clear(&s->controls[i]);
}

void amdgpu_scheduler_free(amdgpu_device_t *device)
{
    amdgpu_scheduler_t *s = device->scheduler;
    if (!s) return;
    bool ours = object_is_ours(&device->base.object);
    amdgpu_causes_free(s);
    for (uint32_t i = 0; ours && i < s->control_count; i++) amdgpu_control_free(&s->controls[i]);
    if (s->pages && ours) blocks_return(&device->blocks, s->pages, false);
    mem_free(s);
}

keel_status_t amdgpu_scheduler_adopt(amdgpu_device_t *device, amdgpu_queue_t *queue, uint32_t node)
{
    amdgpu_scheduler_t *s = device->scheduler;
    ring_queue_t *shared;
    if (!s) return NULL;
    uint64_t size = queue->queue->size * sizeof(advance_args_t);
    KEEL_TRY(amdgpu_shared_queue_take(device, &shared));
    keel_status_t status = amdgpu_ring_describe(queue->queue, AMDGPU_DEVICE_ROOM, shared);
    if (!status) status = blocks_acquire(&device->blocks, size, &queue->advances);
    if (status) {
        amdgpu_shared_queue_give_back(device, shared);
        return status;
    }
    uint32_t turn = atomic_fetch_add(&s->turn[node], 1) % s->each;
    queue->control = &s->controls[node * s->each + turn];
    queue->shared = shared;
    queue->shared->advances = queue->advances->address;
    queue_list(s, queue);
    return NULL;
}
