// SPDX-License-Identifier: Apache-2.0
// A dispatch that is not recorded, takes its grid from memory and cannot look there by itself: two
// nodes of a graph. To make such a graph the vendor may wait for the device, and lets nobody launch
// anything meanwhile; to destroy one it always waits. So enough of them are made with the first
// executable whose kernels need them, where waiting is allowed, and stay: a dispatch takes one, and
// the next may have it when that is over, for the device changes it as it runs. If there is none,
// or the queue has its share, the queue's own thread waits for its stream.
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "drivers/stream/graph.h"

enum {
    ONCES = 64, // of a device
    SHARE = 8,  // of them, on one queue; the second half is for queues that have none
    PAUSE_NS = 50000,
};

struct stream_once_t {
    stream_once_t *next;
    stream_graph_h graph;
    stream_exec_h exec;
    stream_node_h target, setter;
    uint64_t updatable;        // what the device calls the target
    bool used;                 // the target is somebody's kernel
    stream_function_h special; // when made, this one: it is for that alone, and goes before it does
};

// What its nodes do.
typedef struct once_work_t {
    stream_launch_t target, setter;
    stream_grid_args_t grid; // the arguments of the setter
} once_work_t;

// Without a launch: the target is a kernel that never goes away, and can be changed to any.
static void work_init(const stream_device_t *device, const stream_launch_t *launch,
                      const builtin_counts_t *counts, once_work_t *work)
{
    work->grid = (stream_grid_args_t){0};
    if (counts) work->grid.counts = *counts;
    stream_builtin_launch(device, STREAM_GRID, &work->grid, sizeof work->grid, &work->setter);
    work->target = launch ? *launch : work->setter;
    for (int i = 0; i < 3; i++) work->target.groups[i] = 1; // until the device says otherwise
}

static keel_status_t once_build(const stream_device_t *device, stream_once_t *once,
                                once_work_t *work)
{
    const stream_api_t *api = device->api;
    KEEL_TRY(api->graph_create(device->vendor, &once->graph));
    stream_place_t place = {.graph = once->graph};
    KEEL_TRY(api->graph_launch(device->vendor, &place, &work->target, &once->target));
    KEEL_TRY(api->graph_updatable(device->vendor, once->target, &once->updatable));
    work->grid.node = once->updatable;
    KEEL_TRY(api->graph_launch(device->vendor, &place, &work->setter, &once->setter));
    KEEL_TRY(api->graph_order(device->vendor, once->graph, once->setter, once->target));
    return api->graph_instantiate(device->vendor, once->graph, &once->exec);
}

static void once_destroy(stream_device_t *device, stream_once_t *once)
{
    stream_free(device, true, device->api->exec_destroy, once->exec);
    stream_free(device, true, device->api->graph_destroy, once->graph);
    mem_free(once);
    atomic_fetch_sub(&device->onces, 1);
}

static keel_status_t once_make(stream_device_t *device, once_work_t *work, stream_once_t **made)
{
    *made = mem_zalloc(sizeof **made);
    if (!*made) return status_no_memory();
    atomic_fetch_add(&device->onces, 1);
    if (work->target.function != work->setter.function) (*made)->special = work->target.function;
    keel_status_t status = once_build(device, *made, work);
    if (status) once_destroy(device, *made);
    return status;
}

static keel_status_t once_change(const stream_device_t *device, const stream_once_t *once,
                                 once_work_t *work)
{
    const stream_api_t *api = device->api;
    work->grid.node = once->updatable;
    KEEL_TRY(api->exec_set_launch(device->vendor, once->exec, once->target, &work->target));
    return api->exec_set_launch(device->vendor, once->exec, once->setter, &work->setter);
}

// One for the kernel, or if all are others', one of these; NULL: there are no more than so many.
static stream_once_t *spare_take(stream_device_t *device, uint32_t left, stream_function_h function)
{
    lock_enter(&device->lock);
    stream_once_t **at = &device->spares, *once = NULL;
    while (*at && (*at)->special && (*at)->special != function) at = &(*at)->next;
    if (!*at) at = &device->spares;
    if (device->spare_count > left) once = *at;
    if (once) *at = once->next;
    if (once) device->spare_count--;
    lock_leave(&device->lock);
    return once;
}

