// SPDX-License-Identifier: Apache-2.0
// Plays a HIP that was built with rocprofiler-register: each function that it exports calls what is
// in its table, which it registers with its first use. It has no GPU: its functions note that they
// were called. PLAYED_HIP is its version, of which those before 7 have a shorter table.
#include "hip.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 547, SLOTS_6 = 476, VERSION_7 = 70000, VERSION = 70152 };

typedef void (*slot_fn)(void);
static struct {
    size_t size;
    slot_fn slots[SLOTS];
} table;

int rocprofiler_register_library_api_table(const char *name, uint32_t (*import)(void),
                                           uint32_t version, void **tables, uint64_t count,
                                           uint64_t *id);

static int called; // how often something of this file was

static int own_malloc(void **memory, size_t size)
{
    called++;
    *memory = &called;
    return size ? 0 : 1;
}

static int own_batch(size_t count, void *copies, void *failed, unsigned long long flags,
                     void *stream)
{
    called++;
    (void)copies, (void)failed;
    return count == 2 && flags == 3 && stream == &called ? 0 : 1;
}

static int own_prefetch(const void *memory, size_t size, hip_place_t place, unsigned flags,
                        void *stream)
{
    called++;
    (void)memory;
    return size == 4 && place.type == 1 && place.id == 7 && flags == 9 && stream == &called ? 0 : 1;
}

static int own_kernel(void **kernel, void *library, const char *name)
{
    static char kernels[2];
    called++;
    *kernel = &kernels[0];
    return library && strcmp(name, "add_one") == 0 ? 0 : 500;
}

static int own_function(void **function, void *kernel)
{
    called++;
    *function = (char *)kernel + 1;
    return 0;
}

static int own_launch(const void *config, void *function, void **parameters, void **extra)
{
    called++;
    (void)config, (void)function, (void)parameters, (void)extra;
    return 0;
}

static uint32_t import(void)
{
    const char *version = getenv("PLAYED_HIP");
    return version ? (uint32_t)strtoul(version, NULL, 10) : VERSION;
}

static void table_make(void)
{
    void *tables[] = {&table};
    uint64_t id = 0;
    table.size =
        import() < VERSION_7 ? sizeof table.size + SLOTS_6 * sizeof(slot_fn) : sizeof table;
    table.slots[215] = (slot_fn)own_malloc;
    table.slots[475] = (slot_fn)own_launch;
    table.slots[488] = (slot_fn)own_batch;
    table.slots[493] = (slot_fn)own_prefetch;
    table.slots[499] = (slot_fn)own_kernel;
    table.slots[516] = (slot_fn)own_function;
    rocprofiler_register_library_api_table("hip", import, import(), tables, 1, &id);
}

static slot_fn slot(int place)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, table_make);
    return table.slots[place];
}

int hipMalloc(void **memory, size_t size)
{
    return ((int (*)(void **, size_t))slot(215))(memory, size);
}

int hipDrvLaunchKernelEx(const void *config, void *function, void **parameters, void **extra)
{
    return ((int (*)(const void *, void *, void **, void **))slot(475))(config, function,
                                                                        parameters, extra);
}

int hipMemcpy3DBatchAsync(size_t count, void *copies, void *failed, unsigned long long flags,
                          void *stream)
{
    return ((int (*)(size_t, void *, void *, unsigned long long, void *))slot(488))(
        count, copies, failed, flags, stream);
}

int hipMemPrefetchAsync_v2(const void *memory, size_t size, hip_place_t place, unsigned flags,
                           void *stream)
{
    return ((int (*)(const void *, size_t, hip_place_t, unsigned, void *))slot(493))(
        memory, size, place, flags, stream);
}

int hipLibraryGetKernel(void **kernel, void *library, const char *name)
{
    return ((int (*)(void **, void *, const char *))slot(499))(kernel, library, name);
}

int hipKernelGetFunction(void **function, void *kernel)
{
    return ((int (*)(void **, void *))slot(516))(function, kernel);
}

const hip_functions_t *hip_own(void)
{
    static const hip_functions_t functions = {
        .malloc = hipMalloc,
        .launch = hipDrvLaunchKernelEx,
        .batch = hipMemcpy3DBatchAsync,
        .prefetch = hipMemPrefetchAsync_v2,
        .kernel = hipLibraryGetKernel,
        .function = hipKernelGetFunction,
        .called = &called,
    };
    return &functions;
}
