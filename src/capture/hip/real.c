// SPDX-License-Identifier: Apache-2.0
#include "capture/hip/real.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

const char *const hip_names[HIP_COUNT] = {
#define CALL(name, stream, kernel, parameters, arguments) [HIP_##name] = #name,
#include "capture/hip/calls.def"
#undef CALL
#define OTHER(name) [HIP_##name] = #name,
#include "capture/hip/others.def"
#undef OTHER
};
_Atomic(hip_fn) hip_reals[HIP_COUNT];
void *(*hip_dlsym)(void *handle, const char *name);

// By a version, because without it our own would be found.
void hip_dlsym_find(void)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
    for (size_t i = 0; !hip_dlsym && i < sizeof versions / sizeof *versions; i++)
        hip_dlsym = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", versions[i]);
}

static int object_seen(struct dl_phdr_info *info, size_t size, void *user)
{
    hip_library_t *library = user;
    const char *slash = strrchr(info->dlpi_name, '/');
    if (strncmp(slash ? slash + 1 : info->dlpi_name, "libamdhip64.so", 14) != 0) return 0;
    snprintf(library->path, sizeof library->path, "%s", info->dlpi_name);
    return 1;
}

// The library may have been opened for one other library alone, as Python does it. Then a search
// through what all see does not find it.
bool hip_library(hip_library_t *library)
{
    if (!dl_iterate_phdr(object_seen, library)) return false;
    library->handle = dlopen(library->path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    return library->handle != NULL;
}

hip_fn hip_look(hip_index_t index)
{
    hip_dlsym_find();
    if (!hip_dlsym) return NULL;
    hip_fn found = (hip_fn)hip_dlsym(RTLD_NEXT, hip_names[index]);
    if (!found) {
        hip_library_t library;
        if (hip_library(&library)) found = (hip_fn)hip_dlsym(library.handle, hip_names[index]);
    }
    hip_fn known = NULL; // meanwhile another thread may have it, or HIP's own table
    if (!found || atomic_compare_exchange_strong(&hip_reals[index], &known, found)) return found;
    return known;
}

hip_index_t hip_index(const char *name)
{
    if (strncmp(name, "hip", 3) != 0 && strncmp(name, "_Z24hip", 7) != 0 &&
        strncmp(name, "__hip", 5) != 0)
        return HIP_COUNT;
    int index = 0;
    while (index < HIP_COUNT && strcmp(hip_names[index], name) != 0) index++;
    return (hip_index_t)index;
}

// Our function calls it from now on, so that its library must stay.
static void library_keep(hip_fn function)
{
    Dl_info info;
    if (dladdr((void *)function, &info) && info.dli_fname)
        (void)dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

hip_fn hip_catch(const char *name, hip_fn real)
{
    hip_index_t index = hip_index(name);
    hip_fn known = NULL;
    if (index == HIP_COUNT) return real;
    if (atomic_compare_exchange_strong(&hip_reals[index], &known, real))
        library_keep(real);
    else if (known != real)
        return real;
    return hip_ours[index];
}
