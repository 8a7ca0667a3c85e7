// SPDX-License-Identifier: Apache-2.0
// Several GPUs as one device, each of them a node. They run the same code, so that an executable is
// loaded once for all, and each uses the memory of all, as if it were its own.
#include <string.h>

#include "base/status.h"
#include "drivers/amdgpu/host/base/device.h"

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
