// SPDX-License-Identifier: Apache-2.0
#include "tracer/demangle.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef char *(*demangle_fn)(const char *name, char *out, size_t *size, int *status);

// The C++ library's own, which is opened once and kept; NULL: there is none.
static demangle_fn function_find(void)
{
    static const char *const libraries[] = {"libstdc++.so.6", "libc++abi.so.1", "libc++abi.dylib"};
    static demangle_fn found;
    static bool looked;
    for (size_t i = 0; !looked && !found && i < sizeof libraries / sizeof *libraries; i++) {
        void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_LOCAL);
        void *symbol = library ? dlsym(library, "__cxa_demangle") : NULL;
        found = (demangle_fn)(uintptr_t)symbol;
    }
    looked = true;
    return found;
}

char *demangle(const char *name)
{
    int status = 0;
    demangle_fn function = strncmp(name, "_Z", 2) == 0 ? function_find() : NULL;
    char *readable = function ? function(name, NULL, NULL, &status) : NULL;
    if (status == 0) return readable;
    free(readable);
    return NULL;
}
