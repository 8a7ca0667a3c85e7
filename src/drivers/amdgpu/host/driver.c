// SPDX-License-Identifier: Apache-2.0
// Finding and opening devices.
#include <keel/driver/driver.h>

#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "drivers/amdgpu/host/code/code.h"
#include "drivers/amdgpu/host/driver.h"
#include "drivers/amdgpu/host/memory/memory.h"
#include "drivers/amdgpu/host/record/record.h"
#include "kit/gpus.h"
#include "kit/object.h"
#include "kit/option.h"

// Who schedules. Any: the device where it can.
enum { SCHEDULER_HOST, SCHEDULER_DEVICE, SCHEDULER_ANY };

// Where rings are to lie.
enum { RINGS_HOST, RINGS_DEVICE, RINGS_ANY };

typedef struct amdgpu_options_t {
    const char *library; // NULL: where the system keeps it
    uint8_t scheduler;
    uint8_t rings;
    uint32_t schedulers;  // for each GPU
    uint32_t trace_slots; // of a trace ring, at most
} amdgpu_options_t;

static keel_status_t gpu_count(const void *library, int *count)
{
    return amdgpu_agents_count(library, count);
}

static keel_status_t gpu_describe(const void *library, int ordinal, char name[GPU_TEXT],
                                  uint64_t *memory)
{
    const hsa_symbols_t *hsa = library;
    hsa_agent_t gpu, cpu;
    hsa_amd_memory_pool_t pool;
    char product[64] = "";
    KEEL_TRY(amdgpu_agent_find(hsa, ordinal, &gpu, &cpu));
    KEEL_TRY(HSA_CALL(hsa, hsa_agent_get_info, gpu, HSA_AMD_AGENT_INFO_PRODUCT_NAME, product));
    snprintf(name, GPU_TEXT, "%.63s", product);
    return amdgpu_agent_memory(hsa, gpu, &pool, memory);
}

// HSA's UUID is a text: "GPU-" and sixteen digits, or "GPU-XX" for none.
static keel_status_t gpu_names(const void *library, int ordinal, gpu_names_t *names)
{
    const hsa_symbols_t *hsa = library;
    hsa_agent_t gpu, cpu;
    char uuid[64] = "";
    uint32_t place = 0, domain = 0;
    KEEL_TRY(amdgpu_agent_find(hsa, ordinal, &gpu, &cpu));
    KEEL_TRY(HSA_CALL(hsa, hsa_agent_get_info, gpu, HSA_AMD_AGENT_INFO_UUID, uuid));
    KEEL_TRY(HSA_CALL(hsa, hsa_agent_get_info, gpu, HSA_AMD_AGENT_INFO_BDFID, &place));
    KEEL_TRY(HSA_CALL(hsa, hsa_agent_get_info, gpu, HSA_AMD_AGENT_INFO_DOMAIN, &domain));
    snprintf(names->uuid, sizeof names->uuid, "%.63s", strncmp(uuid, "GPU-", 4) ? uuid : uuid + 4);
    snprintf(names->address, sizeof names->address, "%04x:%02x:%02x.%x", domain & 0xffff,
             place >> 8 & 0xff, place >> 3 & 0x1f, place & 7);
    return NULL;
}

static const gpus_t gpus = {"amdgpu", gpu_count, gpu_describe, gpu_names};

static keel_status_t amdgpu_list(keel_device_listing_t *devices, size_t capacity, size_t *count)
{
    const hsa_symbols_t *hsa = NULL;
    keel_status_t opened = hsa_symbols_open(NULL, &hsa);
    return gpus_list(&gpus, opened, hsa, devices, capacity, count);
}

// All submissions have ended, but the last handlers may still be on their way out.
static void amdgpu_device_close(keel_device_t *device)
{
    amdgpu_device_t *d = amdgpu_device(device);
    amdgpu_scheduler_stop(d);
    amdgpu_fault_forget(d); // nothing runs any more that could
    runs_stop(&d->runs);
    amdgpu_scheduler_clear(d);
    amdgpu_clock_close(d);
    amdgpu_signals_destroy(d);
    amdgpu_builtins_unload(d);
    amdgpu_memory_close(d);
}

static void amdgpu_device_destroy(keel_device_t *device)
{
    amdgpu_device_t *d = amdgpu_device(device);
    runs_free(&d->runs);
    amdgpu_scheduler_free(d);
    bool ours = object_is_ours(&device->object);
    if (d->late && ours) blocks_return(&d->blocks, d->late, false);
    if (d->pages.ops && ours) pages_close(&d->pages); // devices may use what this one has locked
    keel_status_release(atomic_load(&d->failed));
    mem_free(d);
}

