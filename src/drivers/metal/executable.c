// SPDX-License-Identifier: Apache-2.0
// Executables: MSL as text, a library that Apple's compiler made of it, or SPIR-V, of which a text
// is made for each entry point. A container says what the kernels take, SPIR-V does so itself. What
// came alone of the other two has kernels that take blocks of their own. Metal compiles texts when
// they are loaded, and the pipelines are made then.
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "drivers/metal/cross.h"
#include "drivers/metal/variables.h"
#include "executable/entries.h"
#include "kit/object.h"

typedef struct metal_executable_t {
    keel_executable_t base;
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

// Where argument buffers take addresses, the function is not needed any more.
static keel_status_t kernel_make(metal_device_t *device, id library, const keel_entry_info_t *entry,
                                 const char *name, metal_kernel_t *kernel)
{
    const metal_api_t *api = device->api;
    id error = NULL,
       function = mtl_new_function(api, library, mtl_string(api, api->string_class, name));
    if (!function) return kernel_refusal(entry, "the text has no such kernel");
    kernel->pipeline = mtl_new_pipeline(api, device->device, function, &error);
    if (kernel->pipeline && kernel->bound && device->encoded && entry->bindings)
        kernel->function = function;
    else
        mtl_release(api, function);
    if (!kernel->pipeline) return kernel_refusal(entry, metal_text(api, error));
    kernel->threads = mtl_pipeline_threads(api, kernel->pipeline);
    return group_check(entry, kernel->threads);
}

// Exact arithmetic, as all other devices have it: by itself Metal's compiler assumes that no number
// is infinite or none, and divides roughly.
static keel_status_t library_make(metal_device_t *device, const char *text, id *library)
{
    const metal_api_t *api = device->api;
    id error = NULL, source = mtl_string(api, api->string_class, text);
    id options = mtl_new(api, api->options_class);
    mtl_set_fast_math(api, options, false);
    *library = mtl_new_library(api, device->device, source, options, &error);
    mtl_release(api, options);
    if (*library) return NULL;
    return KEEL_ERROR(KEEL_CORRUPT, "Metal does not compile the text: %s", metal_text(api, error));
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

static keel_status_t kernels_make(metal_executable_t *e, metal_device_t *device,
                                  const keel_image_t *image, id library)
{
    keel_status_t status = image->entries ? entries_read(&e->entries, &device->base, image)
                                          : names_read(e, device->api, library);
    if (!status) status = kernels_alloc(e);
    for (uint32_t i = 0; !status && i < e->base.entry_count; i++) {
        const keel_entry_info_t *entry = &e->entries.entries[i];
        char name[512];
        bool prefix = image->entries && e->variables.by_keel;
        snprintf(name, sizeof name, "%s%s", prefix ? "keel_" : "", entry->name);
        status = kernel_make(device, library, entry, name, &e->kernels[i]);
    }
    mtl_release(device->api, library);
    return status;
}

// Texts of Objective-C end in a zero byte.
static keel_status_t text_load(metal_executable_t *e, metal_device_t *device,
                               const keel_image_t *image)
{
    char *text = mem_alloc(image->size + 1);
    if (!text) return status_no_memory();
    memcpy(text, image->data, image->size);
    text[image->size] = 0;
    keel_status_t status = metal_variables_read(&e->variables, text);
    if (!status) status = variables_make(e, device);
    id library = NULL;
    if (!status) status = library_make(device, text, &library);
    mem_free(text);
    return status ? status : kernels_make(e, device, image, library);
}

static keel_status_t compiled_load(metal_executable_t *e, metal_device_t *device,
                                   const keel_image_t *image)
{
    const metal_api_t *api = device->api;
    if (!api->dispatch_data_create)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "the system has no dispatch_data_create");
    id error = NULL, data = api->dispatch_data_create(image->data, image->size, NULL, NULL);
    id library = data ? mtl_new_library_of_data(api, device->device, data, &error) : NULL;
    if (data) api->dispatch_release(data);
    if (library) return kernels_make(e, device, image, library);
    return KEEL_ERROR(KEEL_CORRUPT, "Metal does not take the library: %s", metal_text(api, error));
}

// One of the entry points of a module of SPIR-V.
static keel_status_t shader_make(metal_executable_t *e, metal_device_t *device,
                                 const keel_image_t *image, const keel_image_entry_info_t *said,
                                 uint32_t index)
{
    char *text = NULL;
    id library = NULL;
    metal_kernel_t *kernel = &e->kernels[index];
    KEEL_TRY(metal_cross(device, image, said, &text, &kernel->sizes));
    keel_status_t status = library_make(device, text, &library);
    mem_free(text);
    KEEL_TRY(status);
    status = kernel_make(device, library, &e->entries.entries[index], METAL_CROSS_NAME, kernel);
    mtl_release(device->api, library);
    return status;
}

// The module tells more than a container does.
static keel_status_t module_load(metal_executable_t *e, metal_device_t *device,
                                 const keel_image_t *image)
{
    image_info_t info;
    keel_image_t alone = {.target = "", .data = image->data, .size = image->size};
    KEEL_TRY(entries_read(&e->entries, &device->base, &alone));
    KEEL_TRY(kernels_alloc(e));
    KEEL_TRY(image_read(image->data, image->size, &info));
    keel_status_t status = NULL;
    for (uint32_t i = 0; !status && i < info.entry_count; i++)
        status = shader_make(e, device, image, &info.entries[i], i);
    image_info_finish(&info);
    return status;
}

// Whether an image that came alone may be MSL.
static bool is_text(const keel_image_t *image)
{
    static const char word[] = "kernel";
    const char *at = image->data, *end = at + image->size;
    if (memchr(at, 0, image->size)) return false;
    for (; (size_t)(end - at) >= sizeof word - 1; at++)
        if (!memcmp(at, word, sizeof word - 1)) return true;
    return false;
}

// What it is: as the container says, or else as its bytes do.
static keel_image_kind_t kind_of(const keel_image_t *image)
{
    if (image->kind != KEEL_IMAGE_UNKNOWN) return image->kind;
    if (image->size >= 4 && !memcmp(image->data, "MTLB", 4)) return KEEL_IMAGE_METALLIB;
    keel_image_kind_t kind = image_recognise(image->data, image->size);
    return kind == KEEL_IMAGE_UNKNOWN && is_text(image) ? KEEL_IMAGE_MSL : kind;
}

static keel_status_t executable_init(metal_executable_t *e, metal_device_t *device,
                                     const keel_image_t *image)
{
    switch (kind_of(image)) {
    case KEEL_IMAGE_MSL: return text_load(e, device, image);
    case KEEL_IMAGE_METALLIB: return compiled_load(e, device, image);
    case KEEL_IMAGE_SPIRV: return module_load(e, device, image);
    case KEEL_IMAGE_UNKNOWN:
        return KEEL_ERROR(KEEL_CORRUPT, "it is neither a container, a library of Metal's nor "
                                        "SPIR-V, and no text with a kernel");
    default:
        return KEEL_ERROR(KEEL_UNSUPPORTED, "it is %s; the device needs msl, metallib or spirv",
                          image_kind_name(kind_of(image)));
    }
}

// Within a pool.
static void executable_release(metal_executable_t *e, metal_device_t *device)
{
    for (uint32_t i = 0; e->kernels && i < e->base.entry_count; i++) {
        metal_kernel_t *kernel = &e->kernels[i];
        mtl_release(device->api, kernel->pipeline);
        mtl_release(device->api, kernel->function);
        while (kernel->encoder_count)
            mtl_release(device->api, kernel->encoders[--kernel->encoder_count]);
    }
    metal_memory_remove(device, e->memory);
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
