// SPDX-License-Identifier: Apache-2.0
// Several GPUs as one device, each of them a node. They run the same code, so that an executable is
// loaded once for all, and each uses the memory of all, as if it were its own.
#include <string.h>

#include "base/status.h"
#include "drivers/amdgpu/host/amdgpu.h"

bool amdgpu_pool_is_reached(const hsa_symbols_t *hsa, hsa_agent_t gpu, hsa_amd_memory_pool_t pool)
{
    hsa_amd_memory_pool_access_t access = HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED;
    hsa->hsa_amd_agent_memory_pool_get_info(gpu, pool, HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS,
                                            &access);
    return access != HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED;
}

static keel_status_t pair_check(const amdgpu_device_t *device, uint32_t a, uint32_t b)
{
    const amdgpu_node_t *first = &device->nodes[a], *second = &device->nodes[b];
    char targets[2][AMDGPU_TARGET];
    if (device->agents[a].handle == device->agents[b].handle)
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "GPU %d is named twice", first->ordinal);
    KEEL_TRY(amdgpu_agent_target(device->hsa, device->agents[a], targets[0]));
    KEEL_TRY(amdgpu_agent_target(device->hsa, device->agents[b], targets[1]));
    if (strcmp(targets[0], targets[1]) != 0)
        return KEEL_ERROR(KEEL_UNSUPPORTED,
                          "GPUs %d and %d cannot be one device: they run code for %s and for %s; "
                          "open each by itself",
                          first->ordinal, second->ordinal, targets[0], targets[1]);
    if (!amdgpu_pool_is_reached(device->hsa, device->agents[a], second->local) ||
        !amdgpu_pool_is_reached(device->hsa, device->agents[b], first->local))
        return KEEL_ERROR(KEEL_UNSUPPORTED,
                          "GPUs %d and %d cannot be one device: one of them cannot use the memory "
                          "of the other; open each by itself",
                          first->ordinal, second->ordinal);
    return NULL;
}

keel_status_t amdgpu_group_check(amdgpu_device_t *device)
{
    for (uint32_t i = 0; i < device->node_count; i++)
        KEEL_TRY(amdgpu_agent_memory(device->hsa, device->agents[i], &device->nodes[i].local,
                                     &device->nodes[i].memory));
    for (uint32_t i = 0; i < device->node_count; i++)
        for (uint32_t k = i + 1; k < device->node_count; k++) KEEL_TRY(pair_check(device, i, k));
    return NULL;
}

// What goes out is called by the first name that suits it.
static void dlpack_fill(amdgpu_device_t *device)
{
    enum { CPU = 1, ROCM = 10, ROCM_HOST = 11 }; // DLPack's numbers
    keel_dlpack_place_t *place = device->dlpack;
    *place++ = (keel_dlpack_place_t){ROCM_HOST, 0, KEEL_EVERY_NODE, KEEL_MEMORY_HOST_VISIBLE};
    for (uint32_t i = 0; i < device->node_count; i++)
        *place++ =
            (keel_dlpack_place_t){ROCM, device->nodes[i].ordinal, i, KEEL_MEMORY_DEVICE_LOCAL};
    *place++ = (keel_dlpack_place_t){CPU, 0, KEEL_EVERY_NODE, KEEL_MEMORY_HOST_VISIBLE};
    *place = (keel_dlpack_place_t){0}; // the end
    device->base.caps.dlpack = device->dlpack;
}

keel_status_t amdgpu_group_read(amdgpu_device_t *device)
{
    keel_caps_t *caps = &device->base.caps;
    keel_device_info_t *info = &device->base.info;
    caps->nodes = device->node_count;
    dlpack_fill(device);
    for (uint32_t i = 1; i < device->node_count; i++) {
        uint32_t units = 0;
        KEEL_TRY(HSA_CALL(device->hsa, hsa_agent_get_info, device->agents[i],
                          HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT, &units));
        caps->workers += units;
        if (device->nodes[i].memory < caps->max_buffer_size)
            caps->max_buffer_size = device->nodes[i].memory;
    }
    if (device->node_count == 1) return NULL;
    // Each of them has its own.
    info->has_uuid = info->has_numa_node = false;
    memset(info->uuid, 0, sizeof info->uuid);
    info->pci[0] = 0;
    info->numa_node = 0;
    return NULL;
}
