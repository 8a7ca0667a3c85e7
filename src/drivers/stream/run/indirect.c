// SPDX-License-Identifier: Apache-2.0
// Graphs for dispatches that are not recorded, take their grid from memory and cannot look there by
// themselves: each is a launch, and a kernel in front of it that gives it the grid. To make such a
// graph the vendor may wait for the device, and lets no thread launch meanwhile; to destroy one it
// always waits. So enough of them are made with the first executable whose kernels need them, where
// waiting is allowed, and stay. A dispatch takes one. The next may have it when that has ended, for
// the device changes it as it runs.
#include "base/memory.h"
#include "base/status.h"
#include "drivers/stream/run/run.h"

enum {
    GRAPHS = 64, // of a device
    SHARE = 8,   // of them, on one queue; the second half is for queues that have none
};

struct stream_indirect_t {
    stream_indirect_t *next;
    stream_graph_h graph;
    stream_exec_h exec;
    stream_node_h target, setter;
    uint64_t updatable;        // what the device calls the target
    bool used;                 // the target is a kernel of an executable
    stream_function_h special; // made for this kernel alone, and goes before it does
};

struct stream_indirects_t {
    stream_indirect_t *spare; // owned; guarded by the device's lock, as is their number
    uint32_t spare_count;
    _Atomic uint32_t count; // that there are, spare or not
};

// Without a launch: the target is a kernel that never goes away, and can be changed to any.
void stream_indirect_work_init(const stream_device_t *device, const stream_launch_t *launch,
                               const builtin_counts_t *counts, stream_indirect_work_t *work)
{
    work->grid = (stream_grid_args_t){0};
    if (counts) work->grid.counts = *counts;
    stream_builtin_launch(device, STREAM_GRID, &work->grid, sizeof work->grid, &work->setter);
    work->target = launch ? *launch : work->setter;
    for (int i = 0; i < 3; i++) work->target.groups[i] = 1; // until the device says otherwise
}

static keel_status_t indirect_build(const stream_device_t *device, stream_indirect_t *indirect,
                                    stream_indirect_work_t *work)
{
    const stream_api_t *api = device->api;
    KEEL_TRY(api->graph_create(device->vendor, &indirect->graph));
    stream_place_t place = {.graph = indirect->graph};
    KEEL_TRY(api->graph_launch(device->vendor, &place, &work->target, &indirect->target));
    KEEL_TRY(api->graph_updatable(device->vendor, indirect->target, &indirect->updatable));
    work->grid.node = indirect->updatable;
    KEEL_TRY(api->graph_launch(device->vendor, &place, &work->setter, &indirect->setter));
    KEEL_TRY(api->graph_order(device->vendor, indirect->graph, indirect->setter, indirect->target));
    return api->graph_instantiate(device->vendor, indirect->graph, &indirect->exec);
}

static void indirect_destroy(stream_device_t *device, stream_indirect_t *indirect)
{
    stream_free(device, true, device->api->exec_destroy, indirect->exec);
    stream_free(device, true, device->api->graph_destroy, indirect->graph);
    mem_free(indirect);
    atomic_fetch_sub(&device->indirects->count, 1);
}

keel_status_t stream_indirect_make(stream_device_t *device, stream_indirect_work_t *work,
                                   stream_indirect_t **made)
{
    *made = mem_zalloc(sizeof **made);
    if (!*made) return status_no_memory();
    atomic_fetch_add(&device->indirects->count, 1);
    if (work->target.function != work->setter.function) (*made)->special = work->target.function;
    keel_status_t status = indirect_build(device, *made, work);
    if (status) indirect_destroy(device, *made);
    return status;
}

static keel_status_t indirect_change(const stream_device_t *device,
                                     const stream_indirect_t *indirect,
                                     stream_indirect_work_t *work)
{
    const stream_api_t *api = device->api;
    work->grid.node = indirect->updatable;
    KEEL_TRY(api->exec_set_launch(device->vendor, indirect->exec, indirect->target, &work->target));
    return api->exec_set_launch(device->vendor, indirect->exec, indirect->setter, &work->setter);
}

