// SPDX-License-Identifier: Apache-2.0
#include "drivers/metal/executable/module.h"

#include <string.h>

#include "base/fork.h"
#include "base/memory.h"
#include "base/status.h"
#include "drivers/metal/executable/cross.h"

typedef struct module_t {
    cache_item_t item;
    id library;  // retained; NULL: SPIR-V
    lock_t lock; // for the list
    metal_pipeline_t *first;
} module_t;

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

keel_image_kind_t metal_image_kind(const keel_image_t *image)
{
    if (image->kind != KEEL_IMAGE_UNKNOWN) return image->kind;
    if (image->size >= 4 && !memcmp(image->data, "MTLB", 4)) return KEEL_IMAGE_METALLIB;
    keel_image_kind_t kind = image_recognise(image->data, image->size);
    return kind == KEEL_IMAGE_UNKNOWN && is_text(image) ? KEEL_IMAGE_MSL : kind;
}

id metal_module_library(const cache_item_t *module)
{
    return ((const module_t *)module)->library;
}

static void pipeline_free(const metal_api_t *api, metal_pipeline_t *pipeline, bool ours)
{
    while (ours && pipeline->encoder_count)
        mtl_release(api, pipeline->encoders[--pipeline->encoder_count]);
    if (ours) mtl_release(api, pipeline->function);
    if (ours) mtl_release(api, pipeline->state);
    if (ours) mtl_release(api, pipeline->indirect);
    mem_free(pipeline->name);
    mem_free(pipeline);
}

static keel_status_t refusal(const char *name, const char *why)
{
    return KEEL_ERROR(KEEL_CORRUPT, "Metal makes no pipeline of '%s': %s", name, why);
}

static keel_status_t state_make(metal_device_t *device, id library, const char *function_name,
                                metal_pipeline_t *pipeline)
{
    const metal_api_t *api = device->api;
    id error = NULL, name = mtl_string(api, api->string_class, function_name);
    pipeline->function = mtl_new_function(api, library, name);
    if (!pipeline->function) return refusal(pipeline->name, "the text has no such kernel");
    pipeline->state = metal_state_make(device, pipeline->function, &error);
    if (!pipeline->state) return refusal(pipeline->name, metal_text(api, error));
    pipeline->threads = mtl_pipeline_threads(api, pipeline->state);
    pipeline->local = mtl_pipeline_local(api, pipeline->state);
    return NULL;
}

// Whether it is known what Metal makes of it, and that.
static bool indirect_is_known(metal_pipeline_t *pipeline, id *state)
{
    lock_enter(&pipeline->lock);
    bool known = pipeline->indirect || pipeline->direct_only;
    *state = pipeline->indirect;
    lock_leave(&pipeline->lock);
    return known;
}

// Compiling may take long: no lock is held meanwhile.
id metal_pipeline_indirect(metal_device_t *device, metal_pipeline_t *pipeline)
{
    id state = NULL;
    if (indirect_is_known(pipeline, &state)) return state;
    id made = metal_state_make_indirect(device, pipeline->function);
    lock_enter(&pipeline->lock);
    bool first = !pipeline->indirect;
    if (first) pipeline->indirect = made;
    pipeline->direct_only = !pipeline->indirect;
    state = pipeline->indirect;
    lock_leave(&pipeline->lock);
    if (!first) mtl_release(device->api, made); // another thread was faster
    return state;
}

static keel_status_t pipeline_make(metal_device_t *device, id library, const char *name,
                                   const char *function_name, metal_pipeline_t **made)
{
    metal_pipeline_t *pipeline = *made = mem_zalloc(sizeof *pipeline);
    if (!pipeline) return status_no_memory();
    pipeline->name = mem_copy_text(name);
    keel_status_t status =
        pipeline->name ? state_make(device, library, function_name, pipeline) : status_no_memory();
    if (status) pipeline_free(device->api, pipeline, true);
    return status;
}

// The one of that name; if there is none, `made` from now on.
static metal_pipeline_t *pipeline_join(module_t *module, const char *name, metal_pipeline_t *made)
{
    lock_enter(&module->lock);
    metal_pipeline_t *found = module->first;
    while (found && strcmp(found->name, name) != 0) found = found->next;
    if (!found && made) {
        made->next = module->first;
        module->first = found = made;
    }
    lock_leave(&module->lock);
    return found;
}

