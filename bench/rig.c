// SPDX-License-Identifier: Apache-2.0
#include "rig.h"

#include <stdlib.h>
#include <string.h>

extern const unsigned char keel_embed_bench_kernels[];
extern const uint64_t keel_embed_bench_kernels_size;
extern const unsigned char keel_embed_bench_host_kernels[];
extern const uint64_t keel_embed_bench_host_kernels_size;

enum { WAIT_SECONDS = 10 };

// Where threads have their places, the device has one worker, on the second processor.
static keel_status_t rig_uri(const setting_t *setting, char *uri, size_t size)
{
    const char *base = setting->job.uri ? setting->job.uri : setting->device;
    place_t place = setting->job.place;
    if ((place == PLACE_APART || place == PLACE_BESIDE) && !strcmp(base, "cpu://")) {
        int cpu = place_cpu(1);
        if (cpu < 0) return KEEL_ERROR(KEEL_UNSUPPORTED, "needs two processors");
        snprintf(uri, size, "cpu://?threads=1&cpus=%d", cpu);
    } else if (setting->threads && !setting->job.uri) {
        snprintf(uri, size, "%s%sthreads=%u", base, strchr(base, '?') ? "&" : "?",
                 setting->threads);
    } else {
        snprintf(uri, size, "%s", base);
    }
    return NULL;
}

static keel_status_t rig_open_with(rig_t *rig, const setting_t *setting, bool regions)
{
    char uri[256];
    keel_executable_options_t image = {.data = keel_embed_bench_kernels,
                                       .size = keel_embed_bench_kernels_size,
                                       .name = "bench kernels"};
    KEEL_TRY(rig_uri(setting, uri, sizeof uri));
    KEEL_TRY(keel_device_open(uri, NULL, &rig->device));
    rig->queue = keel_device_queue(rig->device, 0);
    if (!regions && keel_device_caps(rig->device)->bits & KEEL_CAP_KERNEL_STATUS) {
        image.data = keel_embed_bench_host_kernels;
        image.size = keel_embed_bench_host_kernels_size;
    }
    KEEL_TRY(keel_executable_load(rig->device, &image, &rig->executable));
    if (!setting->job.kernel) return NULL;
    return keel_executable_entry(rig->executable, setting->job.kernel, &rig->entry);
}

keel_status_t rig_open(rig_t *rig, const setting_t *setting)
{
    return rig_open_with(rig, setting, false);
}

keel_status_t rig_open_regions(rig_t *rig, const setting_t *setting)
{
    return rig_open_with(rig, setting, true);
}

void rig_close(rig_t *rig)
{
    keel_executable_release(rig->executable);
    keel_device_release(rig->device);
    *rig = (rig_t){0};
}

keel_status_t rig_wait(keel_point_t point)
{
    return keel_wait(KEEL_POINTS(point), KEEL_ALL, WAIT_SECONDS * UINT64_C(1000000000));
}

static _Thread_local uint64_t allocations;

static void *counted_resize(void *user, void *old, size_t size)
{
    allocations++;
    return realloc(old, size);
}

static void counted_free(void *user, void *memory)
{
    free(memory);
}

void rig_watch(void)
{
    keel_allocator_set(&(keel_allocator_t){.resize = counted_resize, .free = counted_free});
}

uint64_t rig_allocations(void)
{
    return allocations;
}
