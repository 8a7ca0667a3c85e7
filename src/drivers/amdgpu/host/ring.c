// SPDX-License-Identifier: Apache-2.0
// Where the rings of queues lie. HSA decides that for all queues of a GPU.
#include "base/status.h"
#include "drivers/amdgpu/host/amdgpu.h"
#include "drivers/amdgpu/host/scheduler.h"

// A tool has a ring of its own, in memory of the host, in front of the hardware's.
static keel_status_t ring_ask(const amdgpu_device_t *device, const hsa_queue_t *queue, bool *local)
{
    hsa_amd_pointer_info_t info = {.size = sizeof info};
    if (amdgpu_queue_is_watched(queue))
        return KEEL_ERROR(KEEL_UNSUPPORTED,
                          "a tool watches the queues, so nothing tells where their rings lie; open "
                          "the device without the option rings");
    KEEL_TRY(
        HSA_CALL(device->hsa, hsa_amd_pointer_info, queue->base_address, &info, NULL, NULL, NULL));
    *local = amdgpu_device_has(device, info.agentOwner);
    return NULL;
}

static keel_status_t ring_check(amdgpu_device_t *device, uint32_t node, bool wanted)
{
    enum { SMALL = 64 }; // packets of a queue to look at
    hsa_queue_t *queue = NULL;
    bool local = false;
    KEEL_TRY(amdgpu_ring_make(device, node, SMALL, &queue));
    keel_status_t status = ring_ask(device, queue, &local);
    amdgpu_ring_destroy(device, queue);
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

keel_status_t amdgpu_rings_check(amdgpu_device_t *device, bool wanted)
{
    for (uint32_t i = 0; i < device->node_count; i++) KEEL_TRY(ring_check(device, i, wanted));
    return NULL;
}
