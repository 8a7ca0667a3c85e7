// SPDX-License-Identifier: Apache-2.0
// A dispatch that is not recorded, takes its grid from memory and cannot look there by itself: two
// nodes of a graph that is made on the spot, and kept until the run has ended.
#include "base/memory.h"
#include "base/status.h"
#include "drivers/stream/graph.h"

struct stream_once_t {
    stream_once_t *next;
    stream_graph_t graph;
    stream_exec_t exec;
};

static keel_status_t once_build(const stream_device_t *device, stream_once_t *once,
                                const stream_launch_t *launch, const stream_counts_args_t *counts)
{
    const stream_api_t *api = device->api;
    KEEL_TRY(api->graph_create(device->vendor, &once->graph));
    stream_place_t place = {.graph = once->graph};
    stream_launch_t target = *launch, setter;
    stream_node_t target_node, setter_node;
    stream_grid_args_t grid = {.counts = *counts};
    target.groups[0] = target.groups[1] = target.groups[2] = 1; // until the device says otherwise
    KEEL_TRY(api->graph_launch(device->vendor, &place, &target, &target_node));
    KEEL_TRY(api->graph_updatable(device->vendor, target_node, &grid.node));
    stream_builtin_launch(device, STREAM_GRID, &grid, sizeof grid, &setter);
    KEEL_TRY(api->graph_launch(device->vendor, &place, &setter, &setter_node));
    KEEL_TRY(api->graph_order(device->vendor, once->graph, setter_node, target_node));
    return api->graph_instantiate(device->vendor, once->graph, &once->exec);
}

keel_status_t stream_once_run(stream_run_t *run, const stream_launch_t *launch,
                              const stream_counts_args_t *counts)
{
    stream_queue_t *queue = stream_queue(run->base.queue);
    const stream_device_t *device = stream_device(queue->base.device);
    stream_once_t *once = mem_zalloc(sizeof *once);
    if (!once) return status_no_memory();
    once->next = run->onces;
    run->onces = once;
    KEEL_TRY(once_build(device, once, launch, counts));
    KEEL_TRY(device->api->exec_upload(device->vendor, once->exec, queue->stream));
    stream_queue_count(queue);
    return device->api->exec_run(device->vendor, once->exec, queue->stream);
}

void stream_onces_destroy(stream_device_t *device, stream_once_t *onces)
{
    stream_entered_t entered;
    bool vendor = onces && stream_enter(device, &entered);
    while (onces) {
        stream_once_t *once = onces;
        onces = once->next;
        if (vendor && once->exec) device->api->exec_destroy(device->vendor, once->exec);
        if (vendor && once->graph) device->api->graph_destroy(device->vendor, once->graph);
        mem_free(once);
    }
    if (vendor) stream_leave(&entered);
}
