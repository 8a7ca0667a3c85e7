// SPDX-License-Identifier: Apache-2.0
// What all files know of a device: which GPUs it has, and whether it has failed.
#include "drivers/amdgpu/host/base/device.h"

#include "base/status.h"

bool amdgpu_device_has(const amdgpu_device_t *device, hsa_agent_t gpu)
{
    for (uint32_t i = 0; i < device->node_count; i++)
        if (device->agents[i].handle == gpu.handle) return true;
    return false;
}

void amdgpu_device_fail(amdgpu_device_t *device, keel_status_t cause)
{
    keel_status_t none = NULL, lost = status_as(cause, KEEL_DEVICE_LOST);
    if (atomic_compare_exchange_strong(&device->failed, &none, lost))
        helper_wake(&device->runs.worker);
    else
        keel_status_release(lost);
}

keel_status_t amdgpu_lost_cause(amdgpu_device_t *device)
{
    keel_status_t ended = atomic_load(&device->base.ended), failed = atomic_load(&device->failed);
    return failed ? keel_status_retain(ended ? ended : failed) : NULL;
}
