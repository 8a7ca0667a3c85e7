// SPDX-License-Identifier: Apache-2.0
// Where the rings of queues lie. HSA decides that for all queues of the process.
#include "base/status.h"
#include "drivers/amdgpu/host/amdgpu.h"

static keel_status_t ring_ask(const amdgpu_device_t *device, const hsa_queue_t *queue, bool *local)
{
    hsa_amd_pointer_info_t info = {.size = sizeof info};
    KEEL_TRY(
        HSA_CALL(device->hsa, hsa_amd_pointer_info, queue->base_address, &info, NULL, NULL, NULL));
    *local = amdgpu_device_has(device, info.agentOwner);
    return NULL;
}

keel_status_t amdgpu_rings_check(amdgpu_device_t *device, bool wanted)
{
    enum { SMALL = 64 }; // packets of a queue to look at
    hsa_queue_t *queue = NULL;
    bool local = false;
    KEEL_TRY(HSA_CALL(device->hsa, hsa_queue_create, device->agent, SMALL, HSA_QUEUE_TYPE_MULTI,
                      amdgpu_queue_failed, device, UINT32_MAX, UINT32_MAX, &queue));
    keel_status_t status = ring_ask(device, queue, &local);
    device->hsa->hsa_queue_destroy(queue);
    if (status || local == wanted) return status;
    if (!wanted)
        return KEEL_ERROR(KEEL_UNSUPPORTED,
                          "rings=host: the rings of queues lie in the GPU's memory; unset "
                          "HSA_ALLOCATE_QUEUE_DEV_MEM before the program starts");
    return KEEL_ERROR(KEEL_UNSUPPORTED,
                      "rings=device: the rings of queues lie in memory of the host; set "
                      "HSA_ALLOCATE_QUEUE_DEV_MEM=1 before the program starts, with ROCm 6.4 and a "
                      "GPU whose memory the host sees whole");
}