// One for the kernel, or if all are others', one of these; NULL: there are no more than so many.
static stream_indirect_t *spare_take(stream_device_t *device, uint32_t left,
                                     stream_function_h function)
{
    lock_enter(&device->lock);
    stream_indirect_t **at = &device->indirects->spare, *indirect = NULL;
    while (*at && (*at)->special && (*at)->special != function) at = &(*at)->next;
    if (!*at) at = &device->indirects->spare;
    if (device->indirects->spare_count > left) indirect = *at;
    if (indirect) *at = indirect->next;
    if (indirect) device->indirects->spare_count--;
    lock_leave(&device->lock);
    return indirect;
}

static void spare_put(stream_device_t *device, stream_indirect_t *indirect)
{
    lock_enter(&device->lock);
    indirect->next = device->indirects->spare;
    device->indirects->spare = indirect;
    device->indirects->spare_count++;
    lock_leave(&device->lock);
}

keel_status_t stream_indirects_create(stream_device_t *device)
{
    if (!stream_device_has(device, STREAM_UPDATABLE)) return NULL;
    device->indirects = mem_zalloc(sizeof *device->indirects);
    return device->indirects ? NULL : status_no_memory();
}

keel_status_t stream_indirects_reserve(stream_device_t *device, uint32_t least)
{
    stream_indirect_t *indirect;
    keel_status_t status = NULL;
    stream_indirect_work_t work;
    if (atomic_load(&device->indirects->count) >= (least < GRAPHS ? least : GRAPHS)) return NULL;
    stream_indirect_work_init(device, NULL, NULL, &work);
    while (!status && atomic_load(&device->indirects->count) < GRAPHS)
        if (!(status = stream_indirect_make(device, &work, &indirect))) spare_put(device, indirect);
    if (!status) stream_graph_room_make(device); // which these have taken
    return status;
}

void stream_indirects_forget(stream_device_t *device)
{
    stream_entered_t entered;
    stream_indirect_t *indirect, *all = NULL;
    stream_indirect_work_t work;
    if (!device->indirects || !stream_enter(device, &entered)) return;
    stream_indirect_work_init(device, NULL, NULL, &work);
    for (; (indirect = spare_take(device, 0, NULL)); all = indirect) indirect->next = all;
    while ((indirect = all)) {
        all = indirect->next;
        keel_status_t status = indirect->used ? indirect_change(device, indirect, &work) : NULL;
        indirect->used = false;
        if (status || indirect->special)
            indirect_destroy(device, indirect);
        else
            spare_put(device, indirect);
        keel_status_release(status);
    }
    stream_leave(&entered);
}

void stream_indirects_destroy(stream_device_t *device)
{
    if (!device->indirects) return;
    for (stream_indirect_t *indirect; (indirect = spare_take(device, 0, NULL));)
        indirect_destroy(device, indirect);
    mem_free(device->indirects);
}

stream_indirect_t *stream_indirect_take(stream_device_t *device, stream_indirect_work_t *work,
                                        const stream_queue_t *queue, bool *refused)
{
    uint32_t mine = atomic_load(&queue->indirects);
    stream_function_h function = work->target.function;
    if (mine >= SHARE) return NULL;
    stream_indirect_t *got = spare_take(device, mine ? GRAPHS / 2 : 0, function);
    if (!got) return NULL;
    bool suits = !got->special || got->special == function;
    if (suits) got->used = true;
    keel_status_t status = suits ? indirect_change(device, got, work) : NULL;
    if (suits && !status) return got;
    keel_status_release(status);
    *refused = true;
    if (stream_queue_is_patient(queue))
        indirect_destroy(device, got); // the caller makes another one in its place
    else
        spare_put(device, got);
    return NULL;
}

keel_status_t stream_indirect_run(stream_queue_t *queue, stream_indirect_t *indirect,
                                  stream_indirect_t **list)
{
    const stream_device_t *device = stream_queue_device(queue);
    indirect->next = *list;
    *list = indirect;
    atomic_fetch_add(&queue->indirects, 1);
    KEEL_TRY(device->api->exec_upload(device->vendor, indirect->exec, stream_queue_onto(queue)));
    return device->api->exec_run(device->vendor, indirect->exec, stream_queue_onto(queue));
}

void stream_indirects_return(stream_queue_t *queue, stream_indirect_t **list)
{
    for (stream_indirect_t *indirect; (indirect = *list); atomic_fetch_sub(&queue->indirects, 1)) {
        *list = indirect->next;
        spare_put(stream_queue_device(queue), indirect);
    }
}
