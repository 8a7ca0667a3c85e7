// SPDX-License-Identifier: Apache-2.0
// What a device has, and its end, which is the same for all that waits whether it is closed or
// lost.
#ifndef KEEL_SRC_KIT_DEVICE_H_
#define KEEL_SRC_KIT_DEVICE_H_

#include <keel/driver/driver.h>

#include "base/lock.h"

// For the device's lists of queues, semaphores and pools.
static inline lock_t *device_lock(keel_device_t *device)
{
    return (lock_t *)(void *)&device->lock;
}

_Static_assert(sizeof(lock_t) == sizeof(((keel_device_t *)0)->lock),
               "drivers see a lock as its word");

// The queue behind `after` (NULL: the first) that is not about to be destroyed, retained; `after`
// is released.
keel_queue_t *device_next_queue(keel_device_t *device, keel_queue_t *after);

// Ends every wait with `cause`, which is consumed; after an earlier end, with that one's.
// Allocas that wait for room fail, and submissions that wait, on the host and on the device
// (queue_cancel); then `settle` sees to the end of those that run; then the device's semaphores
// fail. Nothing waits from the call on: not what is submitted later, either. Waiters are called
// here, so no lock may be held.
void device_end(keel_device_t *device, keel_status_t cause, void (*settle)(keel_device_t *device));

// Notes that the device has so many bytes in use, for keel_memory_stats_t.peak.
static inline void device_peak(keel_device_t *device, uint64_t used)
{
    uint64_t peak = atomic_load(&device->peak);
    while (used > peak && !atomic_compare_exchange_weak(&device->peak, &peak, used)) {
    }
}

// A submission of the device was cancelled: it no longer waits for memory. No lock may be held.
void device_withdraw(keel_device_t *device);

// DLPack's numbers for memory of the device of that ordinal, of the host's that it can reach, and
// of managed memory; 0: it has none.
typedef struct device_dlpack_t {
    int32_t ordinal;
    int32_t local, host, managed;
} device_dlpack_t;

// Who makes devices on PCI, by the numbers of the PCI-SIG.
enum { PCI_NVIDIA = 0x10de, PCI_AMD = 0x1002 };
// What the system knows at info->pci: memory node, link and version of the driver, if that maker
// made what is there.
void device_info_add_pci(keel_device_info_t *info, uint32_t maker);

// What it calls the memory of a GPU, for keel_caps_t.dlpack.
enum { DEVICE_DLPACK = 6 };
void device_dlpack(const device_dlpack_t *types, keel_dlpack_place_t places[DEVICE_DLPACK]);

#endif
