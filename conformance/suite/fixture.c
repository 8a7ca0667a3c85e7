// SPDX-License-Identifier: Apache-2.0
// The device under test and what is made from it.
#include "suite/fixture.h"

#include "suite/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const unsigned char keel_embed_conformance_kernels[];
extern const uint64_t keel_embed_conformance_kernels_size;
extern const unsigned char keel_embed_conformance_host_kernels[];
extern const uint64_t keel_embed_conformance_host_kernels_size;

// What a test asked for, kept until its end.
static struct {
    const char *uri;
    keel_device_t *device;
    keel_executable_t *kernels, *host_kernels;
} made;

void fixture_forget(void)
{
    memset(&made, 0, sizeof made);
}

void *scratch(size_t size)
{
    void *memory = calloc(1, size ? size : 1);
    CHECK(memory);
    own(OWNED_MEMORY, memory);
    return memory;
}

uint8_t *numbered(size_t size)
{
    uint8_t *bytes = scratch(size);
    for (size_t i = 0; i < size; i++) bytes[i] = (uint8_t)((uint32_t)i * 0x9e3779b1u >> 24);
    return bytes;
}

const char *with_option(const char *option)
{
    const char *uri = run_settings()->uri;
    if (uri_has(uri, option)) return uri;
    size_t size = strlen(uri) + strlen(option) + 2;
    char *text = scratch(size);
    snprintf(text, size, "%s%c%s", uri, strchr(uri, '?') ? '&' : '?', option);
    return text;
}

const char *the_partner(void)
{
    const char *partner = run_settings()->partner;
    return partner ? partner : the_uri();
}

const char *the_uri(void)
{
    if (made.uri) return made.uri;
    bool elsewhere = fault_vendor(run_settings()->uri) != NULL; // the seed comes another way
    if (run_settings()->mode != MODE_SHUFFLE || elsewhere) return made.uri = run_settings()->uri;
    char option[40];
    snprintf(option, sizeof option, "shuffle=%llu", (unsigned long long)run_settings()->seed);
    return made.uri = with_option(option);
}

const char *the_driver(void)
{
    static char driver[32];
    snprintf(driver, sizeof driver, "%.*s", (int)strcspn(run_settings()->uri, ":"),
             run_settings()->uri);
    return driver;
}

keel_device_t *open_device(const char *uri)
{
    keel_device_t *device = NULL;
    TRY(keel_device_open(uri, NULL, &device));
    OWN(device);
    return device;
}

keel_device_t *the_device(void)
{
    if (!made.device) made.device = open_device(the_uri());
    return made.device;
}

keel_queue_t *the_queue(void)
{
    keel_queue_t *queue = keel_device_queue(the_device(), 0);
    CHECK(queue);
    return queue;
}

const keel_caps_t *the_caps(void)
{
    return keel_device_caps(the_device());
}

keel_device_t *open_nodes(void)
{
    if (the_caps()->nodes > 1) return the_device();
    if (strcmp(the_driver(), "cpu") != 0) skip("NODES", "the device has one node");
    return open_device(strstr(the_uri(), "inline") ? "cpu://inline?nodes=2" : "cpu://?nodes=2");
}

void need_no_usage(keel_buffer_t *buffer, uint32_t usage)
{
    keel_buffer_info_t info;
    keel_buffer_info(buffer, &info);
    if (info.usage & usage) skip("EXACT_USAGE", "the buffer serves for more than was asked for");
}

keel_queue_t *new_queue(int32_t priority)
{
    keel_queue_options_t options = {.priority = priority};
    keel_queue_t *queue = NULL;
    TRY(keel_queue_create(the_device(), &options, &queue));
    OWN(queue);
    return queue;
}

keel_semaphore_t *new_semaphore(uint64_t initial)
{
    keel_semaphore_options_t options = {.initial = initial};
    keel_semaphore_t *semaphore = NULL;
    TRY(keel_semaphore_create(the_device(), &options, &semaphore));
    OWN(semaphore);
    return semaphore;
}

static keel_pool_t *pool_make(keel_pool_options_t options)
{
    keel_pool_t *pool = NULL;
    TRY(keel_pool_create(the_device(), &options, &pool));
    OWN(pool);
    return pool;
}

