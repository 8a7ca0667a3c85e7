// SPDX-License-Identifier: Apache-2.0
// Launches. With some vendors a graph of one kernel costs half of what a launch does, as long as
// nothing changes but arguments (quirk launch_graphs). There, launches that come again on a queue
// get such a graph. A kernel that runs only once, or that alternates with the one that has its
// slot, is launched plainly. To make a graph the vendor may wait for the device, and no thread can
// launch meanwhile: so the graphs are made with the device, and change hands.
#include "drivers/stream/run/launch.h"
#include "base/memory.h"
#include "base/status.h"

_Static_assert(LAUNCH_SLOTS == 16, "four bits of a hash say which");

// Of all but the arguments. If two launches are taken for one, that costs time and nothing else:
// whatever a graph did before, all of it is set.
static uint64_t launch_hash(const stream_launch_t *launch)
{
    const uint32_t *groups = launch->groups, *size = launch->group_size;
    uint64_t hash = (uintptr_t)launch->function, prime = 0x9e3779b97f4a7c15;
    hash = (hash ^ groups[0] ^ (uint64_t)groups[1] << 32) * prime;
    hash = (hash ^ groups[2] ^ (uint64_t)size[0] << 32) * prime;
    hash = (hash ^ size[1] ^ (uint64_t)size[2] << 32) * prime;
    return (hash ^ launch->local_memory) * prime;
}

// A launch that names no kernel of an executable.
static void idle_launch(const stream_device_t *device, stream_launch_t *launch)
{
    static const builtin_timestamp_t nowhere;
    stream_builtin_launch(device, STREAM_TIMESTAMP, &nowhere, sizeof nowhere, launch);
}

// From a graph of its own: the vendor locks none, and queues change theirs at the same time.
static keel_status_t graph_make(const stream_device_t *device, launch_graph_t *graph)
{
    const stream_api_t *api = device->api;
    stream_launch_t launch;
    idle_launch(device, &launch);
    KEEL_TRY(api->graph_create(device->vendor, &graph->graph));
    stream_place_t place = {.graph = graph->graph};
    KEEL_TRY(api->graph_launch(device->vendor, &place, &launch, &graph->node));
    return api->graph_instantiate(device->vendor, graph->graph, &graph->exec);
}

static void graph_destroy(const stream_device_t *device, launch_graph_t *graph)
{
    if (graph->exec) device->api->exec_destroy(device->vendor, graph->exec);
    if (graph->graph) device->api->graph_destroy(device->vendor, graph->graph);
    *graph = (launch_graph_t){0};
}

// Makes so many, and destroys all but the first `kept`. Without memory there are fewer.
static uint32_t graphs_make(const stream_device_t *device, launch_graph_t *list, uint32_t count,
                            uint32_t kept)
{
    uint32_t made = 0;
    keel_status_t status = NULL;
    while (made < count && !(status = graph_make(device, &list[made]))) made++;
    if (status) graph_destroy(device, &list[made]);
    keel_status_release(status); // launches do without
    while (made > kept) graph_destroy(device, &list[--made]);
    return made;
}

// How many of either the device is to have.
static uint32_t graphs_wanted(const stream_device_t *device, uint32_t quirk, uint32_t most)
{
    bool graphs = stream_device_has(device, STREAM_GRAPHS) && !device->options.serial &&
                  device->options.commands != STREAM_COMMANDS_STREAM;
    return !graphs ? 0 : quirk < most ? quirk : most;
}

keel_status_t stream_launch_pool_make(stream_device_t *device)
{
    launch_graph_t list[LAUNCH_GRAPHS + LAUNCH_ROOM] = {0};
    uint32_t kept = graphs_wanted(device, device->limits.quirks.launch_graphs, LAUNCH_GRAPHS);
    uint32_t room = graphs_wanted(device, device->limits.quirks.graph_room, LAUNCH_ROOM);
    uint32_t made = graphs_make(device, list, kept + room, kept);
    if (!kept) return NULL;
    device->launches = mem_zalloc(sizeof *device->launches);
    if (!device->launches) {
        while (made) graph_destroy(device, &list[--made]);
        return status_no_memory();
    }
    while (made) device->launches->list[device->launches->count++] = list[--made];
    return NULL;
}

void stream_graph_room_make(stream_device_t *device)
{
    launch_graph_t list[LAUNCH_ROOM] = {0};
    graphs_make(device, list, graphs_wanted(device, device->limits.quirks.graph_room, LAUNCH_ROOM),
                0);
}

bool stream_launches_are_graphs(const stream_device_t *device)
{
    return device->launches;
}

