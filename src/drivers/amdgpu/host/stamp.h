// SPDX-License-Identifier: Apache-2.0
// Times of packets, in slots that the packet processor completes (device/ring.h).
#ifndef KEEL_SRC_DRIVERS_AMDGPU_HOST_STAMP_H_
#define KEEL_SRC_DRIVERS_AMDGPU_HOST_STAMP_H_

#include "drivers/amdgpu/device/ring.h"
#include "drivers/amdgpu/host/amdgpu.h"

// Sets a slot to what the GPU expects.
static inline void amdgpu_slot_reset(ring_slot_t *slot)
{
    *slot = (ring_slot_t){.signal = RING_SIGNAL, .open = 1};
}

static inline bool amdgpu_slot_is_complete(ring_slot_t *slot)
{
    // acquire: pairs with who closed it, the GPU or its packet processor.
    return !PROTOCOL_LOAD(&slot->open, __ATOMIC_ACQUIRE);
}

// A time of a GPU's clock, as the trace has times.
uint64_t amdgpu_boot_ns(const amdgpu_device_t *device, uint32_t node, uint64_t ticks);
// A command of a run has ended, or one of its packets: puts its times into the trace. The first one
// has all the bytes.
void amdgpu_command_record(const amdgpu_run_t *run, const keel_command_t *command,
                           const keel_cmd_execute_t *execute, uint32_t packet,
                           const ring_slot_t *slot);

#endif