keel_pool_t *new_pool(uint64_t limit, uint64_t block_size)
{
    return pool_make((keel_pool_options_t){.limit = limit, .block_size = block_size});
}

keel_pool_t *new_failing_pool(uint64_t limit, uint64_t block_size)
{
    return pool_make(
        (keel_pool_options_t){.limit = limit, .block_size = block_size, .full = KEEL_POOL_FAILS});
}

keel_recording_t *new_recording(uint32_t slots, const keel_op_t *ops, size_t count)
{
    keel_recording_options_t options = {.slots = slots};
    keel_recording_t *recording = NULL;
    TRY(keel_recording_create(the_device(), &options, &recording));
    OWN(recording);
    TRY(keel_recording_add(recording, ops, count));
    TRY(keel_recording_end(recording));
    return recording;
}

keel_buffer_t *new_buffer_on(keel_device_t *device, uint64_t size)
{
    keel_buffer_options_t options = {.size = size};
    keel_buffer_t *buffer = NULL;
    TRY(keel_buffer_create(device, &options, &buffer));
    OWN(buffer);
    return buffer;
}

keel_buffer_t *new_buffer_filled(uint64_t size, uint8_t byte)
{
    void *data = scratch(size);
    memset(data, byte, size);
    keel_buffer_t *buffer = new_buffer_of(data, size);
    return buffer;
}

keel_buffer_t *new_buffer(uint64_t size)
{
    return new_buffer_filled(size, 0);
}

keel_buffer_t *new_buffer_of(const void *data, uint64_t size)
{
    keel_buffer_t *buffer = new_buffer_on(the_device(), size);
    buffer_put(buffer, 0, data, size);
    return buffer;
}

keel_buffer_t *new_subspan(keel_buffer_t *buffer, uint64_t offset, uint64_t length)
{
    keel_buffer_t *subspan = NULL;
    TRY(keel_buffer_subspan(buffer, offset, length, &subspan));
    OWN(subspan);
    return subspan;
}

keel_buffer_t *new_reserved(keel_pool_t *pool, uint64_t size)
{
    keel_buffer_options_t options = {.size = size};
    keel_buffer_t *buffer = NULL;
    TRY(keel_buffer_reserve(pool, &options, &buffer));
    OWN(buffer);
    return buffer;
}

static bool is_mappable(keel_buffer_t *buffer)
{
    keel_buffer_info_t info;
    keel_buffer_info(buffer, &info);
    return info.memory & KEEL_MEMORY_HOST_VISIBLE && info.usage & KEEL_USAGE_MAP;
}

keel_buffer_t *new_host_buffer_on(keel_device_t *device, uint64_t size)
{
    keel_buffer_options_t options = {
        .size = size, .memory = KEEL_MEMORY_HOST_VISIBLE | KEEL_MEMORY_DEVICE_VISIBLE};
    keel_buffer_t *buffer = NULL;
    TRY(keel_buffer_create(device, &options, &buffer));
    OWN(buffer);
    return buffer;
}

keel_buffer_t *new_host_buffer(uint64_t size)
{
    return new_host_buffer_on(the_device(), size);
}

void buffer_put(keel_buffer_t *buffer, uint64_t offset, const void *data, uint64_t length)
{
    if (is_mappable(buffer)) {
        TRY(keel_buffer_write(buffer, offset, data, length));
        return;
    }
    keel_buffer_t *staging = new_host_buffer(length);
    TRY(keel_buffer_write(staging, 0, data, length));
    reach(submit(keel_op_copy(keel_whole(staging), keel_span(buffer, offset, length))));
    drop(staging);
}

static void buffer_get_at(keel_device_t *device, keel_ref_t from, void *data)
{
    keel_buffer_t *staging = new_host_buffer_on(device, from.length);
    keel_point_t done;
    TRY(keel_queue_copy(keel_device_queue(device, 0), KEEL_NO_WAITS, from, keel_whole(staging),
                        &done));
    reach(done);
    TRY(keel_buffer_read(staging, 0, data, from.length));
    drop(staging);
}

void buffer_get(keel_buffer_t *buffer, uint64_t offset, void *data, uint64_t length)
{
    if (is_mappable(buffer))
        TRY(keel_buffer_read(buffer, offset, data, length));
    else
        buffer_get_at(the_device(), keel_span(buffer, offset, length), data);
}

