// SPDX-License-Identifier: Apache-2.0
// Launches. A graph of one kernel costs the vendor half of what a launch does, as long as nothing
// changes but arguments (docs/stream.md has the figures). So launches that come again on a queue
// get such a graph, and what comes once, or in turns with what has its place, is launched. To make
// a graph the vendor may wait for the device, while nobody launches anything: they are made with
// the device, blank, and change hands.
#include "drivers/stream/stream.h"

_Static_assert(STREAM_SHAPES == 16, "four bits of a hash say where");

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

// A launch that names nobody's kernel.
static void blank_launch(const stream_device_t *device, stream_launch_t *launch)
{
    static const stream_timestamp_args_t nowhere;
    stream_builtin_launch(device, STREAM_TIMESTAMP, &nowhere, sizeof nowhere, launch);
}

keel_status_t stream_blanks_make(stream_device_t *device)
{
    stream_blanks_t *blanks = &device->blanks;
    stream_launch_t launch;
    blank_launch(device, &launch);
    KEEL_TRY(device->api->graph_create(device->vendor, &blanks->graph));
    stream_place_t place = {.graph = blanks->graph};
    KEEL_TRY(device->api->graph_launch(device->vendor, &place, &launch, &blanks->node));
    for (; blanks->count < STREAM_BLANKS; blanks->count++)
        KEEL_TRY(device->api->graph_instantiate(device->vendor, blanks->graph,
                                                &blanks->execs[blanks->count]));
    stream_blanks_room(device);
    return NULL;
}

void stream_blanks_room(stream_device_t *device)
{
    const stream_api_t *api = device->api;
    stream_exec_h execs[STREAM_ROOM];
    uint32_t count = 0;
    keel_status_t status = NULL;
    while (!status && device->blanks.graph && count < STREAM_ROOM)
        if (!(status = api->graph_instantiate(device->vendor, device->blanks.graph, &execs[count])))
            count++;
    keel_status_release(status); // then there is less
    while (count) api->exec_destroy(device->vendor, execs[--count]);
}

void stream_blanks_destroy(stream_device_t *device)
{
    stream_blanks_t *blanks = &device->blanks;
    while (blanks->count) device->api->exec_destroy(device->vendor, blanks->execs[--blanks->count]);
    if (blanks->graph) device->api->graph_destroy(device->vendor, blanks->graph);
}

static stream_exec_h blank_take(stream_device_t *device)
{
    stream_blanks_t *blanks = &device->blanks;
    lock_enter(&device->lock);
    stream_exec_h exec = blanks->count ? blanks->execs[--blanks->count] : NULL;
    lock_leave(&device->lock);
    return exec;
}

// Whether its graph does the launch now. One that the vendor refuses to change is gone.
static bool shape_set(stream_device_t *device, stream_shape_t *shape, const stream_launch_t *launch)
{
    if (!shape->exec) return false;
    keel_status_t status =
        device->api->exec_set_launch(device->vendor, shape->exec, device->blanks.node, launch);
    if (!status) return true;
    keel_status_release(status);
    device->api->exec_destroy(device->vendor, shape->exec);
    shape->exec = NULL;
    return false;
}

// Code may go, and other code come to where it was: the queue's graphs name none from here on. They
// stay the queue's, and may be on their way: on another queue they would wait for that.
static void shapes_clear(stream_queue_t *queue)
{
    stream_device_t *device = stream_device(queue->base.device);
    stream_launch_t launch;
    blank_launch(device, &launch);
    for (stream_shape_t *shape = queue->shapes; shape < queue->shapes + STREAM_SHAPES; shape++) {
        (void)shape_set(device, shape, &launch);
        shape->hash = shape->last = 0;
    }
}

void stream_shapes_return(stream_queue_t *queue)
{
    stream_blanks_t *blanks = &stream_device(queue->base.device)->blanks;
    shapes_clear(queue);
    lock_enter(&stream_device(queue->base.device)->lock);
    for (stream_shape_t *shape = queue->shapes; shape < queue->shapes + STREAM_SHAPES; shape++)
        if (shape->exec) blanks->execs[blanks->count++] = shape->exec;
    lock_leave(&stream_device(queue->base.device)->lock);
}

// A graph that does the launch; NULL: there is none for it.
static stream_exec_h shape_find(stream_queue_t *queue, const stream_launch_t *launch)
{
    stream_device_t *device = stream_device(queue->base.device);
    uint64_t hash = launch_hash(launch);
    stream_shape_t *shape = &queue->shapes[hash >> 60]; // the lower bits say less
    bool suits = shape->hash == hash, again = shape->last == hash;
    shape->last = hash;
    if (!suits && !again) return NULL;
    shape->hash = hash;
    if (!suits && !shape->exec) shape->exec = blank_take(device);
    return shape_set(device, shape, launch) ? shape->exec : NULL;
}

keel_status_t stream_launch(stream_queue_t *queue, const stream_launch_t *launch)
{
    stream_device_t *device = stream_device(queue->base.device);
    // relaxed: whoever has a kernel where another was has seen that one go.
    uint32_t unloads = atomic_load_explicit(&device->unloads, memory_order_relaxed);
    if (queue->unloads != unloads) shapes_clear(queue);
    queue->unloads = unloads;
    stream_exec_h exec = device->blanks.graph ? shape_find(queue, launch) : NULL;
    stream_h stream = stream_queue_onto(queue);
    if (exec) return device->api->exec_run(device->vendor, exec, stream);
    return device->api->launch(device->vendor, stream, launch);
}
