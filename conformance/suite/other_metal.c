// SPDX-License-Identifier: Apache-2.0
// MTLSharedEvents of a program that knows nothing of Keel, which it makes, reads and signals by
// messages of its own.
#include "suite/other.h"

#include <dlfcn.h>
#include <stddef.h>

enum { EVENTS = 256 }; // of a test, at most

static struct {
    void *(*send)(void *object, void *selector, uint64_t value);
    void *(*selector)(const char *name);
    void *(*devices)(void);
    void *events[EVENTS];
    int count;
} metal;

static void *send(void *object, const char *name, uint64_t value)
{
    return metal.send(object, metal.selector(name), value);
}

static int event_value(int handle, uint64_t *value)
{
    *value = (uintptr_t)send(metal.events[handle], "signaledValue", 0);
    return 0;
}

static int event_signal(int handle, uint64_t value)
{
    uint64_t now;
    event_value(handle, &now);
    if (value <= now) return -1;
    send(metal.events[handle], "setSignaledValue:", value);
    return 0;
}

static int event_create(uint64_t value)
{
    if (metal.count == EVENTS) return -1;
    void *devices = metal.devices(), *event = NULL;
    void *device = send(devices, "objectAtIndex:", 0);
    // A message of the test's own may be the one that is made to fail.
    for (int tries = 0; !event && tries < 2; tries++) event = send(device, "newSharedEvent", 0);
    send(devices, "release", 0);
    if (!event) return -1;
    metal.events[metal.count] = event;
    if (value) event_signal(metal.count, value);
    return metal.count++;
}

static int event_close(int handle)
{
    send(metal.events[handle], "release", 0);
    return 0;
}

static keel_external_semaphore_t event_external(int handle)
{
    return (keel_external_semaphore_t){.kind = KEEL_SEMAPHORE_NATIVE,
                                       .handle.object = metal.events[handle]};
}

void other_metal(const char *path, other_side_t *side)
{
    if (!path) path = "/System/Library/Frameworks/Metal.framework/Metal";
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    *(void **)&metal.send = dlsym(library, "objc_msgSend");
    *(void **)&metal.selector = dlsym(library, "sel_registerName");
    *(void **)&metal.devices = dlsym(library, "MTLCopyAllDevices");
    if (!metal.send || !metal.selector || !metal.devices) return;
    *side = (other_side_t){event_create, event_signal, event_value, event_close, event_external};
}
