// SPDX-License-Identifier: Apache-2.0
#include "kit/poller.h"

#include "base/clock.h"
#include "base/status.h"
#include "kit/submission.h"

static remote_t *entry_take(poller_t *poller)
{
    lock_enter(&poller->lock);
    remote_t *remote = remote_list_take(&poller->awaited);
    lock_leave(&poller->lock);
    return remote;
}

static void entry_add(poller_t *poller, remote_t *remote)
{
    lock_enter(&poller->lock);
    remote_list_add(&poller->awaited, remote);
    lock_leave(&poller->lock);
}

static uint64_t poller_work(void *argument)
{
    poller_t *poller = argument;
    lock_enter(&poller->lock);
    size_t count = poller->awaited.count;
    lock_leave(&poller->lock);
    bool more = false;
    // Each is off the list while it is looked at, and comes back if it is still awaited.
    while (count--) {
        remote_t *remote = entry_take(poller);
        if (!remote) continue;
        nest_t nest; // what is told may run code of the application, which may close the device
        submission_nest(&nest, remote->semaphore.device);
        remote_look(remote);
        submission_unnest(&nest);
        if (remote_awaited(remote) != UINT64_MAX) {
            entry_add(poller, remote);
            more = true;
        }
        keel_semaphore_release(&remote->semaphore);
    }
    return more && poller->period_ns != KEEL_FOREVER ? clock_deadline(poller->period_ns)
                                                     : KEEL_FOREVER;
}

void poller_init(poller_t *poller, const char *name, uint64_t period_ns)
{
    poller->period_ns = period_ns;
    helper_init(&poller->helper, name, poller_work, poller);
}

keel_status_t poller_start(poller_t *poller)
{
    if (helper_wake(&poller->helper)) return NULL;
    return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "there is no thread to look at semaphores");
}

void poller_wake(poller_t *poller)
{
    helper_wake(&poller->helper);
}

void poller_watch(poller_t *poller, remote_t *remote)
{
    entry_add(poller, remote);
    if (poller->period_ns != KEEL_FOREVER) poller_wake(poller);
}

void poller_forget(poller_t *poller, remote_t *remote)
{
    lock_enter(&poller->lock);
    remote_list_remove(&poller->awaited, remote);
    lock_leave(&poller->lock);
}

void poller_stop(poller_t *poller)
{
    helper_stop(&poller->helper);
}
