// SPDX-License-Identifier: Apache-2.0
// The kernels' shared object, opened without Keel.
#include "rig.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const unsigned char keel_embed_bench_host_kernels[];
extern const uint64_t keel_embed_bench_host_kernels_size;

static const keel_host_library_t *library; // stays open

static keel_status_t image_open(void)
{
    char path[] = "/tmp/keel-bench-XXXXXX";
    size_t size = keel_embed_bench_host_kernels_size;
    int fd = mkstemp(path);
    if (fd < 0) return KEEL_ERROR(KEEL_IO, "cannot make %s", path);
    bool written = write(fd, keel_embed_bench_host_kernels, size) == (ssize_t)size;
    void *object = written ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    close(fd);
    unlink(path);
    if (object) library = dlsym(object, "keel_host_library");
    return library ? NULL : KEEL_ERROR(KEEL_IO, "cannot open the kernels: %s", dlerror());
}

keel_status_t image_kernel(const char *name, keel_host_kernel_fn *kernel)
{
    if (!library) KEEL_TRY(image_open());
    for (uint32_t i = 0; i < library->entry_count; i++) {
        if (strcmp(library->entries[i].name, name)) continue;
        *kernel = library->entries[i].kernel;
        return NULL;
    }
    return KEEL_ERROR(KEEL_NOT_FOUND, "no kernel is called %s", name);
}

keel_status_t spin_calibrate(uint32_t ns, uint64_t *iterations)
{
    static double ns_per_step;
    if (!ns_per_step) {
        keel_host_kernel_fn spin;
        KEEL_TRY(image_kernel("spin", &spin));
        uint64_t counter[SPIN_COUNTER_STRIDE] = {0};
        void *bindings[] = {counter};
        spin_constants_t constants = {100000};
        keel_host_dispatch_t dispatch = {.bindings = bindings, .constants = &constants};
        keel_host_group_t group = {0};
        double best = 1e18;
        for (int i = 0; i < 20; i++) {
            uint64_t start = keel_now_ns();
            spin(&dispatch, &group);
            double took = (double)(keel_now_ns() - start);
            if (took < best) best = took;
        }
        ns_per_step = best / (double)constants.iterations;
    }
    *iterations = (uint64_t)(ns / ns_per_step);
    return NULL;
}
