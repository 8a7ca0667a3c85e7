// SPDX-License-Identifier: Apache-2.0
// Handles of the vendor's objects.
#include <keel/native.h>

#include "core/check.h"

static const char *const kind_names[] = {
    [KEEL_NATIVE_CUDA_DEVICE] = "CUdevice",        [KEEL_NATIVE_CUDA_CONTEXT] = "CUcontext",
    [KEEL_NATIVE_CUDA_STREAM] = "CUstream",        [KEEL_NATIVE_CUDA_EVENT] = "CUevent",
    [KEEL_NATIVE_HIP_DEVICE] = "hipDevice_t",      [KEEL_NATIVE_HIP_STREAM] = "hipStream_t",
    [KEEL_NATIVE_HIP_EVENT] = "hipEvent_t",        [KEEL_NATIVE_HSA_AGENT] = "hsa_agent_t",
    [KEEL_NATIVE_HSA_QUEUE] = "hsa_queue_t *",     [KEEL_NATIVE_METAL_DEVICE] = "MTLDevice",
    [KEEL_NATIVE_METAL_QUEUE] = "MTLCommandQueue", [KEEL_NATIVE_METAL_EVENT] = "MTLSharedEvent",
};

static keel_status_t kind_check(keel_native_t kind)
{
    CHECK(kind >= KEEL_NATIVE_CUDA_DEVICE && kind < KEEL_LENGTH(kind_names), KEEL_INVALID_ARGUMENT,
          "kind is %d; it must be one of keel_native_t", (int)kind);
    return NULL;
}

static keel_status_t handle_get(keel_device_t *device, keel_queue_t *queue, keel_native_t kind,
                                uint64_t *handle)
{
    KEEL_TRY(kind_check(kind));
    KEEL_TRY(device_check(device));
    CHECK(device->ops->device_native && device->ops->device_native(device, queue, kind, handle),
          KEEL_UNSUPPORTED, "there is no %s behind a %s of device '%s'", kind_names[kind],
          queue ? "queue" : "device", device->name);
    return NULL;
}

keel_status_t keel_device_native(keel_device_t *device, keel_native_t kind, uint64_t *handle)
{
    CHECK_NOT_NULL(device);
    CHECK_NOT_NULL(handle);
    return handle_get(device, NULL, kind, handle);
}

keel_status_t keel_queue_native(keel_queue_t *queue, keel_native_t kind, uint64_t *handle)
{
    CHECK_NOT_NULL(queue);
    CHECK_NOT_NULL(handle);
    return handle_get(queue->device, queue, kind, handle);
}

// Of a point that hangs on nothing of a device: it has ended, or is not there yet.
static keel_status_t point_state(keel_point_t point)
{
    keel_status_t status = keel_wait(keel_points(&point, 1), KEEL_ALL, 0);
    if (keel_status_code(status) != KEEL_DEADLINE_EXCEEDED) return status;
    keel_status_release(status);
    return KEEL_ERROR(KEEL_FAILED_PRECONDITION,
                      "the work of the point is not on the device yet: it waits for other points, "
                      "or the host has a part in it; use keel_wait or keel_on");
}

keel_status_t keel_point_native(keel_point_t point, keel_native_t kind, keel_native_fn use,
                                void *user)
{
    uint64_t handle = 0;
    CHECK_NOT_NULL(use);
    KEEL_TRY(kind_check(kind));
    CHECK(point.semaphore, KEEL_INVALID_ARGUMENT, "point.semaphore is NULL");
    CHECK(object_is_ours(&point.semaphore->object), KEEL_DEVICE_LOST,
          "the semaphore was made before fork and stayed with the parent process");
    CHECK(point_exists(&point), KEEL_INVALID_ARGUMENT, "there is no point %llu yet, or ever",
          (unsigned long long)point.value);
    CHECK(!point.until, KEEL_INVALID_ARGUMENT,
          "point.until is 0x%x; an event stands for one point, without keel_ended and keel_up_to",
          point.until);
    if (point_is_past(&point)) return NULL;
    promise_t *promise = point_promise(&point);
    if (!promise) return point_state(point);
    bool has = promise->ops->native && promise->ops->native(promise, kind, &handle);
    keel_status_t status =
        has ? use(user, handle)
            : KEEL_ERROR(KEEL_UNSUPPORTED, "there is no %s behind a point of that device",
                         kind_names[kind]);
    promise_release(promise); // until here the event is not recorded again
    return status;
}
