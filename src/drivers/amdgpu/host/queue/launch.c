// SPDX-License-Identifier: Apache-2.0
// Kernels as packets of a run. Packets of a run may run at the same time, unless a barrier came
// between them: then the next one has the barrier bit.
#include <string.h>

#include "base/status.h"
#include "drivers/amdgpu/host/queue/queue.h"

void amdgpu_packet_make(const amdgpu_launch_t *launch, uint64_t arguments, uint32_t fences,
                        hsa_kernel_dispatch_packet_t *packet)
{
    *packet = (hsa_kernel_dispatch_packet_t){
        .header = (uint16_t)(HSA_PACKET_TYPE_KERNEL_DISPATCH | fences),
        .setup = 3,
        .workgroup_size_x = (uint16_t)launch->group_size[0],
        .workgroup_size_y = (uint16_t)launch->group_size[1],
        .workgroup_size_z = (uint16_t)launch->group_size[2],
        .grid_size_x = launch->groups[0] * launch->group_size[0],
        .grid_size_y = launch->groups[1] * launch->group_size[1],
        .grid_size_z = launch->groups[2] * launch->group_size[2],
        .private_segment_size = launch->kernel->item,
        .group_segment_size = launch->local,
        .kernel_object = launch->kernel->object,
        .kernarg_address = (void *)(uintptr_t)arguments,
    };
}

// What the run waited for is acquired at system scope by all packets that may begin first. Those
// behind a barrier have one of these before them, and only the GPU's own work since. The packet of
// amdgpu_flight_commit releases what all of them wrote.
static uint32_t fences_of(amdgpu_run_t *run)
{
    run->behind |= run->base.barrier && run->packets;
    return (run->behind ? AMDGPU_ACQUIRE_AGENT : AMDGPU_ACQUIRE_SYSTEM) | AMDGPU_RELEASE_AGENT;
}

keel_status_t amdgpu_launch(amdgpu_run_t *run, const amdgpu_launch_t *launch)
{
    const hsa_symbols_t *hsa = amdgpu_run_device(run)->hsa;
    hsa_kernel_dispatch_packet_t packet;
    uint32_t given = launch->size, all = launch->kernel->arguments;
    uint64_t address;
    void *data;
    KEEL_TRY(amdgpu_signal_need(run));
    KEEL_TRY(amdgpu_run_piece(run, all > given ? all : given, &data, &address));
    memcpy(data, launch->arguments, given);
    if (all > given) memset((char *)data + given, 0, all - given);
    amdgpu_packet_make(launch, address, fences_of(run), &packet);
    packet.kernel_object = amdgpu_kernel_object(launch->kernel, amdgpu_run_node(run));
    amdgpu_stamp(run, &packet);
    uint32_t header = packet.header | (uint32_t)packet.setup << 16;
    if (run->base.barrier) header |= 1u << HSA_PACKET_HEADER_BARRIER;
    amdgpu_packet_write(hsa, amdgpu_queue(run->base.submission.queue)->queue, &packet, header);
    run->base.barrier = false;
    run->base.now = true;
    run->packets++;
    return NULL;
}
