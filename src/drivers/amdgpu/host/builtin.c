// SPDX-License-Identifier: Apache-2.0
// The driver's own kernels, and the clock that one of them reads.
#include "base/status.h"
#include "builtin/arguments.h"
#include "drivers/amdgpu/device/version.h"
#include "drivers/amdgpu/host/amdgpu.h"

// A bundle with a code object for each target, as device/make.sh makes it.
extern const unsigned char keel_embed_amdgpu_library[];
extern const uint64_t keel_embed_amdgpu_library_size;
// The same with the trace ring.
extern const unsigned char keel_embed_amdgpu_library_traced[];
extern const uint64_t keel_embed_amdgpu_library_traced_size;

static const char *const names[AMDGPU_BUILTINS] = {
    [AMDGPU_TIMESTAMP] = "keel_timestamp",
    [AMDGPU_FILL] = "keel_fill",
    [AMDGPU_COPY] = "keel_copy",
};

#define VERSION_PARTS(v)                                                                           \
    (unsigned)((v) >> 56), (unsigned)((v) >> 48 & 0xff), (unsigned)((v) >> 40 & 0xff),             \
        (unsigned)((v) >> 32 & 0xff), (unsigned)(v)

// Host and library have structs in common, so that they must be made of the same source.
static keel_status_t version_check(amdgpu_device_t *device)
{
    const uint64_t ours = LIBRARY_VERSION;
    uint64_t address = 0, theirs = 0;
    keel_status_t status =
        amdgpu_variable_find(device, device->library, "keel_library_version", &address);
    if (status) return keel_status_wrap(status, "the device library says no version");
    KEEL_TRY(HSA_CALL(device->hsa, hsa_memory_copy, &theirs, (const void *)(uintptr_t)address,
                      sizeof theirs));
    if (theirs == ours) return NULL;
    return KEEL_ERROR(
        KEEL_UNSUPPORTED,
        "the device library is of version %u.%u.%u-%u with layout %08x, the driver of "
        "%u.%u.%u-%u with layout %08x: both must be made of the same source "
        "(src/drivers/amdgpu/device/make.sh)",
        VERSION_PARTS(theirs), VERSION_PARTS(ours));
}

keel_status_t amdgpu_library_load(amdgpu_device_t *device, const void *data, size_t size)
{
    keel_status_t status = amdgpu_code_load(device, data, size, &device->library);
    if (status)
        return keel_status_wrap(status, "the driver's own kernels cannot be loaded for %s",
                                device->base.info.target);
    device->has_library = true;
    KEEL_TRY(version_check(device));
    for (int i = 0; i < AMDGPU_BUILTINS; i++)
        KEEL_TRY(amdgpu_kernel_find(device, device->library, names[i], &device->builtins[i]));
    return NULL;
}

keel_status_t amdgpu_builtins_load(amdgpu_device_t *device)
{
    if (device->traced)
        return amdgpu_library_load(device, keel_embed_amdgpu_library_traced,
                                   keel_embed_amdgpu_library_traced_size);
    return amdgpu_library_load(device, keel_embed_amdgpu_library, keel_embed_amdgpu_library_size);
}

void amdgpu_builtins_unload(amdgpu_device_t *device)
{
    if (device->has_library) device->hsa->hsa_executable_destroy(device->library);
    device->has_library = false;
}

static keel_status_t side_need(amdgpu_device_t *device)
{
    enum { SIZE = 64 };
    if (device->side) return NULL;
    return amdgpu_ring_make(device, 0, SIZE, &device->side);
}

void amdgpu_side_inactivate(amdgpu_device_t *device)
{
    lock_enter(&device->side_lock);
    if (device->side) device->hsa->hsa_queue_inactivate(device->side);
    lock_leave(&device->side_lock);
}

void amdgpu_side_close(amdgpu_device_t *device)
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
