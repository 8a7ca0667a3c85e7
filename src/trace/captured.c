// SPDX-License-Identifier: Apache-2.0
#include "trace/captured.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

bool trace_is_captured(const char *runtime)
{
    void *library = dlopen("libkeeltrace.so", RTLD_LAZY | RTLD_NOLOAD);
    if (!library) return false;
    bool (*records)(const char *) =
        (bool (*)(const char *))(uintptr_t)dlsym(library, "keeltrace_records");
    bool captured = records && records(runtime);
    dlclose(library);
    return captured;
}
