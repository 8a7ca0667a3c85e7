// SPDX-License-Identifier: Apache-2.0
// Memory that other processes may map: memory behind a handle, and addresses that are reserved for
// it.
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/status.h"
#include "drivers/stream/memory/memory.h"

// Memory is shared in whole pieces. One vendor aligns what is reserved to nothing but these, so
// that more is reserved for a larger alignment.
static keel_status_t room_find(stream_device_t *device, uint64_t size, uint64_t alignment,
                               stream_shared_t *shared)
{
    uint64_t piece = 1;
    KEEL_TRY(device->api->shared_granularity(device->vendor, &piece));
    shared->size = (size + piece - 1) / piece * piece;
    shared->room = shared->size + (alignment > piece ? alignment : 0);
    return NULL;
}

// Gives the memory behind the handle an address, or releases the handle.
static keel_status_t address_make(stream_device_t *device, uint64_t alignment,
                                  stream_shared_t *shared)
{
    const stream_api_t *api = device->api;
    uint64_t start = 0;
    keel_status_t status = api->shared_reserve(device->vendor, shared->room, &start);
    if (!status) {
        shared->reserved = start;
        shared->address = shared->room > shared->size ? start + (-start & (alignment - 1)) : start;
        status = api->shared_map(device->vendor, shared->address, shared->size, shared->handle);
        if (status) api->shared_unreserve(device->vendor, start, shared->room);
    }
    if (status) api->shared_release(device->vendor, shared->handle);
    return status;
}

keel_status_t stream_shared_create(stream_device_t *device, uint64_t size, uint64_t alignment,
                                   stream_shared_t *shared)
{
    KEEL_TRY(room_find(device, size, alignment, shared));
    KEEL_TRY(device->api->shared_create(device->vendor, shared->size, &shared->handle));
    return address_make(device, alignment, shared);
}

// Vendors take a descriptor as a pointer, which 0 is none of: that one goes by another number.
static keel_status_t handle_import(stream_device_t *device, int fd, uint64_t *handle)
{
    if (fd) return device->api->shared_import(device->vendor, fd, handle);
    int other = fcntl(fd, F_DUPFD_CLOEXEC, 1);
    if (other < 0) return status_from_errno(status_errno_code(errno), errno, "descriptor 0");
    keel_status_t status = device->api->shared_import(device->vendor, other, handle);
    close(other);
    return status;
}

keel_status_t stream_shared_import(stream_device_t *device, int fd, uint64_t size,
                                   stream_shared_t *shared)
{
    KEEL_TRY(room_find(device, size, 0, shared));
    keel_status_t status = handle_import(device, fd, &shared->handle);
    if (keel_status_code(status) == KEEL_RESOURCE_EXHAUSTED) return status;
    // A vendor may say of some descriptors what elsewhere tells of a lost device. If the device is
    // lost, the next call says so.
    if (status)
        return keel_status_wrap(status_as(status, KEEL_INVALID_ARGUMENT),
                                "external->handle.fd is no memory of a GPU");
    status = address_make(device, 0, shared);
    keel_code_t code = keel_status_code(status); // mapping more than there is: sooner or later
    if (code != KEEL_INVALID_ARGUMENT && code != KEEL_UNSUPPORTED) return status;
    keel_status_release(status);
    return KEEL_ERROR(KEEL_OUT_OF_RANGE, "external: %llu bytes are asked for; there are fewer",
                      (unsigned long long)size);
}

void stream_shared_destroy(stream_device_t *device, const stream_shared_t *shared)
{
    const stream_api_t *api = device->api;
    api->shared_unmap(device->vendor, shared->address, shared->size);
    api->shared_unreserve(device->vendor, shared->reserved, shared->room);
    api->shared_release(device->vendor, shared->handle);
}