// Old releases do not know what is left: then it is all that the device itself has not taken.
static void amdgpu_device_memory(keel_device_t *device, keel_memory_stats_t *stats)
{
    amdgpu_device_t *d = amdgpu_device(device);
    stats->total = stats->budget = 0;
    for (uint32_t i = 0; i < d->node_count; i++) {
        uint64_t memory = d->nodes[i].memory, taken = atomic_load(&d->nodes[i].taken);
        uint64_t left = memory > taken ? memory - taken : 0;
        d->hsa->hsa_agent_get_info(d->agents[i], HSA_AMD_AGENT_INFO_MEMORY_AVAIL, &left);
        stats->total += memory;
        stats->budget += left;
    }
}

static bool amdgpu_device_native(keel_device_t *device, keel_queue_t *queue, keel_native_t kind,
                                 uint64_t *handle)
{
    if (queue && kind == KEEL_NATIVE_HSA_QUEUE) {
        *handle = (uintptr_t)amdgpu_queue(queue)->queue;
        return true;
    }
    if (queue || kind != KEEL_NATIVE_HSA_AGENT) return false;
    *handle = amdgpu_device(device)->agent.handle;
    return true;
}

static const keel_device_ops_t amdgpu_ops = {
    .device_close = amdgpu_device_close,
    .device_destroy = amdgpu_device_destroy,
    .device_memory = amdgpu_device_memory,
    .device_clock = amdgpu_device_clock,
    .device_peers = amdgpu_device_peers,
    .device_native = amdgpu_device_native,
    .queue_create = amdgpu_queue_create,
    .queue_destroy = amdgpu_queue_destroy,
    .queue_submit = amdgpu_queue_submit,
    .buffer_alloc = amdgpu_buffer_alloc,
    .buffer_free = amdgpu_buffer_free,
    .buffer_import = amdgpu_buffer_import,
    .buffer_forget = amdgpu_buffer_forget,
    .executable_rank = amdgpu_executable_rank,
    .executable_load = amdgpu_executable_load,
    .executable_unload = amdgpu_executable_unload,
    .executable_global = amdgpu_executable_global,
    .executable_write = amdgpu_executable_write,
    KEEL_SLABS_OPS,
};

// With semaphores that the GPU waits for by itself, and buffers of pools that it finds.
static keel_device_ops_t amdgpu_device_ops(void)
{
    keel_device_ops_t ops = amdgpu_ops;
    ops.semaphore_create = amdgpu_semaphore_create;
    ops.pool_create = amdgpu_pool_create;
    ops.queue_cancel = amdgpu_queue_cancel;
    ops.recording_prepare = amdgpu_recording_prepare;
    ops.recording_discard = amdgpu_recording_discard;
    return ops;
}

// The GPUs that a URI names, with commas between them.
static keel_status_t nodes_find(amdgpu_device_t *device, const char *which)
{
    for (;;) {
        char name[GPU_TEXT];
        size_t length = strcspn(which, ",");
        if (device->node_count == AMDGPU_NODES)
            return KEEL_ERROR(KEEL_UNSUPPORTED, "a device has %d GPUs at most", AMDGPU_NODES);
        if (length >= sizeof name)
            return KEEL_ERROR(KEEL_NOT_FOUND, "no GPU has a name of %zu characters", length);
        memcpy(name, which, length);
        name[length] = 0;
        KEEL_TRY(gpus_find(&gpus, device->hsa, name, &device->nodes[device->node_count].ordinal));
        device->node_count++;
        if (!which[length]) break;
        which += length + 1;
    }
    return NULL;
}

// Whether the host is to schedule for that reason. Where memory is short or the GPU is lost, the
// host would not come far either.
static bool host_steps_in(keel_code_t code)
{
    return code != KEEL_OUT_OF_MEMORY && code != KEEL_DEVICE_LOST;
}

