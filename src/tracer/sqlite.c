// SPDX-License-Identifier: Apache-2.0
#include "tracer/sqlite.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

#define NAME(name) {"sqlite3_" #name, offsetof(sqlite_t, name)}
static const struct {
    const char *name;
    size_t offset;
} functions[] = {
    NAME(open_v2),      NAME(close),         NAME(exec),        NAME(prepare_v2),  NAME(finalize),
    NAME(step),         NAME(reset),         NAME(bind_int64),  NAME(bind_double), NAME(bind_text),
    NAME(column_int64), NAME(column_double), NAME(column_text), NAME(errmsg),
};

keel_status_t sqlite_open(const sqlite_t **sqlite)
{
    static sqlite_t found;
    *sqlite = &found;
    if (found.open_v2) return NULL;
#ifdef __APPLE__
    void *library = dlopen("libsqlite3.dylib", RTLD_NOW | RTLD_LOCAL);
#else
    void *library = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL);
#endif
    if (!library)
        return KEEL_ERROR(
            KEEL_UNSUPPORTED,
            "a database needs SQLite, which is not installed here (%s); on Debian and "
            "Ubuntu: apt install libsqlite3-0",
            dlerror());
    sqlite_t all;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *function = dlsym(library, functions[i].name);
        if (!function)
            return KEEL_ERROR(KEEL_UNSUPPORTED, "the SQLite that is installed here has no %s",
                              functions[i].name);
        memcpy((char *)&all + functions[i].offset, &function, sizeof function);
    }
    found = all;
    return NULL;
}
