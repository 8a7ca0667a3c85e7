// SPDX-License-Identifier: Apache-2.0
#include "suite/other.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include "suite/test.h"

static keel_external_semaphore_t descriptor(int fd)
{
    return (keel_external_semaphore_t){.kind = KEEL_SEMAPHORE_TIMELINE_FD, .handle.fd = fd};
}

static void software(const char *path, other_side_t *side)
{
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library) return;
    void *create = dlsym(library, "simSemaphoreCreate");
    void *signal = dlsym(library, "simSemaphoreSignal"),
         *value = dlsym(library, "simSemaphoreValue");
    if (!create || !signal || !value) return;
    memcpy(&side->create, &create, sizeof create);
    memcpy(&side->signal, &signal, sizeof signal);
    memcpy(&side->value, &value, sizeof value);
    side->close = close;
    side->external = descriptor;
}

const other_side_t *other_side(const char *uri)
{
    static other_side_t side;
    char path[1024];
    if (side.create) return &side;
    const char *named = uri_library(uri, path, sizeof path) ? path : NULL;
    if (!strncmp(uri, "metal:", 6))
        other_metal(named, &side);
    else
        software(named, &side);
    return &side;
}
