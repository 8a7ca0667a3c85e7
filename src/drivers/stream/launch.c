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
    static const builtin_timestamp_t nowhere;
    stream_builtin_launch(device, STREAM_TIMESTAMP, &nowhere, sizeof nowhere, launch);
}

// From a graph of its own: the vendor locks none, and queues change theirs at the same time.
static keel_status_t blank_make(const stream_device_t *device, stream_blank_t *blank)
{
    const stream_api_t *api = device->api;
    stream_launch_t launch;
    blank_launch(device, &launch);
    KEEL_TRY(api->graph_create(device->vendor, &blank->graph));
    stream_place_t place = {.graph = blank->graph};
    KEEL_TRY(api->graph_launch(device->vendor, &place, &launch, &blank->node));
    return api->graph_instantiate(device->vendor, blank->graph, &blank->exec);
}

static void blank_destroy(const stream_device_t *device, stream_blank_t *blank)
{
    if (blank->exec) device->api->exec_destroy(device->vendor, blank->exec);
    if (blank->graph) device->api->graph_destroy(device->vendor, blank->graph);
    *blank = (stream_blank_t){0};
}

void stream_blanks_make(stream_device_t *device, uint32_t kept)
{
    stream_blank_t list[STREAM_BLANKS + STREAM_ROOM] = {0};
    uint32_t room = device->limits.quirks.graph_room, count = 0;
    bool graphs = stream_device_has(device, STREAM_GRAPHS) && !device->options.serial &&
                  device->options.commands != STREAM_COMMANDS_STREAM;
    if (kept > STREAM_BLANKS) kept = STREAM_BLANKS;
    if (room > STREAM_ROOM) room = STREAM_ROOM;
    uint32_t most = graphs ? kept + room : 0;
    device->blanks.used |= graphs && kept;
    keel_status_t status = NULL;
    while (count < most && !(status = blank_make(device, &list[count]))) count++;
    if (status) blank_destroy(device, &list[count]);
    keel_status_release(status); // launches do without
    while (count > kept) blank_destroy(device, &list[--count]);
    while (count) device->blanks.list[device->blanks.count++] = list[--count];
}

void stream_blanks_destroy(stream_device_t *device)
{
    while (device->blanks.count)
        blank_destroy(device, &device->blanks.list[--device->blanks.count]);
}

// Leaves it without a graph if there is none.
static void blank_take(stream_device_t *device, stream_blank_t *blank)
{
    // relaxed: most often there is none left, or there are enough.
    if (!atomic_load_explicit(&device->blanks.count, memory_order_relaxed)) return;
    lock_enter(&device->lock);
    if (device->blanks.count) *blank = device->blanks.list[--device->blanks.count];
    lock_leave(&device->lock);
}

// Whether it does the launch now. One that the vendor refuses to change stays what it was.
static bool blank_set(const stream_device_t *device, const stream_blank_t *blank,
                      const stream_launch_t *launch)
{
    keel_status_t status =
        device->api->exec_set_launch(device->vendor, blank->exec, blank->node, launch);
    keel_status_release(status);
    return !status;
}

// Code may go, and other code come to where it was: the queue's graphs name none from here on. They
// stay the queue's, and may be on their way: on another queue they would wait for that.
static void shapes_clear(stream_queue_t *queue)
{
    stream_device_t *device = stream_device(queue->base.device);
    stream_launch_t launch;
    blank_launch(device, &launch);
    for (stream_shape_t *shape = queue->shapes; shape < queue->shapes + STREAM_SHAPES; shape++) {
        if (shape->blank.exec && !blank_set(device, &shape->blank, &launch))
            blank_destroy(device, &shape->blank);
        shape->hash = shape->last = 0;
    }
}

void stream_shapes_return(stream_queue_t *queue)
{
    stream_device_t *device = stream_device(queue->base.device);
    shapes_clear(queue);
    lock_enter(&device->lock);
    for (stream_shape_t *shape = queue->shapes; shape < queue->shapes + STREAM_SHAPES; shape++)
        if (shape->blank.exec) device->blanks.list[device->blanks.count++] = shape->blank;
    lock_leave(&device->lock);
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
    shape->refused &= suits;
    shape->hash = hash;
    if (!shape->blank.exec) blank_take(device, &shape->blank);
    if (!shape->blank.exec || shape->refused) return NULL;
    shape->refused = !blank_set(device, &shape->blank, launch);
    return shape->refused ? NULL : shape->blank.exec;
}

keel_status_t stream_launch(stream_queue_t *queue, const stream_launch_t *launch)
{
    stream_device_t *device = stream_device(queue->base.device);
    // relaxed: whoever has a kernel where another was has seen that one go.
    uint32_t unloads = atomic_load_explicit(&device->unloads, memory_order_relaxed);
    if (queue->unloads != unloads) shapes_clear(queue);
    queue->unloads = unloads;
    stream_exec_h exec = device->blanks.used ? shape_find(queue, launch) : NULL;
    stream_h stream = stream_queue_onto(queue);
    if (exec) return device->api->exec_run(device->vendor, exec, stream);
    return device->api->launch(device->vendor, stream, launch);
}
