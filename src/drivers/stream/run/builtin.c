// SPDX-License-Identifier: Apache-2.0
// The core's own kernels, and the clock that one of them reads.
#include "base/memory.h"
#include "base/status.h"
#include "drivers/stream/run/run.h"

struct stream_builtins_t {
    stream_module_h module;
    stream_function_h functions[STREAM_BUILTINS];
};

keel_status_t stream_builtins_load(stream_device_t *device)
{
    const stream_api_t *api = device->api;
    struct stream_builtins_t *builtins = device->builtins = mem_zalloc(sizeof *builtins);
    if (!builtins) return status_no_memory();
    KEEL_TRY(
        api->module_load(device->vendor, api->builtin_image(device->vendor), 0, &builtins->module));
    static const uint32_t needs[STREAM_BUILTINS] = {
        [STREAM_GRID] = STREAM_UPDATABLE,
        [STREAM_BRANCH] = STREAM_CONDITIONS,
        [STREAM_REBIND] = STREAM_UPDATABLE,
    };
    for (int i = 0; i < STREAM_BUILTINS; i++) {
        uint32_t local_memory;
        if (needs[i] & ~device->limits.features) continue;
        KEEL_TRY(api->module_function(device->vendor, builtins->module, api->builtin_names[i],
                                      &builtins->functions[i], &local_memory));
    }
    return api->stream_create(device->vendor, device->limits.greatest, &device->side);
}

void stream_builtins_unload(stream_device_t *device)
{
    const stream_api_t *api = device->api;
    struct stream_builtins_t *builtins = device->builtins;
    stream_entered_t entered;
    if (builtins && stream_enter(device, &entered)) {
        if (device->side) api->stream_destroy(device->vendor, device->side);
        if (builtins->module) api->module_unload(device->vendor, builtins->module);
        stream_leave(&entered);
    }
    mem_free(builtins);
}

void stream_builtin_launch(const stream_device_t *device, stream_builtin_t builtin,
                           const void *arguments, uint32_t size, stream_launch_t *launch)
{
    *launch = (stream_launch_t){
        .function = device->builtins->functions[builtin],
        .groups = {1, 1, 1},
        .group_size = {1, 1, 1},
        .arguments = arguments,
        .size = size,
    };
}

// A tick of a clock of so many kHz takes 10^6 / kHz nanoseconds.
builtin_timestamp_t stream_timestamp_make(const stream_device_t *device, uint64_t target)
{
    uint32_t khz = device->limits.clock_khz;
    return (builtin_timestamp_t){.target = target, .ns = khz ? 1000000 : 0, .ticks = khz};
}

static keel_status_t clock_read(stream_device_t *device, const block_t *block)
{
    builtin_timestamp_t arguments = stream_timestamp_make(device, block->address);
    stream_launch_t launch;
    stream_builtin_launch(device, STREAM_TIMESTAMP, &arguments, sizeof arguments, &launch);
    KEEL_TRY(device->api->launch(device->vendor, device->side, &launch));
    return stream_device_drain(device, device->side);
}

keel_status_t stream_device_clock(keel_device_t *base, uint64_t *now_ns)
{
    stream_device_t *device = stream_device(base);
    block_t *block = NULL;
    stream_entered_t entered;
    if (!stream_enter(device, &entered)) return stream_device_lost(device);
    keel_status_t status = stream_block_acquire(device, sizeof *now_ns, &block);
    if (!status) status = clock_read(device, block);
    if (!status) *now_ns = *(volatile uint64_t *)(void *)block->data;
    stream_leave(&entered);
    status = stream_device_note(device, status);
    stream_blocks_return(device, block);
    return status;
}
