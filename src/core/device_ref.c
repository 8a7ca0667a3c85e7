// SPDX-License-Identifier: Apache-2.0
#include "core/device_ref.h"

#include "base/live.h"
#include "base/memory.h"
#include "base/status.h"
#include "kit/object.h"

void device_hold(keel_device_t *device)
{
    object_retain(&device->object);
}

void device_drop(keel_device_t *device)
{
    if (!device || !object_release(&device->object)) return;
    char *uri = device->uri, *name = device->name;
    mem_free(atomic_load(&device->calls));
    keel_status_release(atomic_exchange(&device->ended, NULL)); // no wait is left
    mem_free(device->queues);
    mem_free(device->pools);
    device->ops->device_destroy(device); // which may have to name it in an error
    mem_free(uri);
    mem_free(name);
    live_add(LIVE_DEVICE, -1);
}
