// SPDX-License-Identifier: Apache-2.0
#include "suite/other.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void *library_of(const char *uri)
{
    char path[1024];
    const char *option = strstr(uri, "lib=");
    if (!option) return NULL;
    snprintf(path, sizeof path, "%.*s", (int)strcspn(option + 4, "&"), option + 4);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

const other_side_t *other_side(const char *uri)
{
    static other_side_t side;
    void *library = library_of(uri);
    if (side.create || !library) return &side;
    void *create = dlsym(library, "simSemaphoreCreate");
    void *signal = dlsym(library, "simSemaphoreSignal"),
         *value = dlsym(library, "simSemaphoreValue");
    if (!create || !signal || !value) return &side;
    memcpy(&side.create, &create, sizeof create);
    memcpy(&side.signal, &signal, sizeof signal);
    memcpy(&side.value, &value, sizeof value);
    return &side;
}
