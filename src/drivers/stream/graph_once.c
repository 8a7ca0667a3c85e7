// SPDX-License-Identifier: Apache-2.0
// A dispatch that is not recorded, takes its grid from memory and cannot look there by itself: two
// nodes of a graph, which is made on the spot. When the run has ended, and only then, for the
// device changes the graph as it runs, the next dispatch of the kernel may change and launch it
// again. To make one the vendor waits for the device now and then. So the queue's own thread does
// it, and with several on the stream rather waits until one of them comes back.
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "drivers/stream/graph.h"

struct stream_once_t {
    stream_once_t *next;
    stream_kernel_t *kernel; // borrowed: the run keeps the executable
    stream_graph_h graph;
    stream_exec_h exec; // NULL: it could not be made
    stream_node_h target, setter;
    uint64_t updatable; // what the device calls the target
};

// What its nodes do.
typedef struct once_work_t {
    stream_launch_t target, setter;
    stream_grid_args_t grid; // the arguments of the setter
} once_work_t;

static void work_init(const stream_device_t *device, const stream_launch_t *launch,
                      const stream_counts_args_t *counts, once_work_t *work)
{
    work->target = *launch;
    for (int i = 0; i < 3; i++) work->target.groups[i] = 1; // until the device says otherwise
    work->grid = (stream_grid_args_t){.counts = *counts};
    stream_builtin_launch(device, STREAM_GRID, &work->grid, sizeof work->grid, &work->setter);
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

static stream_once_t *spare_take(stream_kernel_t *kernel)
{
    stream_once_t *once = NULL;
    for (int i = 0; i < STREAM_SPARES && !once; i++)
        once = atomic_exchange(&kernel->spares[i], NULL);
    return once;
}

static bool spare_put(stream_once_t *once)
{
    for (int i = 0; i < STREAM_SPARES; i++) {
        stream_once_t *none = NULL;
        if (atomic_compare_exchange_strong(&once->kernel->spares[i], &none, once)) return true;
    }
    return false;
}

void stream_onces_destroy(stream_device_t *device, stream_once_t *onces)
{
    while (onces) {
        stream_once_t *once = onces;
        onces = once->next;
        stream_free(device, false, device->api->exec_destroy, once->exec);
        stream_free(device, false, device->api->graph_destroy, once->graph);
        mem_free(once);
    }
}

// A spare one, changed to this; NULL: there is none, or it cannot be changed.
static stream_once_t *once_reuse(stream_device_t *device, stream_kernel_t *kernel,
                                 once_work_t *work)
{
    const stream_api_t *api = device->api;
    stream_once_t *once = spare_take(kernel);
    if (!once) return NULL;
    work->grid.node = once->updatable;
    keel_status_t status =
        api->exec_set_launch(device->vendor, once->exec, once->target, &work->target);
    if (!status)
        status = api->exec_set_launch(device->vendor, once->exec, once->setter, &work->setter);
    if (!status) return once;
    keel_status_release(status); // if the device is lost, the next call says so
    stream_onces_destroy(device, once);
    return NULL;
}

// The next one is behind the queue's next event.
static void once_mark(stream_queue_t *queue)
{
    queue->once_marks[queue->onces++ % STREAM_SPARES] = queue->recorded + 1;
}

// Waits until fewer are on the stream than a kernel keeps, but for those of the run itself.
static void onces_await(stream_queue_t *queue)
{
    enum { FIRST_NS = 50000, LAST_NS = 2000000 };
    stream_device_t *device = stream_device(queue->base.device);
    uint64_t oldest = queue->once_marks[queue->onces % STREAM_SPARES];
    for (uint64_t pause = FIRST_NS; oldest <= queue->recorded && !stream_device_is_lost(device);
         pause = pause < LAST_NS ? pause * 2 : pause) {
        stream_queue_poll(queue, false);
        if (atomic_load(&queue->over) >= oldest) return;
        clock_sleep(pause);
    }
}

bool stream_once_puts_off(stream_queue_t *queue)
{
    if (stream_queue_puts_off(queue)) return true;
    onces_await(queue);
    once_mark(queue);
    return false;
}

keel_status_t stream_once_run(stream_run_t *run, stream_kernel_t *kernel,
                              const stream_launch_t *launch, const stream_counts_args_t *counts)
{
    stream_queue_t *queue = stream_queue(run->base.queue);
    stream_device_t *device = stream_device(queue->base.device);
    once_work_t work;
    work_init(device, launch, counts, &work);
    stream_once_t *once = once_reuse(device, kernel, &work);
    if (!once && stream_once_puts_off(queue)) return NULL;
    if (once)
        once_mark(queue);
    else
        once = once_reuse(device, kernel, &work); // it may have waited for one
    bool fresh = !once;
    if (fresh) once = mem_zalloc(sizeof *once);
    if (!once) return status_no_memory();
    once->kernel = kernel;
    once->next = run->onces;
    run->onces = once;
    if (fresh) KEEL_TRY(once_build(device, once, &work));
    KEEL_TRY(device->api->exec_upload(device->vendor, once->exec, stream_queue_onto(queue)));
    return device->api->exec_run(device->vendor, once->exec, stream_queue_onto(queue));
}

void stream_onces_end(stream_run_t *run)
{
    // What a run that failed has left on the stream, nobody knows.
    bool good = !atomic_load(&run->failure);
    for (stream_once_t *once = run->onces, *next; once; once = next) {
        next = once->next;
        once->next = NULL;
        if (!good || !spare_put(once))
            stream_onces_destroy(stream_device(run->base.queue->device), once);
    }
    run->onces = NULL;
}
