// SPDX-License-Identifier: Apache-2.0
// The functions of libdrm and libdrm_amdgpu that ROCm calls, in front of the libraries' own.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "amd/kfd/file.h"
#include "amd/kfd/kfd.h"

struct device {
    int file; // owned: the caller may close the one that it gave
    unsigned node;
};

struct object {
    uint64_t handle;
};

EXPORT int amdgpu_device_initialize(int file, uint32_t *major, uint32_t *minor, device_t **out)
{
    unsigned node = file_render_node(file);
    if (!node) return -EINVAL;
    device_t *device = malloc(sizeof *device);
    if (!device) return -ENOMEM;
    *device = (device_t){fcntl(file, F_DUPFD_CLOEXEC, 3), node};
    *major = 3;
    *minor = 57;
    *out = device;
    return 0;
}

EXPORT int amdgpu_device_deinitialize(device_t *device)
{
    close(device->file);
    free(device);
    return 0;
}

EXPORT int amdgpu_device_get_fd(device_t *device)
{
    return device->file;
}

EXPORT const char *amdgpu_get_marketing_name(device_t *device)
{
    return gpu_text(device->node);
}

EXPORT int amdgpu_query_gpu_info(device_t *device, drm_gpu_info_t *out)
{
    enum { FAMILY_AI = 141 };
    *out = (drm_gpu_info_t){
        .asic_id = gpu_device(device->node),
        .family_id = FAMILY_AI,
        .chip_external_rev = 0x3c,
        .num_shader_engines = 1,
        .num_shader_arrays_per_engine = 1,
        .gpu_counter_freq = gfx_clock_khz(gpu_gfx(device->node)),
        .gb_addr_cfg = GB_ADDR_CONFIG,
        .cu_active_number = gfx_units(gpu_gfx(device->node)),
    };
    return 0;
}

EXPORT int amdgpu_bo_import(device_t *device, int type, uint32_t shared, drm_import_t *out)
{
    if (type != DRM_HANDLE_DMABUF) return -EINVAL;
    object_t *object = malloc(sizeof *object);
    if (!object) return -ENOMEM;
    int error = memory_open((int)shared, device->node, &object->handle, &out->size);
    if (error) {
        free(object);
        return error;
    }
    out->buffer = object;
    return 0;
}

// A handle of the kernel has 32 bits; those of this driver repeat the GPU in the others.
EXPORT int amdgpu_bo_export(object_t *object, int type, uint32_t *out)
{
    kfd_export_dmabuf_t wanted = {.handle = object->handle};
    if (type == DRM_HANDLE_KMS) {
        *out = (uint32_t)object->handle;
        return 0;
    }
    if (type != DRM_HANDLE_DMABUF) return -EINVAL;
    int error = memory_export(&wanted);
    *out = wanted.dmabuf_fd;
    return error;
}

EXPORT int amdgpu_bo_free(object_t *object)
{
    int error = memory_free(&(kfd_free_memory_t){object->handle});
    free(object);
    return error;
}

EXPORT int amdgpu_bo_cpu_map(object_t *object, void **out)
{
    *out = memory_bytes(object->handle);
    return *out ? 0 : -EINVAL;
}

EXPORT int amdgpu_bo_va_op(object_t *object, uint64_t offset, uint64_t size, uint64_t address,
                           uint64_t flags, uint32_t operation)
{
    switch (operation) {
    case DRM_VA_MAP: return memory_place(object->handle, offset, size, address);
    case DRM_VA_UNMAP: return memory_unplace(object->handle, address);
    default: return -EINVAL;
    }
}

EXPORT int drmCommandWriteRead(int file, unsigned long command, void *data, unsigned long size)
{
    unsigned node = file_render_node(file);
    drm_gem_mmap_t *wanted = data;
    if (!node || command != DRM_GEM_MMAP || size < sizeof *wanted) {
        log_line(LOG_ERROR, "command %#lx of a render node is not modelled", command);
        return -EINVAL;
    }
    return memory_offset((uint64_t)(GPU_ID + node) << 32 | wanted->handle, &wanted->offset);
}
