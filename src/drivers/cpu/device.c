// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/processor.h"
#include "base/status.h"
#include "base/system.h"
#include "drivers/cpu/cpu.h"
#include "drivers/cpu/target.h"
#include "kit/object.h"
#include "kit/pool.h"

enum {
    SHARE_NS = 1000,    // how long a stage runs before others are asked to help
    SLICE_NS = 1000000, // how long a run keeps a worker when others wait for it
};

static cpu_device_t *cpu_device(keel_device_t *device)
{
    return (cpu_device_t *)(void *)device;
}

static void device_close(keel_device_t *base)
{
    cpu_device_t *device = cpu_device(base);
    aio_destroy(device->aio); // first: its thread may still be waking a worker, and hold a queue
    device->aio = NULL;
    for (uint32_t i = 0; i < base->caps.nodes; i++) cpu_workers_stop(&device->nodes[i]);
}

static void device_destroy(keel_device_t *base)
{
    cpu_device_t *device = cpu_device(base);
    aio_destroy(device->aio); // of a device that was not closed: half open, or in a child of fork
    for (uint32_t i = 0; device->nodes && i < base->caps.nodes; i++)
        cpu_node_finish(&device->nodes[i]);
    mem_free_aligned(device->nodes);
    mem_free_aligned(device);
}

static void device_memory(keel_device_t *base, keel_memory_stats_t *stats)
{
    (void)base;
    system_memory(&stats->total, &stats->budget);
}

static keel_status_t queue_create(keel_device_t *base, const keel_queue_options_t *options,
                                  keel_queue_t **queue)
{
    cpu_queue_t *q = mem_zalloc(sizeof *q);
    if (!q) return status_no_memory();
    q->node = &cpu_device(base)->nodes[options->node];
    q->level = (uint32_t)(options->priority - base->caps.min_priority);
    q->base.submission_size =
        sizeof(cpu_run_t) + q->node->share_count * sizeof(((cpu_run_t *)0)->shares[0]);
    *queue = &q->base;
    return NULL;
}

static void queue_destroy(keel_queue_t *queue)
{
    mem_free(queue);
}

static void queue_submit(keel_queue_t *queue, keel_submission_t *submission)
{
    const keel_queue_t *outer = cpu_submitting;
    cpu_submitting = queue;
    submission_wait(submission, cpu_run_start);
    cpu_submitting = outer;
}

static const keel_device_ops_t cpu_ops = {
    .device_close = device_close,
    .device_destroy = device_destroy,
    .device_memory = device_memory,
    .queue_create = queue_create,
    .queue_destroy = queue_destroy,
    .queue_submit = queue_submit,
    .buffer_alloc = cpu_buffer_alloc,
    .buffer_free = cpu_buffer_free,
    .buffer_import = cpu_buffer_import,
    .buffer_forget = cpu_buffer_forget,
    .buffer_export = cpu_buffer_export,
    .pool_create = pool_create,
    .pool_destroy = pool_destroy,
    .pool_stats = pool_stats,
    .pool_trim = pool_trim,
    .executable_rank = cpu_executable_rank,
    .executable_load = cpu_executable_load,
    .executable_unload = cpu_executable_unload,
    .executable_global = cpu_executable_global,
    .executable_write = cpu_executable_write,
};

// DLPack calls all memory of the process device 0 of type 1.
static const keel_dlpack_place_t dlpack_places[] = {
    {.type = 1, .node = KEEL_EVERY_NODE, .memory = KEEL_MEMORY_HOST_VISIBLE},
    {.type = 1, .node = KEEL_EVERY_NODE, .memory = KEEL_MEMORY_DEVICE_LOCAL}, // memory=discrete
    {.type = 0},
};

// The host reaches all memory of the device. With memory=discrete it reaches, as on a card, only
// the memory that was made with KEEL_MEMORY_HOST_VISIBLE.
static void memory_types_fill(keel_caps_t *caps, bool discrete)
{
    const uint32_t local = KEEL_MEMORY_DEVICE_LOCAL | KEEL_MEMORY_DEVICE_VISIBLE;
    const uint32_t host =
        KEEL_MEMORY_HOST_VISIBLE | KEEL_MEMORY_HOST_COHERENT | KEEL_MEMORY_HOST_CACHED;
    int count = 0;
    if (discrete) {
        caps->memory_types[count++] = local;
        caps->memory_types[count++] = KEEL_MEMORY_DEVICE_VISIBLE | host;
    }
    caps->memory_types[count] = local | host;
}