void stream_launch_pool_destroy(stream_device_t *device)
{
    struct stream_launch_pool_t *pool = device->launches;
    stream_entered_t entered;
    if (pool && stream_enter(device, &entered)) {
        while (pool->count) graph_destroy(device, &pool->list[--pool->count]);
        stream_leave(&entered);
    }
    mem_free(pool);
}

keel_status_t stream_launch_slots_make(stream_queue_t *queue)
{
    if (!stream_queue_device(queue)->launches) return NULL;
    queue->slots = mem_zalloc(sizeof *queue->slots);
    return queue->slots ? NULL : status_no_memory();
}

// Leaves it without a graph if there is none.
static void graph_take(stream_device_t *device, launch_graph_t *graph)
{
    struct stream_launch_pool_t *pool = device->launches;
    // relaxed: most often there is none left, or there are enough.
    if (!atomic_load_explicit(&pool->count, memory_order_relaxed)) return;
    lock_enter(&device->lock);
    if (pool->count) *graph = pool->list[--pool->count];
    lock_leave(&device->lock);
}

// Whether it does the launch now. One that the vendor refuses to change stays what it was.
static bool graph_set(const stream_device_t *device, const launch_graph_t *graph,
                      const stream_launch_t *launch)
{
    keel_status_t status =
        device->api->exec_set_launch(device->vendor, graph->exec, graph->node, launch);
    keel_status_release(status);
    return !status;
}

// Code may go, and other code come to where it was: the queue's graphs name none from here on. They
// stay the queue's, and may be on their way: on another queue they would wait for that.
static void slots_clear(stream_queue_t *queue)
{
    stream_device_t *device = stream_queue_device(queue);
    stream_launch_t launch;
    idle_launch(device, &launch);
    for (launch_slot_t *slot = queue->slots->list; slot < queue->slots->list + LAUNCH_SLOTS;
         slot++) {
        if (slot->graph.exec && !graph_set(device, &slot->graph, &launch))
            graph_destroy(device, &slot->graph);
        slot->hash = slot->last = 0;
    }
}

void stream_launch_slots_free(stream_queue_t *queue)
{
    stream_device_t *device = stream_queue_device(queue);
    struct stream_launch_pool_t *pool = device->launches;
    stream_entered_t entered;
    if (!queue->slots) return;
    bool vendor = stream_enter(device, &entered);
    if (vendor) slots_clear(queue);
    lock_enter(&device->lock);
    for (launch_slot_t *slot = queue->slots->list; slot < queue->slots->list + LAUNCH_SLOTS; slot++)
        if (vendor && slot->graph.exec) pool->list[pool->count++] = slot->graph;
    lock_leave(&device->lock);
    if (vendor) stream_leave(&entered);
    mem_free(queue->slots);
}

// A graph that does the launch; NULL: there is none for it.
static stream_exec_h slot_find(stream_queue_t *queue, const stream_launch_t *launch)
{
    stream_device_t *device = stream_queue_device(queue);
    uint64_t hash = launch_hash(launch);
    launch_slot_t *slot = &queue->slots->list[hash >> 60]; // the lower bits say less
    bool suits = slot->hash == hash, again = slot->last == hash;
    slot->last = hash;
    if (!suits && !again) return NULL;
    slot->refused &= suits;
    slot->hash = hash;
    if (!slot->graph.exec) graph_take(device, &slot->graph);
    if (!slot->graph.exec || slot->refused) return NULL;
    slot->refused = !graph_set(device, &slot->graph, launch);
    return slot->refused ? NULL : slot->graph.exec;
}

// The graph for the launch; NULL: there is none, and it is launched plainly.
static stream_exec_h graph_find(stream_queue_t *queue, const stream_launch_t *launch)
{
    const stream_device_t *device = stream_queue_device(queue);
    // relaxed: a thread that has a kernel where another one was has seen that one go.
    uint32_t unloads = atomic_load_explicit(&device->unloads, memory_order_relaxed);
    if (queue->slots->unloads != unloads) slots_clear(queue);
    queue->slots->unloads = unloads;
    return slot_find(queue, launch);
}

keel_status_t stream_launch(stream_queue_t *queue, const stream_launch_t *launch)
{
    const stream_device_t *device = stream_queue_device(queue);
    stream_exec_h exec = queue->slots ? graph_find(queue, launch) : NULL;
    stream_h stream = stream_queue_onto(queue);
    if (exec) return device->api->exec_run(device->vendor, exec, stream);
    return device->api->launch(device->vendor, stream, launch);
}
