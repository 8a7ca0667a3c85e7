// SPDX-License-Identifier: Apache-2.0
// A thread of a device that looks at its semaphores (remote.h) while threads sleep for them: from
// time to time, or when the driver's notification wakes it.
#ifndef KEEL_SRC_KIT_POLLER_H_
#define KEEL_SRC_KIT_POLLER_H_

#include "kit/helper.h"
#include "kit/remote.h"

typedef struct poller_t {
    helper_t helper;
    uint64_t period_ns; // KEEL_FOREVER: only when it is woken
    lock_t lock;        // for the list
    remote_list_t awaited;
} poller_t;

// `name` is the thread's, `period_ns` how often it looks while there is something to look for:
// KEEL_FOREVER if the driver wakes it each time the device has signalled or failed something.
void poller_init(poller_t *poller, const char *name, uint64_t period_ns);
// Starts the thread if it is not there. KEEL_RESOURCE_EXHAUSTED if there is none to be had. Call it
// where a semaphore is made, which can still fail; poller_watch cannot.
keel_status_t poller_start(poller_t *poller) KEEL_MUST_USE;
// Looks at the semaphore until no thread sleeps for it: for remote_ops_t.watch.
void poller_watch(poller_t *poller, remote_t *remote);
// Looks now. Any thread, never blocks: for notifications.
void poller_wake(poller_t *poller);
// The semaphore is about to be freed: for remote_ops_t.destroy, but not in the child of a fork.
void poller_forget(poller_t *poller, remote_t *remote);
// Ends the thread: for device_close. What is awaited then fails with the device.
void poller_stop(poller_t *poller);

#endif
