// SPDX-License-Identifier: Apache-2.0
// Executables: MSL as text, out of a container that says what its kernels take. Metal compiles it
// when it is loaded, and the pipelines are made then.
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "drivers/metal/metal.h"
#include "executable/entries.h"
#include "kit/object.h"

typedef struct metal_executable_t {
    keel_executable_t base;
    entries_t entries;
    metal_kernel_t *kernels; // owned, as is the next
    void **kernel_pointers;
} metal_executable_t;

uint32_t metal_executable_rank(keel_device_t *device, keel_image_kind_t kind, const char *target)
{
    (void)device;
    return kind == KEEL_IMAGE_MSL && strcmp(target, "msl") == 0 ? KEEL_RANK_EXACT : 0;
}

static keel_status_t kernel_refusal(const keel_entry_info_t *entry, const char *why)
{
    return KEEL_ERROR(KEEL_CORRUPT, "Metal makes no pipeline of '%s': %s", entry->name, why);
}

// A group that is larger than the pipeline takes would not be run, and Metal would not say so.
static keel_status_t group_check(const keel_entry_info_t *entry, unsigned long most)
{
    uint64_t items = (uint64_t)entry->group_size[0] * entry->group_size[1] * entry->group_size[2];
    if (items <= most) return NULL;
    return KEEL_ERROR(
        KEEL_UNSUPPORTED,
        "entry point '%s' has groups of %llu items; on this device Metal runs it with "
        "%lu at most",
        entry->name, (unsigned long long)items, most);
}

static keel_status_t kernel_make(metal_device_t *device, id library, const keel_entry_info_t *entry,
                                 metal_kernel_t *kernel)
{
    const metal_api_t *api = device->api;
    id error = NULL;
    id function = mtl_new_function(api, library, mtl_string(api, api->string_class, entry->name));
    if (!function) return kernel_refusal(entry, "the text has no such kernel");
    kernel->pipeline = mtl_new_pipeline(api, device->device, function, &error);
    mtl_release(api, function);
    if (!kernel->pipeline) return kernel_refusal(entry, metal_text(api, error));
    return group_check(entry, mtl_pipeline_threads(api, kernel->pipeline));
}

// Texts of Objective-C end in a zero byte.
static keel_status_t library_make(metal_device_t *device, const keel_image_t *image, id *library)
{
    const metal_api_t *api = device->api;
    char *text = mem_alloc(image->size + 1);
    if (!text) return status_no_memory();
    memcpy(text, image->data, image->size);
    text[image->size] = 0;
    id error = NULL, source = mtl_string(api, api->string_class, text);
    mem_free(text);
    *library = mtl_new_library(api, device->device, source, NULL, &error);
    if (*library) return NULL;
    return KEEL_ERROR(KEEL_CORRUPT, "Metal does not compile the text: %s", metal_text(api, error));
}

static keel_status_t executable_init(metal_executable_t *e, metal_device_t *device,
                                     const keel_image_t *image)
{
    if (!image->entries)
        return KEEL_ERROR(KEEL_UNSUPPORTED,
                          "metal:// takes MSL out of a container, which says what kernels take");
    KEEL_TRY(entries_read(&e->entries, &device->base, image));
    uint32_t count = e->base.entry_count = e->entries.count;
    e->base.entries = e->entries.entries;
    e->base.bindings = e->entries.bindings;
    e->kernels = mem_zalloc(count * sizeof *e->kernels);
    e->base.kernels = e->kernel_pointers = mem_zalloc(count * sizeof *e->kernel_pointers);
    if (!e->kernels || !e->kernel_pointers) return status_no_memory();
    id library = NULL;
    KEEL_TRY(library_make(device, image, &library));
    keel_status_t status = NULL;
    for (uint32_t i = 0; i < count && !status; i++) {
        e->kernel_pointers[i] = &e->kernels[i];
        if (e->entries.abis[i] != KEEL_ABI_DIRECT)
            status = KEEL_ERROR(KEEL_UNSUPPORTED,
                                "entry point '%s' takes a block of its own making, which metal:// "
                                "does not give yet",
                                e->entries.entries[i].name);
        else
            status = kernel_make(device, library, &e->entries.entries[i], &e->kernels[i]);
    }
    mtl_release(device->api, library);
    return status;
}

keel_status_t metal_executable_load(keel_device_t *device, const keel_image_t *image,
                                    keel_executable_t **executable)
{
    metal_executable_t *e = mem_zalloc(sizeof *e);
    if (!e) return status_no_memory();
    metal_device_t *d = metal_device(device);
    void *pool = metal_enter(d->api);
    keel_status_t status = executable_init(e, d, image);
    if (status)
        for (uint32_t i = 0; e->kernels && i < e->base.entry_count; i++)
            mtl_release(d->api, e->kernels[i].pipeline);
    metal_leave(d->api, pool);
    if (!status) {
        *executable = &e->base;
        return NULL;
    }
    mem_free(e->kernels);
    mem_free(e->kernel_pointers);
    entries_finish(&e->entries);
    mem_free(e);
    return status;
}

void metal_executable_unload(keel_executable_t *executable)
{
    metal_executable_t *e = (metal_executable_t *)(void *)executable;
    if (object_is_ours(&executable->object)) {
        const metal_api_t *api = metal_device(executable->device)->api;
        void *pool = metal_enter(api);
        for (uint32_t i = 0; i < e->base.entry_count; i++) mtl_release(api, e->kernels[i].pipeline);
        metal_leave(api, pool);
    }
    mem_free(e->kernels);
    mem_free(e->kernel_pointers);
    entries_finish(&e->entries);
    mem_free(e);
}
