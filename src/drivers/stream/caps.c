// SPDX-License-Identifier: Apache-2.0
// What a device can do.
#include "drivers/stream/driver.h"

// What the host does in place of the device: files and calls always, the rest where the vendor
// lacks a feature. Without graphs the order of a stream stands for events.
static uint32_t caps_emulated(const stream_device_t *device)
{
    uint32_t bits = KEEL_CAP_FILES | KEEL_CAP_HOST_CALLS;
    if (!stream_device_has(device, STREAM_POOLS)) bits |= KEEL_CAP_QUEUE_ALLOCA;
    if (!stream_device_has(device, STREAM_GRAPHS)) bits |= KEEL_CAP_EVENTS;
    if (!stream_device_has(device, STREAM_CONDITIONS)) bits |= KEEL_CAP_BRANCHES;
    if (!stream_device_has(device, STREAM_UPDATABLE)) bits |= KEEL_CAP_DYNAMIC_COUNTS;
    return bits;
}

// The most urgent level is the core's own (queue/watcher.c), if there are several. A queue without
// a wish gets the vendor's usual level, which is 0, if the vendor has less urgent ones; else a
// level in the middle, so that others can be less urgent.
static void priorities_fill(const stream_limits_t *limits, keel_caps_t *caps)
{
    int32_t levels = limits->least - limits->greatest;
    if (levels) levels--;
    int32_t below = limits->least > 0 && limits->greatest <= 0 ? limits->least : levels / 2;
    if (below > levels) below = levels;
    caps->min_priority = -below;
    caps->max_priority = levels - below;
}

void stream_caps_fill(stream_device_t *device)
{
    const stream_limits_t *limits = &device->limits;
    uint32_t local = KEEL_MEMORY_DEVICE_LOCAL | KEEL_MEMORY_DEVICE_VISIBLE;
    uint32_t host = KEEL_MEMORY_HOST_VISIBLE | KEEL_MEMORY_HOST_COHERENT | KEEL_MEMORY_HOST_CACHED;
    keel_caps_t *caps = &device->base.caps;
    device_dlpack(&limits->dlpack, device->dlpack);
    *caps = (keel_caps_t){
        .bits = KEEL_CAP_QUEUE_ALLOCA | KEEL_CAP_DYNAMIC_COUNTS | KEEL_CAP_BRANCHES |
                KEEL_CAP_EVENTS | KEEL_CAP_TIMESTAMPS | KEEL_CAP_RAW_ARGUMENTS | KEEL_CAP_FILES |
                KEEL_CAP_HOST_CALLS | KEEL_CAP_IMPORT_HOST | KEEL_CAP_DLPACK | KEEL_CAP_GROUP_SIZE |
                KEEL_CAP_EXECUTES | KEEL_CAP_COPY_ACROSS,
        .queue_families = 1u << KEEL_QUEUE_COMPUTE | 1u << KEEL_QUEUE_TRANSFER,
        .nodes = 1,
        .workers = limits->processors,
        .max_bindings = STREAM_MAX_BINDINGS,
        .max_slots = 1024,
        .max_constants = STREAM_MAX_CONSTANTS,
        .max_arguments = limits->max_arguments,
        .max_group_size = limits->max_group_size,
        .max_group_sizes = {limits->max_group_sizes[0], limits->max_group_sizes[1],
                            limits->max_group_sizes[2]},
        .subgroup_size = limits->subgroup_size,
        .max_local_memory = limits->max_local_memory,
        .max_groups = UINT32_MAX,
        .max_group_counts = {limits->max_group_counts[0], limits->max_group_counts[1],
                             limits->max_group_counts[2]},
        .max_buffer_size = limits->memory,
        .buffer_alignment = STREAM_ALIGNMENT,
        .max_commands = 1u << 24,
        .max_depth = STREAM_MAX_DEPTH,
        .memory_types = {local, KEEL_MEMORY_DEVICE_VISIBLE | host,
                         stream_device_has(device, STREAM_MANAGED) ? local | host : 0},
        .dlpack = device->dlpack,
    };
    priorities_fill(limits, caps);
    if (stream_device_has(device, STREAM_SHARED)) caps->bits |= KEEL_CAP_EXPORT_FD;
    if (stream_device_has(device, STREAM_OUTSIDE)) caps->bits |= KEEL_CAP_IMPORT_SEMAPHORE;
    if (limits->natives.stream) caps->bits |= KEEL_CAP_NATIVE;
    caps->native = caps->bits & ~caps_emulated(device);
}
