// SPDX-License-Identifier: Apache-2.0
// Finding and opening devices.
#include <keel/driver/driver.h>

#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "drivers/metal/encode/encode.h"
#include "drivers/metal/executable/module.h"
#include "drivers/metal/memory/memory.h"
#include "drivers/metal/metal.h"
#include "drivers/metal/queue/queue.h"
#include "kit/gpus.h"
#include "kit/object.h"
#include "kit/option.h"

typedef struct metal_options_t {
    const char *library; // NULL: where the system keeps it
    uint32_t residency;  // 1: by residency sets
    const char *cross;   // SPIRV-Cross; NULL: the same
    uint32_t capture;    // 1: queues have capture scopes
    uint32_t indirect;   // 1: recordings are replayed by indirect commands, where Metal has these
} metal_options_t;

// The device of that number, retained; NULL: there is none. Within a pool.
static id device_at(const metal_api_t *api, unsigned long ordinal)
{
    if (!api->MTLCopyAllDevices) return ordinal ? NULL : api->MTLCreateSystemDefaultDevice();
    id all = api->MTLCopyAllDevices();
    id device = ordinal < mtl_count(api, all) ? mtl_retain(api, mtl_at(api, all, ordinal)) : NULL;
    mtl_release(api, all);
    return device;
}

static keel_status_t gpu_count(const void *library, int *count)
{
    const metal_api_t *api = library;
    void *pool = metal_enter(api);
    id (*found)(void) = api->MTLCopyAllDevices;
    id all = found ? found() : api->MTLCreateSystemDefaultDevice();
    *count = found ? (int)mtl_count(api, all) : all != NULL;
    mtl_release(api, all);
    metal_leave(api, pool);
    return NULL;
}

static void copy_text(const metal_api_t *api, id string, char *out, size_t size)
{
    const char *text = mtl_utf8(api, string);
    snprintf(out, size, "%s", text ? text : "");
}

static keel_status_t gpu_describe(const void *library, int ordinal, char name[GPU_TEXT],
                                  uint64_t *memory)
{
    const metal_api_t *api = library;
    void *pool = metal_enter(api);
    id device = device_at(api, (unsigned long)ordinal);
    copy_text(api, mtl_name(api, device), name, GPU_TEXT);
    *memory = mtl_working_set_size(api, device);
    mtl_release(api, device);
    metal_leave(api, pool);
    return NULL;
}

static const gpus_t gpus = {"metal", gpu_count, gpu_describe, NULL};

// By number: Metal tells neither a UUID nor an address.
static keel_status_t device_find(const metal_api_t *api, const char *which, int *ordinal)
{
    int count = 0;
    KEEL_TRY(gpu_count(api, &count));
    if (!count) return KEEL_ERROR(KEEL_NOT_FOUND, "Metal has no device here");
    bool is_number = strlen(which) < 6 && !which[strspn(which, "0123456789")];
    *ordinal = is_number ? atoi(which) : count; // nothing at all is 0
    if (*ordinal < count) return NULL;
    return KEEL_ERROR(KEEL_NOT_FOUND, "there is no metal://%s; there are 0 to %d", which,
                      count - 1);
}

static keel_status_t metal_list(keel_device_listing_t *devices, size_t capacity, size_t *count)
{
    const metal_api_t *api = NULL;
    keel_status_t opened = metal_open(NULL, &api);
    return gpus_list(&gpus, opened, api, devices, capacity, count);
}

// All submissions have ended, but the last handlers may still be on their way out.
static void metal_device_close(keel_device_t *device)
{
    metal_device_t *d = metal_device(device);
    void *pool = metal_enter(d->api);
    metal_listening_stop(d);
    runs_stop(&d->runs);
    metal_clock_trace(d);
    metal_demand_close();
    metal_slots_close(d);
    metal_samples_release(d);
    metal_residency_release(d);
    metal_builtins_release(d);
    mtl_release(d->api, d->fetches);
    mtl_release(d->api, d->stops.queue);
    mtl_release(d->api, d->device);
    metal_leave(d->api, pool);
}

static void metal_device_destroy(keel_device_t *device)
{
    metal_slots_free(metal_device(device));
    runs_free(&metal_device(device)->runs);
    keel_status_release(atomic_load(&metal_device(device)->failed));
    mem_free(device);
}

static void metal_device_memory(keel_device_t *device, keel_memory_stats_t *stats)
{
    metal_device_t *d = metal_device(device);
    void *pool = metal_enter(d->api);
    uint64_t taken = mtl_allocated_size(d->api, d->device); // by all of this process
    stats->total = mtl_working_set_size(d->api, d->device);
    stats->budget = taken < stats->total ? stats->total - taken : 0;
    metal_leave(d->api, pool);
}

// Who asks for one may ask for events, too.
static bool metal_device_native(keel_device_t *device, keel_queue_t *queue, keel_native_t kind,
                                uint64_t *handle)
{
    metal_device_t *d = metal_device(device);
    if (kind != (queue ? KEEL_NATIVE_METAL_QUEUE : KEEL_NATIVE_METAL_DEVICE)) return false;
    *handle = (uintptr_t)(queue ? metal_queue(queue)->queue : d->device);
    atomic_store(&d->promises.native, true);
    return true;
}

