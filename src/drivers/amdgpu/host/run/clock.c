// SPDX-License-Identifier: Apache-2.0
// The clock of the GPU. A kernel of the driver's own reads it, in a queue beside those of the
// device.
#include "base/status.h"
#include "builtin/arguments.h"
#include "drivers/amdgpu/host/run/run.h"

static keel_status_t side_need(amdgpu_device_t *device)
{
    enum { SIZE = 64 };
    if (device->side) return NULL;
    return amdgpu_ring_make(device, 0, SIZE, &device->side);
}

void amdgpu_clock_inactivate(amdgpu_device_t *device)
{
    lock_enter(&device->side_lock);
    if (device->side) device->hsa->hsa_queue_inactivate(device->side);
    lock_leave(&device->side_lock);
}

void amdgpu_clock_close(amdgpu_device_t *device)
{
    if (device->side) amdgpu_ring_destroy(device, device->side);
    if (device->late_signal.handle) device->hsa->hsa_signal_destroy(device->late_signal);
}

enum { RESULT = 64 }; // where in a block the clock is, behind the arguments

// Beside the queues, whose work is none of its business. One thread at a time.
static keel_status_t clock_launch(amdgpu_device_t *device, const block_t *block,
                                  hsa_signal_t signal)
{
    const hsa_symbols_t *hsa = device->hsa;
    builtin_timestamp_t *arguments = (builtin_timestamp_t *)(void *)block->data;
    const amdgpu_launch_t launch = {
        .kernel = &device->builtins[AMDGPU_TIMESTAMP],
        .groups = {1, 1, 1},
        .group_size = {1, 1, 1},
    };
    hsa_kernel_dispatch_packet_t packet;
    *arguments = (builtin_timestamp_t){block->address + RESULT, 1000000, device->clock_khz};
    keel_status_t failed = atomic_load(&device->failed);
    if (failed) return keel_status_retain(failed);
    KEEL_TRY(side_need(device));
    // The host reads the clock when the packet has ended.
    amdgpu_packet_make(&launch, block->address, AMDGPU_ACQUIRE_AGENT | AMDGPU_RELEASE_SYSTEM,
                       &packet);
    packet.completion_signal = signal;
    uint64_t number = amdgpu_packet_write(hsa, device->side, &packet,
                                          packet.header | (uint32_t)packet.setup << 16);
    hsa->hsa_signal_store_screlease(device->side->doorbell_signal, (hsa_signal_value_t)number);
    return NULL;
}

// Where the device fails before the packet has ended, the GPU may still write: then the device
// keeps what it writes to.
static keel_status_t clock_read(amdgpu_device_t *device, block_t **block, hsa_signal_t *signal,
                                uint64_t *now_ns)
{
    lock_enter(&device->side_lock);
    keel_status_t status = clock_launch(device, *block, *signal);
    if (!status && !amdgpu_signal_await(device, *signal)) {
        status = keel_status_retain(atomic_load(&device->failed));
        amdgpu_late_keep(device, *block);
        device->late_signal = *signal;
        *block = NULL;
        signal->handle = 0;
    }
    lock_leave(&device->side_lock);
    if (!status) *now_ns = *(volatile uint64_t *)(void *)((*block)->data + RESULT);
    return status;
}

keel_status_t amdgpu_device_clock(keel_device_t *base, uint64_t *now_ns)
{
    amdgpu_device_t *device = amdgpu_device(base);
    hsa_signal_t signal = {0};
    block_t *block = NULL;
    enum { BYTES = 128 };
    KEEL_TRY(blocks_acquire(&device->blocks, BYTES, &block));
    keel_status_t status = HSA_CALL(device->hsa, hsa_signal_create, 1, 0, NULL, &signal);
    if (!status) status = clock_read(device, &block, &signal, now_ns);
    if (signal.handle) device->hsa->hsa_signal_destroy(signal);
    if (block) blocks_return(&device->blocks, block, true);
    return status;
}
