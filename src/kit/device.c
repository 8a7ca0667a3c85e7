// SPDX-License-Identifier: Apache-2.0
#include "kit/device.h"

#include "kit/object.h"
#include "kit/submission.h"

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
    // seq_cst: pairs with waits_link, and with whoever has just listed a semaphore.
    if (!atomic_compare_exchange_strong(&device->ended, &earlier, cause)) {
        keel_status_release(cause);
        cause = earlier;
    }
    keel_status_retain(cause); // the last of those who are told may release the device
    for (keel_queue_t *q = device_next_queue(device, NULL); q; q = device_next_queue(device, q))
        submission_cancel_all(q, cause);
    settle(device);
    for (keel_semaphore_t *s = next_semaphore(device, NULL); s; s = next_semaphore(device, s))
        timeline_fail(s, keel_status_retain(cause));
    keel_status_release(cause);
}