static void spare_put(stream_device_t *device, stream_once_t *once)
{
    lock_enter(&device->lock);
    once->next = device->spares;
    device->spares = once;
    device->spare_count++;
    lock_leave(&device->lock);
}

keel_status_t stream_onces_reserve(stream_device_t *device)
{
    stream_once_t *once;
    keel_status_t status = NULL;
    once_work_t work;
    if (atomic_load(&device->onces) >= ONCES) return NULL;
    work_init(device, NULL, NULL, &work);
    while (!status && atomic_load(&device->onces) < ONCES)
        if (!(status = once_make(device, &work, &once))) spare_put(device, once);
    if (!status) stream_blanks_make(device, 0);
    return status;
}

void stream_onces_forget(stream_device_t *device)
{
    stream_entered_t entered;
    stream_once_t *once, *all = NULL;
    once_work_t work;
    if (!stream_enter(device, &entered)) return;
    work_init(device, NULL, NULL, &work);
    for (; (once = spare_take(device, 0, NULL)); all = once) once->next = all;
    while ((once = all)) {
        all = once->next;
        keel_status_t status = once->used ? once_change(device, once, &work) : NULL;
        once->used = false;
        if (status || once->special)
            once_destroy(device, once);
        else
            spare_put(device, once);
        keel_status_release(status);
    }
    stream_leave(&entered);
}

void stream_onces_destroy(stream_device_t *device)
{
    for (stream_once_t *once; (once = spare_take(device, 0, NULL));) once_destroy(device, once);
}

// One that does the work; or NULL: that is put off.
static keel_status_t once_get(stream_run_t *run, once_work_t *work, stream_once_t **got)
{
    stream_queue_t *queue = stream_queue(run->base.queue);
    stream_device_t *device = stream_device(queue->base.device);
    for (int i = 0;; i++) {
        if (i > 1) clock_sleep(PAUSE_NS); // other queues have them
        uint32_t has = atomic_load(&queue->onces);
        *got = has < SHARE ? spare_take(device, has ? ONCES / 2 : 0, work->target.function) : NULL;
        bool suits = *got && (!(*got)->special || (*got)->special == work->target.function);
        if (suits) (*got)->used = true;
        keel_status_t status = suits ? once_change(device, *got, work) : NULL;
        if (suits && !status) return NULL;
        keel_status_release(status);
        bool later = stream_queue_puts_off(queue), refused = *got;
        if (refused) (later ? spare_put : once_destroy)(device, *got);
        // Some kernels are so special that one is made for them.
        if (refused && !later) return once_make(device, work, got);
        *got = NULL;
        if (later) return NULL;
        if (!atomic_load(&device->onces)) KEEL_TRY(stream_onces_reserve(device)); // not made ahead
        KEEL_TRY(stream_device_drain(device, queue->stream));
        stream_onces_end(run);
        stream_queue_poll(queue, true);
    }
}

keel_status_t stream_once_run(stream_run_t *run, const stream_launch_t *launch,
                              const builtin_counts_t *counts)
{
    stream_queue_t *queue = stream_queue(run->base.queue);
    stream_device_t *device = stream_device(queue->base.device);
    stream_once_t *once;
    once_work_t work;
    work_init(device, launch, counts, &work);
    KEEL_TRY(once_get(run, &work, &once));
    if (!once) return NULL;
    once->next = run->onces;
    run->onces = once;
    atomic_fetch_add(&queue->onces, 1);
    KEEL_TRY(device->api->exec_upload(device->vendor, once->exec, stream_queue_onto(queue)));
    return device->api->exec_run(device->vendor, once->exec, stream_queue_onto(queue));
}

void stream_onces_end(stream_run_t *run)
{
    stream_queue_t *queue = stream_queue(run->base.queue);
    for (stream_once_t *once; (once = run->onces); atomic_fetch_sub(&queue->onces, 1)) {
        run->onces = once->next;
        spare_put(stream_device(queue->base.device), once);
    }
}