static const keel_device_ops_t metal_ops = {
    .device_close = metal_device_close,
    .device_destroy = metal_device_destroy,
    .device_memory = metal_device_memory,
    .device_peers = metal_device_peers,
    .device_clock = metal_device_clock,
    .device_native = metal_device_native,
    .queue_create = metal_queue_create,
    .queue_destroy = metal_queue_destroy,
    .queue_submit = metal_queue_submit,
    .queue_cancel = metal_queue_cancel,
    .semaphore_import = metal_semaphore_import,
    .buffer_alloc = metal_buffer_alloc,
    .buffer_free = metal_buffer_free,
    .buffer_import = metal_buffer_import,
    .buffer_forget = metal_buffer_forget,
    .buffer_object = metal_buffer_object,
    .buffer_export = metal_buffer_export,
    .buffer_flush = metal_buffer_flush,
    .buffer_invalidate = metal_buffer_invalidate,
    .recording_prepare = metal_recording_prepare,
    .recording_discard = metal_recording_discard,
    .executable_rank = metal_executable_rank,
    .executable_load = metal_executable_load,
    .executable_unload = metal_executable_unload,
    .executable_global = metal_executable_global,
    .executable_write = metal_executable_write,
    KEEL_SLABS_OPS,
};

static const keel_caps_t fixed_caps = {
    .bits = KEEL_CAP_QUEUE_ALLOCA | KEEL_CAP_BRANCHES | KEEL_CAP_EVENTS | KEEL_CAP_TIMESTAMPS |
            KEEL_CAP_FILES | KEEL_CAP_HOST_CALLS | KEEL_CAP_IMPORT_HOST | KEEL_CAP_EXECUTES |
            KEEL_CAP_DYNAMIC_COUNTS | KEEL_CAP_RAW_ARGUMENTS | KEEL_CAP_GROUP_SIZE |
            KEEL_CAP_COPY_ACROSS | KEEL_CAP_NATIVE | KEEL_CAP_DLPACK | KEEL_CAP_IMPORT_SEMAPHORE,
    .native = KEEL_CAP_IMPORT_HOST | KEEL_CAP_EXECUTES | KEEL_CAP_DYNAMIC_COUNTS |
              KEEL_CAP_RAW_ARGUMENTS | KEEL_CAP_GROUP_SIZE | KEEL_CAP_COPY_ACROSS |
              KEEL_CAP_NATIVE | KEEL_CAP_DLPACK,
    .queue_families = 1u << KEEL_QUEUE_COMPUTE | 1u << KEEL_QUEUE_TRANSFER,
    .nodes = 1,
    .workers = 1,
    .max_bindings = METAL_BINDINGS,
    .max_slots = 64,
    .max_constants = METAL_CONSTANTS,
    .max_arguments = METAL_CONSTANTS,
    .max_groups = UINT32_MAX,
    .max_group_counts = {UINT32_MAX, UINT32_MAX, UINT32_MAX},
    .buffer_alignment = 256,
    .max_commands = 1u << 20,
    .max_depth = RUN_MAX_DEPTH,
    .memory_types = {KEEL_MEMORY_DEVICE_LOCAL | KEEL_MEMORY_DEVICE_VISIBLE |
                     KEEL_MEMORY_HOST_VISIBLE | KEEL_MEMORY_HOST_COHERENT |
                     KEEL_MEMORY_HOST_CACHED},
};

static void memory_types_read(metal_device_t *device)
{
    const uint32_t local = KEEL_MEMORY_DEVICE_LOCAL | KEEL_MEMORY_DEVICE_VISIBLE;
    const uint32_t host = KEEL_MEMORY_HOST_VISIBLE | KEEL_MEMORY_HOST_CACHED;
    uint32_t *types = device->base.caps.memory_types;
    if (!device->discrete) {
        device->base.caps.bits |= KEEL_CAP_EXPORT_FD;
        device->base.caps.native |= KEEL_CAP_EXPORT_FD;
        return;
    }
    device->ops.buffer_export = NULL; // what lies in a GPU's own memory has no descriptor
    types[0] = local;
    types[METAL_TYPE_SHARED] = KEEL_MEMORY_DEVICE_VISIBLE | host | KEEL_MEMORY_HOST_COHERENT;
    types[2] = local | host;
}

static void caps_read(metal_device_t *device)
{
    const metal_api_t *api = device->api;
    keel_caps_t *caps = &device->base.caps;
    metal_size_t threads = mtl_max_threads(api, device->device);
    *caps = fixed_caps;
    caps->dlpack = device->places;
    memory_types_read(device);
    caps->max_group_size = (uint32_t)threads.width;
    caps->max_group_sizes[0] = (uint32_t)threads.width;
    caps->max_group_sizes[1] = (uint32_t)threads.height;
    caps->max_group_sizes[2] = (uint32_t)threads.depth;
    caps->max_local_memory = (uint32_t)mtl_max_group_memory(api, device->device);
    caps->max_buffer_size = mtl_max_buffer_length(api, device->device);
    caps->subgroup_size = (uint32_t)mtl_pipeline_width(api, device->builtins[0]);
    copy_text(api, mtl_name(api, device->device), device->base.info.hardware,
              sizeof device->base.info.hardware);
    snprintf(device->base.info.vendor, sizeof device->base.info.vendor, "Apple");
    snprintf(device->base.info.api, sizeof device->base.info.api, "Metal 3");
    snprintf(device->base.info.target, sizeof device->base.info.target, "msl");
}

