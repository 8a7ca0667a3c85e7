// SPDX-License-Identifier: Apache-2.0
#include "capture/hip/real.h"

#include <dlfcn.h>
#include <string.h>

#include "capture/library.h"
#include "capture/mode.h"
#include "trace/trace.h"

const char *const hip_names[HIP_COUNT] = {
#define CALL(name, stream, kernel, parameters, arguments) [HIP_##name] = #name,
#include "capture/hip/calls.def"
#undef CALL
#define OTHER(name) [HIP_##name] = #name,
#include "capture/hip/others.def"
#undef OTHER
};
_Atomic(hip_fn) hip_reals[HIP_COUNT];

hip_fn hip_look(hip_index_t index)
{
    dlsym_find();
    if (!dlsym_real) return NULL;
    hip_fn found = (hip_fn)dlsym_real(RTLD_NEXT, hip_names[index]);
    if (!found) {
        library_t library;
        if (library_find(HIP_LIBRARY, &library))
            found = (hip_fn)dlsym_real(library.handle, hip_names[index]);
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

hip_fn hip_catch(const char *name, hip_fn real)
{
    hip_index_t index = hip_index(name);
    hip_fn known = NULL;
    if (index == HIP_COUNT) return real;
    if (atomic_compare_exchange_strong(&hip_reals[index], &known, real))
        library_keep(real); // our function calls it from now on
    else if (known != real)
        return real;
    return hip_ours[index];
}

void *hip_dlsym_choose(void *handle, const char *name)
{
    hip_index_t index = hip_index(name);
    hip_fn found = index == HIP_COUNT ? NULL : (hip_fn)dlsym_real(handle, name);
    if (!found) return NULL;
    // Ours is found in the place of HIP's; a HIP that does not have it must seem not to.
    if (found == hip_ours[index]) return hip_real(index) ? (void *)found : DLSYM_MISSING;
    return trace_is_on() && capture_mode()->calls ? (void *)hip_catch(name, found) : NULL;
}
