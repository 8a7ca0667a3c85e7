// SPDX-License-Identifier: Apache-2.0
// The thread of a device, which goes on with runs, and ends the device when it is lost.
#include <sched.h>

#include "drivers/metal/queue/queue.h"

// The device's thread is in here, and no other goes on with runs.
static void device_settle(keel_device_t *base)
{
    metal_device_t *device = metal_device(base);
    while (atomic_load(&device->runs.handlers)) {
        metal_worker(device);
        sched_yield(); // until Metal has called the handlers of what it gives up
    }
    metal_worker(device);
}

// Ends the device if it has failed.
static void device_lose(metal_device_t *device)
{
    keel_status_t failed = atomic_load(&device->failed);
    if (!failed || device->losing) return;
    device->losing = true;
    keel_device_lose(&device->base, keel_status_retain(failed), device_settle);
}

uint64_t metal_worker(void *device)
{
    const metal_api_t *api = metal_device(device)->api;
    void *pool = metal_enter(api);
    device_lose(device);
    metal_stops_go_on(device);
    runs_work(&metal_device(device)->runs);
    metal_leave(api, pool);
    return KEEL_FOREVER;
}

void metal_worker_lose(metal_device_t *device, keel_status_t status)
{
    keel_status_t none = NULL;
    if (atomic_compare_exchange_strong(&device->failed, &none, keel_status_retain(status)))
        helper_wake(&device->runs.worker);
    else
        keel_status_release(status);
}