static void caps_fill(keel_caps_t *caps, const cpu_options_t *options)
{
    uint64_t total, budget;
    system_memory(&total, &budget);
    *caps = (keel_caps_t){
        .bits = KEEL_CAP_QUEUE_ALLOCA | KEEL_CAP_DYNAMIC_COUNTS | KEEL_CAP_BRANCHES |
                KEEL_CAP_EVENTS | KEEL_CAP_TIMESTAMPS | KEEL_CAP_RAW_ARGUMENTS | KEEL_CAP_FILES |
                KEEL_CAP_HOST_CALLS | KEEL_CAP_IMPORT_HOST | KEEL_CAP_EXPORT_FD | KEEL_CAP_DLPACK |
                KEEL_CAP_GROUP_SIZE | KEEL_CAP_EXECUTES | KEEL_CAP_KERNEL_STATUS |
                KEEL_CAP_COPY_ACROSS,
        .queue_families = 1u << KEEL_QUEUE_COMPUTE | 1u << KEEL_QUEUE_TRANSFER,
        .min_priority = -(CPU_LEVELS / 2),
        .max_priority = CPU_LEVELS / 2,
        .nodes = options->nodes,
        .workers = options->threads * options->nodes,
        .max_bindings = CPU_MAX_BINDINGS,
        .max_slots = 1024,
        .max_constants = CPU_MAX_CONSTANTS,
        .max_arguments = CPU_MAX_CONSTANTS,
        .max_group_size = 1u << 20,
        .max_group_sizes = {1u << 20, 1u << 20, 1u << 20},
        .subgroup_size = 1, // as kernel/subgroup.h has it
        .max_local_memory = CPU_MAX_LOCAL,
        .max_groups = UINT64_C(1) << 62,
        .max_group_counts = {UINT32_MAX, UINT32_MAX, UINT32_MAX},
        .max_buffer_size = total > UINT64_C(1) << 30 ? total : UINT64_C(1) << 30,
        .buffer_alignment = 64,
        .max_commands = 1u << 24,
        .max_depth = CPU_MAX_DEPTH,
        .dlpack = dlpack_places,
    };
    caps->native = caps->bits;
    memory_types_fill(caps, options->discrete);
}

static keel_status_t device_init(cpu_device_t *device, const cpu_options_t *options)
{
    device->base.ops = &cpu_ops;
    caps_fill(&device->base.caps, options);
    device->level = processor_level();
    device->libraries = (cache_t){.class = &cpu_library_class, .owner = device};
    KEEL_TRY(cpu_info(options, &device->base.info));
    cpu_target_name(device->level, device->base.info.target, sizeof device->base.info.target);
    device->spin_ticks = clock_ticks_of_ns(options->spin_us * 1000);
    device->share_ticks = clock_ticks_of_ns(SHARE_NS);
    device->slice_ticks = clock_ticks_of_ns(SLICE_NS);
    device->shuffle = options->shuffle;
    device->seed = options->seed;
    device->nodes = mem_zalloc_aligned(options->nodes * sizeof *device->nodes, 64);
    if (!device->nodes) return status_no_memory();
    for (uint32_t i = 0; i < options->nodes; i++) {
        KEEL_TRY(cpu_node_init(&device->nodes[i], device, options->threads));
        device->nodes[i].first_worker = i * options->threads;
        device->nodes[i].go_on = cpu_run_go_on;
    }
    if (options->is_inline) return NULL;
    KEEL_TRY(aio_create(&device->aio));
    for (uint32_t i = 0; i < options->nodes; i++) KEEL_TRY(cpu_workers_start(&device->nodes[i]));
    return cpu_place(device->nodes, options->nodes, options->cpus);
}

// Takes apart a device that is not known to anybody.
static void device_abort(cpu_device_t *device)
{
    for (uint32_t i = 0; device->nodes && i < device->base.caps.nodes; i++) {
        if (!device->nodes[i].device) continue;
        cpu_workers_stop(&device->nodes[i]);
    }
    device_destroy(&device->base);
}

keel_status_t cpu_open(const keel_uri_t *uri, keel_device_t **device)
{
    cpu_options_t options;
    KEEL_TRY(cpu_options_parse(uri, &options));
    if (!options.is_inline && !options.threads) {
        uint32_t cores;
        KEEL_TRY(cpu_count_default(&cores));
        options.threads = cores > options.nodes ? cores / options.nodes : 1;
    }
    cpu_device_t *d = mem_zalloc_aligned(sizeof *d, 64);
    if (!d) return status_no_memory();
    keel_status_t status = device_init(d, &options);
    if (status) {
        device_abort(d);
        return status;
    }
    if (options.is_inline)
        log_say(KEEL_LOG_INFO, "cpu://inline: work runs on the threads that submit it");
    else
        log_say(KEEL_LOG_INFO, "cpu://: %u node%s of %u worker%s", options.nodes,
                options.nodes > 1 ? "s" : "", options.threads, options.threads > 1 ? "s" : "");
    *device = &d->base;
    return NULL;
}