// A message that an object does not know would end the process, so a buffer is asked first.
static keel_status_t addresses_check(const metal_device_t *device)
{
    const metal_api_t *api = device->api;
    id probe = mtl_new_buffer(api, device->device, METAL_WORD, METAL_SHARED | METAL_UNTRACKED);
    if (!probe) return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "Metal makes no buffer");
    bool known = mtl_responds(api, probe, api->selectors.gpu_address);
    mtl_release(api, probe);
    if (known) return NULL;
    return KEEL_ERROR(KEEL_UNSUPPORTED,
                      "Metal's buffers have no gpuAddress here: that takes macOS 13 or iOS 16, and "
                      "in a virtual machine macOS 15");
}

static keel_status_t device_start(metal_device_t *device, unsigned long ordinal,
                                  const metal_options_t *options)
{
    device->ops = metal_ops;
    device->base.ops = &device->ops;
    device->modules = (cache_t){.class = &metal_module_class, .owner = device};
    runs_init(&device->runs, &metal_run_ops, &device->base, "keel-metal", "keel-metal-aid",
              metal_worker);
    poller_init(&device->listening.poller, "keel-metal-event", KEEL_FOREVER);
    device->device = device_at(device->api, ordinal);
    if (!device->device) return KEEL_ERROR(KEEL_NOT_FOUND, "Metal's device %lu has gone", ordinal);
    KEEL_TRY(addresses_check(device));
    if (options->residency) metal_residency_make(device);
    metal_indirect_find(device, options->indirect);
    // Concurrent dispatches were seen to give wrong results on GPUs of AMD's.
    bool apple = mtl_supports_family(device->api, device->device, METAL_APPLE_1);
    device->dispatches = apple ? METAL_CONCURRENT : METAL_SERIAL;
    device->encoded = mtl_argument_tier(device->api, device->device) == 0;
    device->discrete = !mtl_has_unified_memory(device->api, device->device);
    if (device->discrete)
        device->fetches = mtl_new_queue(device->api, device->device, METAL_FETCHES);
    if (device->discrete && !device->fetches)
        return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "Metal has no command queue left");
    KEEL_TRY(metal_builtins_make(device));
    caps_read(device);
    metal_samples_find(device);
    metal_clock_trace(device);
    return runs_start(&device->runs);
}

static keel_status_t metal_open_device(const keel_uri_t *uri, keel_device_t **device)
{
    static const keel_option_t table[] = {
        {"lib", KEEL_OPTION_PATH, .offset = offsetof(metal_options_t, library)},
        {"residency", KEEL_OPTION_U32, .offset = offsetof(metal_options_t, residency), .most = 1},
        {"cross", KEEL_OPTION_PATH, .offset = offsetof(metal_options_t, cross)},
        {"capture", KEEL_OPTION_U32, .offset = offsetof(metal_options_t, capture), .most = 1},
        {"indirect", KEEL_OPTION_U32, .offset = offsetof(metal_options_t, indirect), .most = 1},
    };
    metal_options_t options = {.indirect = 1};
    const metal_api_t *api;
    int ordinal = 0;
    KEEL_TRY(options_read(uri, table, 5, &options));
    KEEL_TRY(metal_open(options.library, &api));
    KEEL_TRY(device_find(api, uri->which, &ordinal));
    metal_device_t *d = mem_zalloc(sizeof *d);
    if (!d) return status_no_memory();
    d->api = api;
    if (options.cross) snprintf(d->cross, sizeof d->cross, "%s", options.cross);
    d->captures = options.capture;
    metal_demand_open();
    // kDLMetal, and kDLCPU to import from.
    d->places[0] = (keel_dlpack_place_t){8, ordinal, KEEL_EVERY_NODE, KEEL_MEMORY_DEVICE_VISIBLE};
    d->places[1] = (keel_dlpack_place_t){1, 0, KEEL_EVERY_NODE, KEEL_MEMORY_HOST_VISIBLE};
    void *pool = metal_enter(api);
    keel_status_t status = device_start(d, (unsigned long)ordinal, &options);
    metal_leave(api, pool);
    if (status) {
        metal_device_close(&d->base);
        metal_device_destroy(&d->base);
        return status;
    }
    log_say(KEEL_LOG_INFO, "metal://%d: %s", ordinal, d->base.info.hardware);
    *device = &d->base;
    return NULL;
}

const keel_driver_t metal_driver = {KEEL_DRIVER_HEAD, .name = "metal", .list = metal_list,
                                    .open = metal_open_device};
