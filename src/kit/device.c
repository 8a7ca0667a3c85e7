// SPDX-License-Identifier: Apache-2.0
#include "kit/device.h"

#include <stdio.h>

#include "base/pci.h"
#include "kit/object.h"
#include "kit/pool.h"
#include "kit/submission.h"
#include "kit/watcher.h"

keel_queue_t *device_next_queue(keel_device_t *device, keel_queue_t *after)
{
    lock_enter(device_lock(device));
    keel_queue_t *queue = after ? after->link.next : device->all_queues;
    while (queue && !object_hold(&queue->object)) queue = queue->link.next;
    lock_leave(device_lock(device));
    keel_queue_release(after);
    return queue;
}

static keel_semaphore_t *next_semaphore(keel_device_t *device, keel_semaphore_t *after)
{
    lock_enter(device_lock(device));
    keel_semaphore_t *semaphore = after ? after->link.next : device->all_semaphores;
    while (semaphore && !object_hold(&semaphore->object)) semaphore = semaphore->link.next;
    lock_leave(device_lock(device));
    keel_semaphore_release(after);
    return semaphore;
}

void device_end(keel_device_t *device, keel_status_t cause, void (*settle)(keel_device_t *device))
{
    keel_status_t earlier = NULL;
    // seq_cst: pairs with waits_link, and with the thread that has just listed a semaphore.
    if (!atomic_compare_exchange_strong(&device->ended, &earlier, cause)) {
        keel_status_release(cause);
        cause = earlier;
    }
    keel_status_retain(cause); // the last of those who are told may release the device
    // First, so that they do not fail for want of deallocas, which end, too.
    for (keel_pool_t *p = pools_next(device, NULL); p; p = pools_next(device, p))
        pool_cancel(p, cause);
    for (keel_queue_t *q = device_next_queue(device, NULL); q; q = device_next_queue(device, q))
        submission_cancel_all(q, cause);
    for (keel_queue_t *q = device_next_queue(device, NULL); q; q = device_next_queue(device, q))
        if (device->ops->queue_cancel) device->ops->queue_cancel(q, cause);
    settle(device);
    // One that has been released here is no concern of other processes that share it.
    for (keel_semaphore_t *s = next_semaphore(device, NULL); s; s = next_semaphore(device, s))
        if (!watcher_is_last(s)) s->ops->fail(s, keel_status_retain(cause));
    keel_status_release(cause);
}

void device_withdraw(keel_device_t *device)
{
    for (keel_pool_t *p = pools_next(device, NULL); p; p = pools_next(device, p)) pool_withdraw(p);
}

void device_info_add_pci(keel_device_info_t *info, uint32_t maker)
{
    pci_device_t pci;
    pci_read(PCI_FOLDER, info->pci, &pci);
    if (pci.vendor != maker) return;
    info->has_numa_node = pci.numa_node >= 0;
    if (info->has_numa_node) info->numa_node = (uint32_t)pci.numa_node;
    info->link = pci.link;
    snprintf(info->driver, sizeof info->driver, "%s", pci.driver);
}

// What goes out is called by the first name that suits it. Tensors come in from any memory of the
// host's, and of managed memory by those who name a device with it.
void device_dlpack(const device_dlpack_t *types, keel_dlpack_place_t places[DEVICE_DLPACK])
{
    const uint32_t host = KEEL_MEMORY_HOST_VISIBLE, local = KEEL_MEMORY_DEVICE_LOCAL;
    const keel_dlpack_place_t all[] = {
        {types->managed, 0, KEEL_EVERY_NODE, local | host},
        {types->host, 0, KEEL_EVERY_NODE, host},
        {types->local, types->ordinal, KEEL_EVERY_NODE, local},
        {1, 0, KEEL_EVERY_NODE, host}, // kDLCPU
        {types->managed, types->ordinal, KEEL_EVERY_NODE, local | host},
    };
    int count = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].type) places[count++] = all[i];
    places[count] = (keel_dlpack_place_t){0}; // the end
}