void buffer_get_on(keel_device_t *device, keel_buffer_t *buffer, void *data, uint64_t length)
{
    buffer_get_at(device, keel_span(buffer, 0, length), data);
}

uint32_t buffer_u32(keel_buffer_t *buffer, uint64_t index)
{
    uint32_t value;
    buffer_get(buffer, index * sizeof value, &value, sizeof value);
    return value;
}

uint64_t buffer_u64(keel_buffer_t *buffer, uint64_t index)
{
    uint64_t value;
    buffer_get(buffer, index * sizeof value, &value, sizeof value);
    return value;
}

void check_bytes_(const char *file, int line, keel_buffer_t *buffer, uint64_t offset,
                  const void *expected, uint64_t length)
{
    void *actual = scratch(length);
    buffer_get(buffer, offset, actual, length);
    check_memory(file, line, "the buffer", actual, expected, length);
    drop(actual);
}

void check_filled_(const char *file, int line, keel_buffer_t *buffer, uint64_t offset,
                   uint64_t length, uint8_t byte)
{
    void *expected = scratch(length);
    memset(expected, byte, length);
    check_bytes_(file, line, buffer, offset, expected, length);
    drop(expected);
}

void kernels_image(const void **data, size_t *size)
{
    const settings_t *settings = run_settings();
    *data = settings->image ? settings->image : keel_embed_conformance_kernels;
    *size = settings->image ? settings->image_size : keel_embed_conformance_kernels_size;
}

void host_kernels_image(const void **data, size_t *size)
{
    *data = keel_embed_conformance_host_kernels;
    *size = keel_embed_conformance_host_kernels_size;
}

keel_executable_t *kernels_load(keel_device_t *device, const keel_executable_options_t *options)
{
    keel_executable_t *executable = NULL;
    keel_status_t status = keel_executable_load(device, options, &executable);
    if (keel_status_code(status) == KEEL_UNSUPPORTED && !faulted()) {
        keel_status_release(status);
        skip(need_name(0, NEED_KERNELS), "no image of the kernels is for the device");
    }
    TRY(status);
    OWN(executable);
    return executable;
}

keel_executable_t *kernels_on(keel_device_t *device)
{
    keel_executable_options_t options = {.name = "kernels"};
    kernels_image(&options.data, &options.size);
    keel_executable_t *executable = kernels_load(device, &options);
    run_result()->kernels = true;
    return executable;
}

static keel_executable_t *host_kernels_on(keel_device_t *device)
{
    keel_executable_options_t options = {.name = "host kernels"};
    host_kernels_image(&options.data, &options.size);
    return kernels_load(device, &options);
}

keel_executable_t *kernels(void)
{
    if (!made.kernels) made.kernels = kernels_on(the_device());
    return made.kernels;
}

// Whether it is one of those that are code of the host alone.
static bool kernel_is_host(const char *name)
{
    static const char *const names[] = {"fail", "expect", "meet", "workers"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(name, names[i])) return true;
    return strncmp(name, "resizable_", 10) == 0;
}

keel_entry_t kernel(const char *name)
{
    keel_entry_t entry = {NULL, 0};
    bool host = kernel_is_host(name);
    if (host && !made.host_kernels) made.host_kernels = host_kernels_on(the_device());
    TRY(keel_executable_entry(host ? made.host_kernels : kernels(), name, &entry));
    return entry;
}

keel_entry_t kernel_on(keel_device_t *device, const char *name)
{
    keel_entry_t entry = {NULL, 0};
    keel_executable_t *executable =
        kernel_is_host(name) ? host_kernels_on(device) : kernels_on(device);
    TRY(keel_executable_entry(executable, name, &entry));
    return entry;
}

static void *copy_of(const void *data, size_t size)
{
    void *copy = scratch(size);
    if (size) memcpy(copy, data, size);
    return copy;
}

keel_op_t op_kernel(const char *name, uint32_t groups, const void *constants, size_t constant_size,
                    keel_refs_t bindings)
{
    keel_refs_t kept = {copy_of(bindings.refs, bindings.count * sizeof *bindings.refs),
                        bindings.count};
    return keel_op_dispatch(kernel(name), keel_groups(groups, 1, 1),
                            copy_of(constants, constant_size), constant_size, kept);
}
