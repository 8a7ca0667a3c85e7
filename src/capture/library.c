// SPDX-License-Identifier: Apache-2.0
#include "capture/library.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

void *(*dlsym_real)(void *handle, const char *name);

// By a version, because without it our own would be found.
void dlsym_find(void)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
    for (size_t i = 0; !dlsym_real && i < sizeof versions / sizeof *versions; i++)
        dlsym_real = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", versions[i]);
}

typedef struct search_t {
    const char *name;
    library_t *library;
} search_t;

static int object_seen(struct dl_phdr_info *info, size_t size, void *user)
{
    const search_t *search = user;
    const char *slash = strrchr(info->dlpi_name, '/');
    if (strncmp(slash ? slash + 1 : info->dlpi_name, search->name, strlen(search->name)) != 0)
        return 0;
    snprintf(search->library->path, sizeof search->library->path, "%s", info->dlpi_name);
    return 1;
}

static void *path_keep(const char *path)
{
    return dlopen(path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

// The library may have been opened for one other library alone, as Python does it. Then a search
// through what all see does not find it.
bool library_find(const char *name, library_t *library)
{
    search_t search = {name, library};
    if (!dl_iterate_phdr(object_seen, &search)) return false;
    library->handle = path_keep(library->path);
    return library->handle != NULL;
}

void *library_keep(void (*function)(void))
{
    Dl_info info;
    return dladdr((void *)function, &info) && info.dli_fname ? path_keep(info.dli_fname) : NULL;
}