// The scheduler of the GPU, unless the host is to schedule, or has to.
static keel_status_t scheduler_choose(amdgpu_device_t *device, const amdgpu_options_t *options)
{
    uint8_t who = options->scheduler;
    if (who == SCHEDULER_HOST) return NULL;
    keel_status_t status = amdgpu_scheduler_start(device, options->schedulers);
    if (!status) {
        device->ops = amdgpu_device_ops();
        return NULL;
    }
    if (who == SCHEDULER_DEVICE)
        return keel_status_wrap(status, "scheduler=device: the host schedules without the option");
    keel_code_t code = keel_status_code(status);
    if (!host_steps_in(code)) return status;
    log_say(code == KEEL_UNSUPPORTED ? KEEL_LOG_INFO : KEEL_LOG_WARNING,
            "amdgpu: the host schedules: %s", keel_status_message(status));
    keel_status_release(status);
    amdgpu_scheduler_stop(device);
    amdgpu_scheduler_clear(device);
    amdgpu_scheduler_free(device);
    device->scheduler = NULL;
    return NULL;
}

static keel_status_t device_start(amdgpu_device_t *device, const amdgpu_options_t *options)
{
    static _Atomic(keel_status_t) not_lost; // what a lost device has locked, HSA unlocks, too
    device->ops = amdgpu_ops;
    device->base.ops = &device->ops;
    device->modules = (cache_t){.class = &amdgpu_module_class, .owner = device};
    device->pages = (pages_user_t){
        .ops = &amdgpu_pages_ops,
        .driver = device->hsa,
        .vendor = device,
        .lost = &not_lost,
        .bytewise = true,
    };
    runs_init(&device->runs, &amdgpu_run_ops, &device->base, "keel-amdgpu", "keel-amdgpu-aid",
              amdgpu_worker);
    for (uint32_t i = 0; i < device->node_count; i++)
        KEEL_TRY(amdgpu_agent_find(device->hsa, device->nodes[i].ordinal, &device->agents[i],
                                   &device->cpu));
    device->agent = device->agents[0];
    KEEL_TRY(amdgpu_group_check(device));
    KEEL_TRY(amdgpu_memory_start(device));
    KEEL_TRY(amdgpu_caps_read(device));
    amdgpu_stamps_open(device);
    KEEL_TRY(amdgpu_builtins_load(device));
    if (options->rings != RINGS_ANY)
        KEEL_TRY(amdgpu_rings_check(device, options->rings == RINGS_DEVICE));
    KEEL_TRY(scheduler_choose(device, options));
    amdgpu_fault_watch(device);
    if (device->hsa->exports) device->ops.buffer_export = amdgpu_buffer_export;
    return runs_start(&device->runs);
}

static keel_status_t amdgpu_open(const keel_uri_t *uri, keel_device_t **device)
{
    static const keel_option_t table[] = {
        {"lib", KEEL_OPTION_PATH, .offset = offsetof(amdgpu_options_t, library)},
        {"scheduler", KEEL_OPTION_WORD, .offset = offsetof(amdgpu_options_t, scheduler),
         .words = {"host", "device"}},
        {"schedulers", KEEL_OPTION_U32, .offset = offsetof(amdgpu_options_t, schedulers),
         .least = 1, .most = AMDGPU_CONTROLS},
        {"rings", KEEL_OPTION_WORD, .offset = offsetof(amdgpu_options_t, rings),
         .words = {"host", "device"}},
        {"trace_slots", KEEL_OPTION_U32, .offset = offsetof(amdgpu_options_t, trace_slots),
         .least = 64, .most = 1 << 20},
    };
    amdgpu_options_t options = {.scheduler = SCHEDULER_ANY,
                                .rings = RINGS_ANY,
                                .schedulers = 1,
                                .trace_slots = AMDGPU_TRACE_SLOTS};
    const hsa_symbols_t *hsa;
    KEEL_TRY(options_read(uri, table, sizeof table / sizeof *table, &options));
    KEEL_TRY(hsa_symbols_open(options.library, &hsa));
    amdgpu_device_t *d = mem_zalloc(sizeof *d);
    if (!d) return status_no_memory();
    d->hsa = hsa;
    d->trace_slots = 1u << (31 - __builtin_clz(options.trace_slots)); // a power of two
    keel_status_t status = nodes_find(d, uri->which);
    if (!status) status = device_start(d, &options);
    if (status) {
        amdgpu_device_close(&d->base);
        amdgpu_device_destroy(&d->base);
        return status;
    }
    const keel_device_info_t *info = &d->base.info;
    log_say(KEEL_LOG_INFO, "amdgpu://%s: %s, %s, %s", uri->which, info->hardware, info->target,
            info->api);
    *device = &d->base;
    return NULL;
}

const keel_driver_t amdgpu_driver = {KEEL_DRIVER_HEAD, .name = "amdgpu", .list = amdgpu_list,
                                     .open = amdgpu_open};
