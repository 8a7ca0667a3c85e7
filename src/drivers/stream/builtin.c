// SPDX-License-Identifier: Apache-2.0
// The machine's own kernels, and the clock that one of them reads.
#include "drivers/stream/stream.h"

keel_status_t stream_builtins_load(stream_device_t *device)
{
    const stream_api_t *api = device->api;
    stream_builtins_t *builtins = &device->builtins;
    void *data = NULL;
    KEEL_TRY(
        api->module_load(device->vendor, api->builtin_image(device->vendor), &builtins->module));
    for (int i = 0; i < STREAM_BUILTINS; i++) {
        uint32_t local_memory;
        KEEL_TRY(api->module_function(device->vendor, builtins->module, api->builtin_names[i],
                                      &builtins->functions[i], &local_memory));
    }
    KEEL_TRY(api->stream_create(device->vendor, device->limits.greatest, &device->side));
    KEEL_TRY(stream_host_alloc(device, 64, &data, &device->clock.address));
    device->clock.data = data;
    return NULL;
}

void stream_builtins_unload(stream_device_t *device)
{
    const stream_api_t *api = device->api;
    if (device->clock.data) api->free_host(device->vendor, device->clock.data);
    if (device->side) api->stream_destroy(device->vendor, device->side);
    if (device->builtins.module) api->module_unload(device->vendor, device->builtins.module);
}

uint64_t stream_device_clock(keel_device_t *base)
{
    stream_device_t *device = stream_device(base);
    stream_timestamp_args_t arguments = {device->clock.address};
    stream_launch_t launch;
    stream_entered_t entered;
    uint64_t now = 0;
    if (!stream_enter(device, &entered)) return now;
    stream_builtin_launch(device, STREAM_TIMESTAMP, &arguments, sizeof arguments, &launch);
    lock_enter(&device->clock_lock); // one reading at a time has the place to itself
    keel_status_t status = device->api->launch(device->vendor, device->side, &launch);
    if (!status) status = stream_device_drain(device, device->side);
    if (!status) now = *(volatile uint64_t *)(void *)device->clock.data;
    lock_leave(&device->clock_lock);
    stream_leave(&entered);
    keel_status_release(stream_device_note(device, status));
    return now;
}
