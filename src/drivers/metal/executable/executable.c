// SPDX-License-Identifier: Apache-2.0
// Executables: MSL as text, a library that Apple's compiler made of it, or SPIR-V, of which a text
// is made for each entry point. A container says what the kernels take, SPIR-V does so itself. What
// came alone of the other two has kernels that take blocks of their own. Metal compiles texts when
// they are loaded, and the pipelines are made then (module.c).
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "drivers/metal/executable/module.h"
#include "drivers/metal/executable/variables.h"
#include "drivers/metal/memory/memory.h"
#include "executable/entries.h"
#include "executable/kind.h"
#include "kit/object.h"

typedef struct metal_executable_t {
    keel_executable_t base;
    cache_item_t *loaded; // owned
    entries_t entries;
    metal_variables_t variables;
    struct metal_memory_t *memory; // of these; NULL: there are none
    metal_kernel_t *kernels;       // owned, as is the next
    void **kernel_pointers;
} metal_executable_t;

uint32_t metal_executable_rank(keel_device_t *device, keel_image_kind_t kind, const char *target)
{
    bool takes = metal_device(device)->api->dispatch_data_create;
    if (kind == KEEL_IMAGE_MSL && strcmp(target, "msl") == 0) return KEEL_RANK_EXACT;
    if (kind == KEEL_IMAGE_SPIRV) return KEEL_RANK_PORTABLE;
    // One more: there is nothing to compile.
    bool compiled = kind == KEEL_IMAGE_METALLIB && strcmp(target, "metallib") == 0;
    return compiled && takes ? KEEL_RANK_EXACT + 1 : 0;
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

static keel_status_t variables_make(metal_executable_t *e, metal_device_t *device)
{
    uint64_t size = e->variables.size;
    if (!size) return NULL;
    id made = mtl_new_buffer(device->api, device->device, size, METAL_SHARED | METAL_UNTRACKED);
    KEEL_TRY(metal_memory_add(device, made, size, &e->memory));
    memcpy(mtl_contents(device->api, made), e->variables.values, size);
    return NULL;
}

// Room for what is kept of each entry point.
static keel_status_t kernels_alloc(metal_executable_t *e)
{
    uint32_t count = e->base.entry_count = e->entries.count;
    e->base.entries = e->entries.entries;
    e->base.bindings = e->entries.bindings;
    e->kernels = mem_zalloc(count * sizeof *e->kernels);
    e->base.kernels = e->kernel_pointers = mem_zalloc(count * sizeof *e->kernel_pointers);
    if (!e->kernels || !e->kernel_pointers) return status_no_memory();
    for (uint32_t i = 0; i < count; i++) {
        e->kernel_pointers[i] = &e->kernels[i];
        e->kernels[i].bound = e->entries.abis[i] == KEEL_ABI_BOUND;
        e->kernels[i].launched = e->kernels[i].bound || e->variables.launched;
        if (e->memory) e->kernels[i].variables = metal_memory_buffer(e->memory);
    }
    return NULL;
}

// Names of the kernels that the library has, for an image that came alone.
static keel_status_t names_read(metal_executable_t *e, const metal_api_t *api, id library)
{
    enum { KERNEL = 3 }; // MTLFunctionTypeKernel
    id all = mtl_function_names(api, library);
    uint32_t count = (uint32_t)mtl_count(api, all), kept = 0;
    const char **names = mem_zalloc((count + 1) * sizeof *names);
    if (!names) return status_no_memory();
    for (uint32_t i = 0; i < count; i++) {
        id name = mtl_at(api, all, i), function = mtl_new_function(api, library, name);
        if (mtl_function_type(api, function) == KERNEL) names[kept++] = mtl_utf8(api, name);
        mtl_release(api, function);
    }
    keel_status_t status = kept ? entries_name(&e->entries, names, kept)
                                : KEEL_ERROR(KEEL_CORRUPT, "the library has no kernel");
    mem_free(names);
    return status;
}

static keel_status_t kernels_find(metal_executable_t *e, bool prefix)
{
    for (uint32_t i = 0; i < e->base.entry_count; i++) {
        const keel_entry_info_t *entry = &e->entries.entries[i];
        metal_kernel_t *kernel = &e->kernels[i];
        char name[512];
        snprintf(name, sizeof name, "%s%s", prefix ? "keel_" : "", entry->name);
        KEEL_TRY(metal_module_find(e->loaded, name, &kernel->code));
        KEEL_TRY(group_check(entry, kernel->code->threads));
    }
    return NULL;
}

// What the text says of its variables; it need not end in a zero byte.
static keel_status_t variables_load(metal_executable_t *e, metal_device_t *device,
                                    const keel_image_t *image)
{
    char *text = mem_alloc(image->size + 1);
    if (!text) return status_no_memory();
    memcpy(text, image->data, image->size);
    text[image->size] = 0;
    keel_status_t status = metal_variables_read(&e->variables, text);
    mem_free(text);
    return status ? status : variables_make(e, device);
}

static keel_status_t entries_load(metal_executable_t *e, metal_device_t *device,
                                  const keel_image_t *image)
{
    if (image->entries) return entries_read(&e->entries, &device->base, image);
    return names_read(e, device->api, metal_module_library(e->loaded));
}

static keel_status_t kind_check(keel_image_kind_t kind)
{
    switch (kind) {
    case KEEL_IMAGE_MSL:
    case KEEL_IMAGE_METALLIB:
    case KEEL_IMAGE_SPIRV: return NULL;
    case KEEL_IMAGE_UNKNOWN:
        return KEEL_ERROR(KEEL_CORRUPT, "it is neither a container, a library of Metal's nor "
                                        "SPIR-V, and no text with a kernel");
    default:
        return KEEL_ERROR(KEEL_UNSUPPORTED, "it is %s; the device needs msl, metallib or spirv",
                          image_kind_name(kind));
    }
}

// A module of SPIR-V says more than a container does. What it binds may be refused, so that comes
// first.
static keel_status_t executable_init(metal_executable_t *e, metal_device_t *device,
                                     const keel_image_t *image)
{
    keel_image_kind_t kind = metal_image_kind(image);
    KEEL_TRY(kind_check(kind));
    bool shaders = kind == KEEL_IMAGE_SPIRV;
    keel_image_t alone = {.target = "", .data = image->data, .size = image->size};
    if (kind == KEEL_IMAGE_MSL) KEEL_TRY(variables_load(e, device, image));
    if (shaders) KEEL_TRY(entries_read(&e->entries, &device->base, &alone));
    KEEL_TRY(cache_load(&device->modules, image, &e->loaded));
    if (!shaders) KEEL_TRY(entries_load(e, device, image));
    KEEL_TRY(kernels_alloc(e));
    return kernels_find(e, image->entries && e->variables.by_keel);
}

// Within a pool.
static void executable_release(metal_executable_t *e, metal_device_t *device)
{
    metal_memory_remove(device, e->memory);
    cache_unload(e->loaded);
}

static void executable_free(metal_executable_t *e)
{
    mem_free(e->kernels);
    mem_free(e->kernel_pointers);
    metal_variables_finish(&e->variables);
    entries_finish(&e->entries);
    mem_free(e);
}

keel_status_t metal_executable_load(keel_device_t *device, const keel_image_t *image,
                                    keel_executable_t **executable)
{
    metal_executable_t *e = mem_zalloc(sizeof *e);
    if (!e) return status_no_memory();
    metal_device_t *d = metal_device(device);
    void *pool = metal_enter(d->api);
    keel_status_t status = executable_init(e, d, image);
    if (status) executable_release(e, d);
    metal_leave(d->api, pool);
    if (!status) {
        *executable = &e->base;
        return NULL;
    }
    executable_free(e);
    return status;
}

void metal_executable_unload(keel_executable_t *executable)
{
    metal_executable_t *e = (metal_executable_t *)(void *)executable;
    if (object_is_ours(&executable->object)) {
        metal_device_t *device = metal_device(executable->device);
        void *pool = metal_enter(device->api);
        executable_release(e, device);
        metal_leave(device->api, pool);
    } else {
        cache_unload(e->loaded);
    }
    executable_free(e);
}

keel_status_t metal_executable_global(keel_executable_t *executable, const char *name,
                                      keel_external_buffer_t *where)
{
    const metal_executable_t *e = (const metal_executable_t *)(const void *)executable;
    const metal_variable_t *found = metal_variables_find(&e->variables, name);
    if (!found)
        return KEEL_ERROR(KEEL_NOT_FOUND, "'%s' has no global '%s'", executable->name, name);
    *where =
        (keel_external_buffer_t){.kind = KEEL_EXTERNAL_DEVICE,
                                 .handle.device = metal_memory_address(e->memory) + found->offset,
                                 .size = found->size};
    return NULL;
}

keel_status_t metal_executable_write(keel_executable_t *executable,
                                     const keel_external_buffer_t *where, const void *data)
{
    const metal_executable_t *e = (const metal_executable_t *)(const void *)executable;
    const metal_api_t *api = metal_device(executable->device)->api;
    uint64_t at = where->handle.device - metal_memory_address(e->memory);
    void *pool = metal_enter(api);
    memcpy((char *)mtl_contents(api, metal_memory_buffer(e->memory)) + at, data, where->size);
    metal_leave(api, pool);
    return NULL;
}
