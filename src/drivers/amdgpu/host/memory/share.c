// SPDX-License-Identifier: Apache-2.0
// Memory that others use, too, by descriptors (dma-bufs).
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "drivers/amdgpu/host/memory/memory.h"

keel_status_t amdgpu_buffer_export(keel_buffer_t *buffer, keel_external_buffer_t *external)
{
    amdgpu_device_t *device = amdgpu_device(buffer->device);
    const keel_buffer_t *root = buffer->root;
    KEEL_AMDGPU_DEVICE_PTR const void *memory =
        (const void *)(uintptr_t)atomic_load(&root->address);
    uint64_t offset = 0;
    int fd = -1;
    KEEL_TRY(amdgpu_lost_cause(device));
    KEEL_TRY(HSA_CALL(device->hsa, hsa_amd_portable_export_dmabuf, (const void *)memory,
                      root->size ? root->size : 1, &fd, &offset));
    external->handle.fd = fd;
    external->offset += offset;
    // Older kernels leave it to programs that are started.
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) == 0) return NULL;
    int error = errno;
    device->hsa->hsa_amd_portable_close_dmabuf(fd);
    return KEEL_ERROR(KEEL_INTERNAL, "a descriptor of HSA's cannot be closed on exec: %s",
                      strerror(error));
}

keel_status_t amdgpu_import_descriptor(keel_buffer_t *buffer)
{
    amdgpu_device_t *device = amdgpu_device(buffer->device);
    const keel_external_buffer_t *external = &buffer->external;
    size_t size = 0;
    KEEL_AMDGPU_DEVICE_PTR void *memory = NULL;
    keel_status_t status =
        HSA_CALL(device->hsa, hsa_amd_interop_map_buffer, device->node_count, device->agents,
                 external->handle.fd, 0, &size, &memory, NULL, NULL);
    // HSA has no word for a descriptor of something else.
    if (keel_status_code(status) == KEEL_INTERNAL)
        status = status_as(status, KEEL_INVALID_ARGUMENT);
    if (status)
        return keel_status_wrap(status, "the GPU cannot use external->handle.fd, %d, as a dma-buf",
                                external->handle.fd);
    if (external->offset > size || external->size > size - external->offset) {
        device->hsa->hsa_amd_interop_unmap_buffer((void *)memory);
        return KEEL_ERROR(KEEL_OUT_OF_RANGE,
                          "external->offset is %llu and external->size %llu, but the descriptor "
                          "has %zu bytes",
                          (unsigned long long)external->offset, (unsigned long long)external->size,
                          size);
    }
    buffer->memory = device->base.caps.memory_types[0];
    buffer->handle = (uintptr_t)memory;
    atomic_store(&buffer->address, (uintptr_t)memory + external->offset);
    return NULL;
}

void amdgpu_descriptor_forget(keel_buffer_t *buffer)
{
    amdgpu_device(buffer->device)
        ->hsa->hsa_amd_interop_unmap_buffer((void *)(uintptr_t)buffer->handle);
}
