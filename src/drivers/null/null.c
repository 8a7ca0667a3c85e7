// SPDX-License-Identifier: Apache-2.0
// The null driver: completes all work and does none. The smallest complete driver, which
// docs/new-driver.md walks through and a driver outside of the tree begins as a copy of; and a way
// to measure what the library itself costs.
#include <keel/driver/driver.h>

#include <stdio.h>

static keel_status_t null_list(keel_device_listing_t *devices, size_t capacity, size_t *count)
{
    *count = 1;
    if (capacity) devices[0] = (keel_device_listing_t){.uri = "null://", .name = "does nothing"};
    return NULL;
}

static void null_device_close(keel_device_t *device)
{
    (void)device; // nothing runs by itself
}

static void null_device_destroy(keel_device_t *device)
{
    keel_mem_free(device);
}

static void null_device_memory(keel_device_t *device, keel_memory_stats_t *stats)
{
    stats->total = stats->budget = device->caps.max_buffer_size;
}

static keel_status_t null_queue_create(keel_device_t *device, const keel_queue_options_t *options,
                                       keel_queue_t **queue)
{
    (void)device, (void)options;
    *queue = keel_mem_zalloc(sizeof **queue);
    if (!*queue) return keel_status_no_memory();
    (*queue)->submission_size =
        sizeof(keel_submission_t); // a driver that needs more embeds it in a struct of its own
    return NULL;
}

static void null_queue_destroy(keel_queue_t *queue)
{
    keel_mem_free(queue);
}

// Called when the submission's waits are over: a real driver would begin to work here.
static void null_start(keel_submission_t *submission)
{
    keel_submission_end(submission, NULL);
}

static void null_queue_submit(keel_queue_t *queue, keel_submission_t *submission)
{
    (void)queue;
    keel_submission_wait(submission, null_start);
}

static keel_status_t null_buffer_alloc(keel_buffer_t *buffer)
{
    buffer->capacity = buffer->size;
    void *data = keel_mem_zalloc_aligned(buffer->size, buffer->alignment);
    if (!data) return keel_status_no_memory();
    atomic_store(&buffer->data, data);
    atomic_store(&buffer->address, (uint64_t)(uintptr_t)data);
    return NULL;
}

static void null_buffer_free(keel_buffer_t *buffer)
{
    keel_mem_free_aligned(atomic_load(&buffer->data));
}

static uint32_t null_executable_rank(keel_device_t *device, keel_image_kind_t kind,
                                     const char *target)
{
    (void)device, (void)kind, (void)target;
    return KEEL_RANK_PORTABLE; // any image will do, and none has entry points
}

static keel_status_t null_executable_load(keel_device_t *device, const keel_image_t *image,
                                          keel_executable_t **executable)
{
    (void)device, (void)image;
    *executable = keel_mem_zalloc(sizeof **executable);
    return *executable ? NULL : keel_status_no_memory();
}

static void null_executable_unload(keel_executable_t *executable)
{
    keel_mem_free(executable);
}

// Slots that are left out are optional, and say so by the capability bits that are not set.
static const keel_device_ops_t null_ops = {
    .device_close = null_device_close,
    .device_destroy = null_device_destroy,
    .device_memory = null_device_memory,
    .queue_create = null_queue_create,
    .queue_destroy = null_queue_destroy,
    .queue_submit = null_queue_submit,
    .buffer_alloc = null_buffer_alloc,
    .buffer_free = null_buffer_free,
    .executable_rank = null_executable_rank,
    .executable_load = null_executable_load,
    .executable_unload = null_executable_unload,
};

static keel_status_t null_open(const keel_uri_t *uri, keel_device_t **device)
{
    if (uri->which[0])
        return KEEL_ERROR(KEEL_NOT_FOUND, "there is no null://%s; there is one null://",
                          uri->which);
    KEEL_TRY(keel_options_read(uri, NULL, 0, NULL)); // it has none
    keel_device_t *d = keel_mem_zalloc(sizeof *d);
    if (!d) return keel_status_no_memory();
    d->ops = &null_ops;
    snprintf(d->info.hardware, sizeof d->info.hardware, "does nothing");
    d->caps = (keel_caps_t){
        .bits = KEEL_CAP_DYNAMIC_COUNTS | KEEL_CAP_BRANCHES | KEEL_CAP_EVENTS | KEEL_CAP_TIMESTAMPS,
        .queue_families = 1u << KEEL_QUEUE_COMPUTE | 1u << KEEL_QUEUE_TRANSFER,
        .nodes = 1,
        .max_bindings = 64,
        .max_slots = 64,
        .max_constants = 256,
        .max_group_size = 1024,
        .max_group_sizes = {1024, 1024, 1024},
        .subgroup_size = 1,
        .max_groups = UINT32_MAX,
        .max_group_counts = {UINT32_MAX, UINT32_MAX, UINT32_MAX},
        .max_buffer_size = UINT64_C(1) << 32,
        .buffer_alignment = 64,
        .max_commands = 1u << 20,
        .max_depth = 16,
        .memory_types = {KEEL_MEMORY_DEVICE_VISIBLE | KEEL_MEMORY_HOST_VISIBLE |
                         KEEL_MEMORY_HOST_COHERENT | KEEL_MEMORY_HOST_CACHED},
    };
    d->caps.native = d->caps.bits; // nothing is done by others either
    *device = d;
    return NULL;
}

const keel_driver_t null_driver = {KEEL_DRIVER_HEAD, .name = "null", .list = null_list,
                                   .open = null_open};