keel_status_t metal_module_find(cache_item_t *item, const char *name, metal_pipeline_t **pipeline)
{
    module_t *module = (module_t *)item;
    metal_device_t *device = item->cache->owner;
    metal_pipeline_t *made = NULL;
    *pipeline = pipeline_join(module, name, NULL);
    if (*pipeline) return NULL;
    if (!module->library) return refusal(name, "the module has no such entry point");
    KEEL_TRY(pipeline_make(device, module->library, name, name, &made));
    *pipeline = pipeline_join(module, name, made);
    if (*pipeline != made) pipeline_free(device->api, made, true); // another thread was faster
    return NULL;
}

// Exact arithmetic, as all other devices have it: by itself Metal's compiler assumes that no number
// is infinite or none, and divides roughly.
static keel_status_t library_make(metal_device_t *device, const char *text, id *library)
{
    const metal_api_t *api = device->api;
    id error = NULL, options = mtl_new(api, api->options_class);
    mtl_set_fast_math(api, options, false);
    *library = metal_library_make(device, text, options, &error);
    mtl_release(api, options);
    if (*library) return NULL;
    return KEEL_ERROR(KEEL_CORRUPT, "Metal does not compile the text: %s", metal_text(api, error));
}

// Texts of Objective-C end in a zero byte.
static keel_status_t text_load(metal_device_t *device, const keel_image_t *image, id *library)
{
    char *text = mem_alloc(image->size + 1);
    if (!text) return status_no_memory();
    memcpy(text, image->data, image->size);
    text[image->size] = 0;
    keel_status_t status = library_make(device, text, library);
    mem_free(text);
    return status;
}

static keel_status_t compiled_load(metal_device_t *device, const keel_image_t *image, id *library)
{
    const metal_api_t *api = device->api;
    if (!api->dispatch_data_create)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "the system has no dispatch_data_create");
    id error = NULL, data = api->dispatch_data_create(image->data, image->size, NULL, NULL);
    *library = data ? metal_library_load(device, data, &error) : NULL;
    if (data) api->dispatch_release(data);
    if (*library) return NULL;
    return KEEL_ERROR(KEEL_CORRUPT, "Metal does not take the library: %s", metal_text(api, error));
}

// One of the entry points of a module of SPIR-V.
static keel_status_t shader_load(module_t *module, metal_device_t *device,
                                 const keel_image_t *image, const keel_image_entry_info_t *entry)
{
    char *text = NULL;
    bool sizes = false;
    id library = NULL;
    metal_pipeline_t *made = NULL;
    KEEL_TRY(metal_cross(device, image, entry, &text, &sizes));
    keel_status_t status = library_make(device, text, &library);
    mem_free(text);
    KEEL_TRY(status);
    status = pipeline_make(device, library, entry->name, METAL_CROSS_NAME, &made);
    mtl_release(device->api, library);
    KEEL_TRY(status);
    made->sizes = sizes;
    made->next = module->first;
    module->first = made;
    return NULL;
}

static keel_status_t shaders_load(module_t *module, metal_device_t *device,
                                  const keel_image_t *image)
{
    image_info_t info;
    KEEL_TRY(image_read(image->data, image->size, &info));
    keel_status_t status = NULL;
    for (uint32_t i = 0; !status && i < info.entry_count; i++)
        status = shader_load(module, device, image, &info.entries[i]);
    image_info_finish(&info);
    return status;
}

static keel_status_t module_load(cache_item_t *item, const keel_image_t *image)
{
    module_t *module = (module_t *)item;
    metal_device_t *device = item->cache->owner;
    switch (metal_image_kind(image)) {
    case KEEL_IMAGE_MSL: return text_load(device, image, &module->library);
    case KEEL_IMAGE_METALLIB: return compiled_load(device, image, &module->library);
    default: return shaders_load(module, device, image);
    }
}

static void module_unload(cache_item_t *item)
{
    module_t *module = (module_t *)item;
    const metal_device_t *device = item->cache->owner;
    bool ours = fork_is_ours(item->generation);
    if (ours) mtl_release(device->api, module->library);
    for (metal_pipeline_t *pipeline; (pipeline = module->first) != NULL;) {
        module->first = pipeline->next;
        pipeline_free(device->api, pipeline, ours);
    }
}

const cache_class_t metal_module_class = {sizeof(module_t), module_load, module_unload, true};
