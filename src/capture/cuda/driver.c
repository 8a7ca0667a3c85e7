// SPDX-License-Identifier: Apache-2.0
#include "capture/cuda/driver.h"

#include <dlfcn.h>
#include <string.h>

#include "capture/library.h"
#include "capture/mode.h"
#include "trace/trace.h"

const char *const cuda_names[CUDA_COUNT] = {
#define FUNCTION(name) [CUDA_##name] = #name,
#include "capture/cuda/driver.def"
#undef FUNCTION
};
_Atomic(cuda_fn) cuda_reals[CUDA_COUNT];

cuda_fn cuda_look(cuda_index_t index)
{
    library_t library;
    dlsym_find();
    if (!dlsym_real) return NULL;
    cuda_fn found = (cuda_fn)dlsym_real(RTLD_NEXT, cuda_names[index]);
    if (!found && library_find("libcuda.so", &library))
        found = (cuda_fn)dlsym_real(library.handle, cuda_names[index]);
    cuda_fn known = NULL; // meanwhile another thread may have it
    if (!found || atomic_compare_exchange_strong(&cuda_reals[index], &known, found)) return found;
    return known;
}

// The name may be that of several functions: those for a default stream of each thread, and later
// versions. Which of them was found is told by what its library has by their names.
static cuda_index_t index_find(const char *name, cuda_fn found)
{
    size_t length = strlen(name);
    void *library = NULL;
    for (int i = 0; i < CUDA_COUNT; i++) {
        if (strncmp(cuda_names[i], name, length) != 0) continue;
        if (found == cuda_ours[i]) break;            // it was caught before
        if (!library) library = library_keep(found); // ours is to call it
        if (library && (cuda_fn)dlsym_real(library, cuda_names[i]) == found) return (cuda_index_t)i;
    }
    return CUDA_COUNT;
}

void *cuda_catch(const char *name, void *found)
{
    dlsym_find();
    if (!name || !found || !dlsym_real || !trace_is_on() || !capture_mode()->launches) return found;
    cuda_index_t index = index_find(name, (cuda_fn)found);
    cuda_fn known = NULL;
    if (index == CUDA_COUNT) return found;
    if (atomic_compare_exchange_strong(&cuda_reals[index], &known, (cuda_fn)found) ||
        known == (cuda_fn)found)
        return (void *)cuda_ours[index];
    return found;
}

void *cuda_dlsym_choose(void *handle, const char *name)
{
    if (strncmp(name, "cu", 2) != 0) return NULL;
    int index = 0;
    while (index < CUDA_COUNT && strcmp(cuda_names[index], name) != 0) index++;
    void *found = index == CUDA_COUNT ? NULL : dlsym_real(handle, name);
    if (!found) return NULL;
    // Ours is found in the place of the driver's; one that does not have it must seem not to.
    if ((cuda_fn)found == cuda_ours[index])
        return cuda_real((cuda_index_t)index) ? found : DLSYM_MISSING;
    return cuda_catch(name, found);
}

const char *cuda_kernel_name(void *kernel)
{
    static const char *const names[] = {"cuFuncGetName", "cuKernelGetName"};
    const char *text = NULL;
    void *library = NULL;
    for (int i = 0; !library && i < CUDA_COUNT; i++) {
        cuda_fn known = atomic_load_explicit(&cuda_reals[i], memory_order_relaxed);
        if (known) library = library_keep(known);
    }
    // A launch takes a kernel of either kind.
    for (size_t i = 0; library && i < sizeof names / sizeof *names; i++) {
        int (*get)(const char **, void *) =
            (int (*)(const char **, void *))(uintptr_t)dlsym_real(library, names[i]);
        if (get && get(&text, kernel) == 0 && text) return text;
    }
    return "a kernel";
}
