// SPDX-License-Identifier: Apache-2.0
// What rocprofiler-register does with the table of a library: it hands it to the tool that the
// process can see, if there is one.
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { SUCCESS = 0, NO_TOOL = 1, BAD_DEPENDENCY = 2, REFUSED = 3 };

typedef int (*set_table_fn)(const char *, uint64_t, uint64_t, void **, uint64_t);

__attribute__((visibility("default"))) int
rocprofiler_register_library_api_table(const char *name, uint32_t (*import)(void), uint32_t version,
                                       void **tables, uint64_t count, uint64_t *id);

int rocprofiler_register_library_api_table(const char *name, uint32_t (*import)(void),
                                           uint32_t version, void **tables, uint64_t count,
                                           uint64_t *id)
{
    static uint64_t instances;
    if (!name || !tables || !count || import() != version) return BAD_DEPENDENCY;
    if (!dlsym(RTLD_DEFAULT, "rocprofiler_configure")) return NO_TOOL;
    void *symbol = dlsym(RTLD_DEFAULT, "rocprofiler_set_api_table");
    if (!symbol) abort(); // as the vendor's
    *id = ++instances;
    return ((set_table_fn)(uintptr_t)symbol)(name, version, 0, tables, count) ? REFUSED : SUCCESS;
}
