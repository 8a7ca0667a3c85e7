// SPDX-License-Identifier: Apache-2.0
// Whether promises are worth their messages: a submission makes one only while the device has
// lately seen others that came to wait for work in flight.
#include "drivers/metal/queue/promise.h"
#include "drivers/metal/queue/queue.h"

enum { LATELY = 64 }; // submissions after one that had to wait

// Waits between devices: which device is to make promises for them is not known beforehand.
static struct {
    _Atomic uint32_t devices; // that are open
    _Atomic uint32_t lately;  // as metal_promises_t.lately
} between;

void metal_demand_open(void)
{
    atomic_fetch_add_explicit(&between.devices, 1, memory_order_relaxed);
}

void metal_demand_close(void)
{
    atomic_fetch_sub_explicit(&between.devices, 1, memory_order_relaxed);
}

// relaxed, here and in is_lately: nothing but cost hangs on these.
static void lately_set(metal_device_t *device, uint32_t lately, bool crossing)
{
    atomic_store_explicit(&device->promises.lately, lately, memory_order_relaxed);
    if (crossing) atomic_store_explicit(&device->promises.crossing, LATELY, memory_order_relaxed);
}

void metal_demand_between(void)
{
    if (atomic_load_explicit(&between.devices, memory_order_relaxed) < 2) return;
    bool again = atomic_load_explicit(&between.lately, memory_order_relaxed);
    atomic_store_explicit(&between.lately, again ? 1 + LATELY : 1, memory_order_relaxed);
}

// The first wait tells little.
void metal_demand_wait(metal_device_t *device, bool other)
{
    bool again = atomic_load_explicit(&device->promises.lately, memory_order_relaxed);
    lately_set(device, again ? 1 + LATELY : 1, again && other);
    if (other) metal_demand_between();
}

void metal_demand_ahead(metal_device_t *device, bool crossing)
{
    lately_set(device, 1 + LATELY, crossing);
}

// Whether to make a promise at all, or to signal an event, counted down.
static bool is_lately(_Atomic uint32_t *left, uint32_t above)
{
    uint32_t count = atomic_load_explicit(left, memory_order_relaxed);
    if (count <= above) return false;
    atomic_store_explicit(left, count - 1, memory_order_relaxed);
    return true;
}

bool metal_demand_take(metal_device_t *device, bool *signals)
{
    // relaxed: work that was submitted before the program has asked may be without.
    bool native = atomic_load_explicit(&device->promises.native, memory_order_relaxed);
    bool lately = is_lately(&device->promises.lately, 1);
    bool others = is_lately(&between.lately, 1);
    if (!lately && !others && !native) return false;
    bool crosses = is_lately(&device->promises.crossing, 0);
    *signals = crosses || others || native;
    return true;
}
