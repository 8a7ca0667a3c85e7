// SPDX-License-Identifier: Apache-2.0
#include "cuda/tool.h"

#include "cuda/base.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>

static _Atomic(const sim_tool_t *) watching;

void simCudaWatch(const sim_tool_t *tool)
{
    atomic_store(&watching, tool);
}

const sim_tool_t *tool_get(void)
{
    return atomic_load_explicit(&watching, memory_order_acquire);
}

// As the vendor's driver: what fails is passed over.
void tool_inject(void)
{
    const char *path = getenv("CUDA_INJECTION64_PATH");
    void *library = path && *path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (path && *path && !library) complain("CUDA_INJECTION64_PATH: %s", dlerror());
    void *symbol = library ? dlsym(library, "InitializeInjection") : NULL;
    int (*begin)(void) = (int (*)(void))(uintptr_t)symbol;
    if (begin) begin();
}
