// SPDX-License-Identifier: Apache-2.0
#include "graphs/stage.h"

enum {
    HOST = KEEL_MEMORY_HOST_VISIBLE | KEEL_MEMORY_DEVICE_VISIBLE,
    DEVICE = KEEL_MEMORY_DEVICE_LOCAL | KEEL_MEMORY_DEVICE_VISIBLE,
};

// Whether some memory of the device is hidden from the host.
static bool has_own_memory(const keel_device_t *device)
{
    const keel_caps_t *caps = keel_device_caps((keel_device_t *)(uintptr_t)device);
    enum { TYPES = sizeof caps->memory_types / sizeof caps->memory_types[0] };
    for (size_t i = 0; i < TYPES; i++)
        if (caps->memory_types[i] && !(caps->memory_types[i] & KEEL_MEMORY_HOST_VISIBLE))
            return true;
    return false;
}

keel_status_t stage_open(env_device_t *device)
{
    keel_buffer_options_t options = {.size = SPACE_SIZE, .memory = HOST, .name = "stage"};
    keel_queue_options_t queue = {.name = "stage"};
    if (!has_own_memory(device->device)) return NULL;
    KEEL_TRY(keel_queue_create(device->device, &queue, &device->stage_queue));
    return keel_buffer_create(device->device, &options, &device->stage);
}

void stage_close(env_device_t *device)
{
    keel_buffer_release(device->stage);
    keel_queue_release(device->stage_queue);
}

uint32_t stage_memory(const env_device_t *device, size_t index)
{
    return device->stage && index % 2 ? DEVICE : HOST;
}

static keel_status_t stage_copy(const env_device_t *device, keel_ref_t source, keel_ref_t target)
{
    keel_point_t done;
    KEEL_TRY(keel_queue_copy(device->stage_queue, KEEL_NO_WAITS, source, target, &done));
    return keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER);
}

bool stage_needed(keel_buffer_t *buffer)
{
    keel_buffer_info_t info;
    keel_buffer_info(buffer, &info);
    return !(info.memory & KEEL_MEMORY_HOST_VISIBLE);
}

// Whether the host cannot reach the buffer. One without memory is refused here: a copy that fails
// would leave its cause on the queue.
static keel_status_t buffer_look(keel_buffer_t *buffer, bool *hidden)
{
    keel_buffer_info_t info;
    keel_buffer_info(buffer, &info);
    *hidden = stage_needed(buffer);
    if (*hidden && !info.resident)
        return KEEL_ERROR(KEEL_FAILED_PRECONDITION, "the buffer has no memory");
    return NULL;
}

keel_status_t stage_read(env_device_t *device, keel_buffer_t *buffer, uint64_t offset, void *bytes,
                         uint64_t length)
{
    bool hidden;
    KEEL_TRY(buffer_look(buffer, &hidden));
    if (!hidden) return keel_buffer_read(buffer, offset, bytes, length);
    pthread_mutex_lock(&device->stage_mutex);
    keel_status_t status =
        stage_copy(device, keel_span(buffer, offset, length), keel_span(device->stage, 0, length));
    if (!status) status = keel_buffer_read(device->stage, 0, bytes, length);
    pthread_mutex_unlock(&device->stage_mutex);
    return status;
}

keel_status_t stage_write(env_device_t *device, keel_buffer_t *buffer, uint64_t offset,
                          const void *bytes, uint64_t length)
{
    bool hidden;
    KEEL_TRY(buffer_look(buffer, &hidden));
    if (!hidden) return keel_buffer_write(buffer, offset, bytes, length);
    pthread_mutex_lock(&device->stage_mutex);
    keel_status_t status = keel_buffer_write(device->stage, 0, bytes, length);
    if (!status)
        status = stage_copy(device, keel_span(device->stage, 0, length),
                            keel_span(buffer, offset, length));
    pthread_mutex_unlock(&device->stage_mutex);
    return status;
}
