// SPDX-License-Identifier: Apache-2.0
#include "drivers/metal/executable/cross.h"

#include <dlfcn.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "kit/library.h"

// SPIRV-Cross in C (its interface of version 0), as far as it is used.
typedef struct cross_context_t cross_context_t;
typedef struct cross_ir_t cross_ir_t;
typedef struct cross_compiler_t cross_compiler_t;
typedef struct cross_options_t cross_options_t;
typedef struct cross_resources_t cross_resources_t;
typedef struct cross_set_t cross_set_t;

typedef struct cross_resource_t {
    uint32_t id, base_type, type;
    const char *name;
} cross_resource_t;

typedef struct cross_binding_t {
    int stage;
    unsigned set, binding, buffer, texture, sampler;
} cross_binding_t;

// Numbers of its enumerations, and of SPIR-V's.
enum {
    BACKEND_MSL = 3,
    TAKE_OWNERSHIP = 1,
    UNIFORM_BUFFERS = 1,
    STORAGE_BUFFERS = 2,
    MODEL_COMPUTE = 5,
    DECORATION_BINDING = 33,
    DECORATION_SET = 34,
    OPTION_MSL = 0x8000000,
    OPTION_VERSION = OPTION_MSL | 17,
    OPTION_PLATFORM = OPTION_MSL | 31,
    OPTION_ARGUMENT_BUFFERS = OPTION_MSL | 32,
    OPTION_SIZES_INDEX = OPTION_MSL | 36,
    OPTION_DECORATION_BINDING = OPTION_MSL | 49,
    OPTION_IOS_SIMD = OPTION_MSL | 72,
    OPTION_EMULATE_SUBGROUPS = OPTION_MSL | 73,
    OPTION_SUBGROUP_SIZE = OPTION_MSL | 74
};
#define SET_OF_CONSTANTS      (~0u)
#define BINDING_OF_SIZES      (~2u)
#define BINDING_OF_THE_BUFFER (~3u)

// Results are 0 if all is well.
#define SYMBOLS(X)                                                                                 \
    X(int, context_create, (cross_context_t * *context))                                           \
    X(void, context_destroy, (cross_context_t * context))                                          \
    X(const char *, context_get_last_error_string, (cross_context_t * context))                    \
    X(int, context_parse_spirv,                                                                    \
      (cross_context_t * context, const uint32_t *words, size_t count, cross_ir_t **ir))           \
    X(int, context_create_compiler,                                                                \
      (cross_context_t * context, int backend, cross_ir_t *ir, int mode,                           \
       cross_compiler_t **compiler))                                                               \
    X(int, compiler_create_compiler_options,                                                       \
      (cross_compiler_t * compiler, cross_options_t * *options))                                   \
    X(int, compiler_options_set_uint, (cross_options_t * options, int option, unsigned value))     \
    X(int, compiler_options_set_bool,                                                              \
      (cross_options_t * options, int option, unsigned char value))                                \
    X(int, compiler_install_compiler_options,                                                      \
      (cross_compiler_t * compiler, cross_options_t * options))                                    \
    X(int, compiler_set_entry_point, (cross_compiler_t * compiler, const char *name, int model))   \
    X(int, compiler_rename_entry_point,                                                            \
      (cross_compiler_t * compiler, const char *from, const char *to, int model))                  \
    X(int, compiler_get_active_interface_variables,                                                \
      (cross_compiler_t * compiler, const cross_set_t **set))                                      \
    X(int, compiler_set_enabled_interface_variables,                                               \
      (cross_compiler_t * compiler, const cross_set_t *set))                                       \
    X(int, compiler_create_shader_resources_for_active_variables,                                  \
      (cross_compiler_t * compiler, cross_resources_t * *resources, const cross_set_t *set))       \
    X(int, resources_get_resource_list_for_type,                                                   \
      (cross_resources_t * resources, int type, const cross_resource_t **list, size_t *count))     \
    X(unsigned, compiler_get_decoration,                                                           \
      (cross_compiler_t * compiler, uint32_t id, int decoration))                                  \
    X(void, compiler_set_decoration,                                                               \
      (cross_compiler_t * compiler, uint32_t id, int decoration, unsigned value))                  \
    X(int, compiler_msl_add_resource_binding,                                                      \
      (cross_compiler_t * compiler, const cross_binding_t *binding))                               \
    X(unsigned char, compiler_msl_needs_buffer_size_buffer, (cross_compiler_t * compiler))         \
    X(int, compiler_compile, (cross_compiler_t * compiler, const char **text))

typedef struct cross_api_t {
#define X(result, name, parameters) result(*name) parameters;
    SYMBOLS(X)
#undef X
} cross_api_t;

static keel_status_t fill(void *handle, void *table)
{
    cross_api_t *api = table;
    const struct {
        const char *name;
        void **at;
    } symbols[] = {
#define X(result, name, parameters) {"spvc_" #name, (void **)&api->name},
        SYMBOLS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        *symbols[i].at = dlsym(handle, symbols[i].name);
        if (!*symbols[i].at)
            return KEEL_ERROR(KEEL_UNSUPPORTED, "SPIRV-Cross has no %s", symbols[i].name);
    }
    return NULL;
}

static library_kind_t kind = {
    .name = "SPIRV-Cross (libspirv-cross-c-shared)",
#ifdef __APPLE__
    .files = {"libspirv-cross-c-shared.0.dylib",
              "/opt/homebrew/lib/libspirv-cross-c-shared.0.dylib",
              "/usr/local/lib/libspirv-cross-c-shared.0.dylib"},
#else
    .files = {"libspirv-cross-c-shared.so.0"},
#endif
    .size = sizeof(cross_api_t),
    .fill = fill,
};

// One translation.
typedef struct cross_t {
    const cross_api_t *api;
    const metal_device_t *device;
    const keel_image_entry_info_t *entry;
    cross_context_t *context; // has all the others
    cross_compiler_t *compiler;
    uint32_t placed; // buffers that have their place in the argument buffer
} cross_t;

// Apple's families from 7 on and Macs have all functions of SIMD-groups that shaders may call. On
// others each thread is a sub-group of its own.
metal_environment_t metal_environment(const metal_device_t *device)
{
    enum { APPLE_7 = 1007, MAC_2 = 2002, METAL_3 = 5001 };
    const metal_api_t *api = device->api;
    bool mac = mtl_supports_family(api, device->device, MAC_2);
    bool newer = mtl_supports_family(api, device->device, METAL_3);
    bool lanes = mac || mtl_supports_family(api, device->device, APPLE_7);
    return (metal_environment_t){newer ? 30000 : 20400, mac, lanes,
                                 lanes ? device->base.caps.subgroup_size : 1};
}

static keel_status_t refusal(const cross_t *c)
{
    const char *why = c->context ? c->api->context_get_last_error_string(c->context) : "";
    return KEEL_ERROR(KEEL_UNSUPPORTED, "SPIRV-Cross makes no MSL of '%s': %s", c->entry->name,
                      why && *why ? why : "it gives no reason");
}

static keel_status_t said(const cross_t *c, int result)
{
    return result ? refusal(c) : NULL;
}

static keel_status_t options_set(cross_t *c)
{
    const metal_environment_t environment = metal_environment(c->device);
    const struct {
        int option;
        unsigned value;
        bool flag;
    } all[] = {
        {OPTION_VERSION, environment.version, false},
        {OPTION_PLATFORM, environment.mac, false},
        {OPTION_SIZES_INDEX, METAL_AT_SIZES, false},
        {OPTION_SUBGROUP_SIZE, environment.subgroup_size, false},
        {OPTION_ARGUMENT_BUFFERS, true, true},
        {OPTION_DECORATION_BINDING, true, true},
        {OPTION_IOS_SIMD, environment.lanes && !environment.mac, true},
        {OPTION_EMULATE_SUBGROUPS, !environment.lanes, true},
    };
    cross_options_t *options = NULL;
    KEEL_TRY(said(c, c->api->compiler_create_compiler_options(c->compiler, &options)));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int result =
            all[i].flag
                ? c->api->compiler_options_set_bool(options, all[i].option, all[i].value != 0)
                : c->api->compiler_options_set_uint(options, all[i].option, all[i].value);
        KEEL_TRY(said(c, result));
    }
    return said(c, c->api->compiler_install_compiler_options(c->compiler, options));
}

// Where what is bound at that number of that set stands in the list of all. Of two at one number
// only the first would be in the argument buffer, and those behind would be somewhere else in it.
static keel_status_t place_find(const cross_t *c, unsigned set, unsigned binding, uint32_t *place)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < c->entry->binding_count; i++) {
        const keel_image_binding_t *b = &c->entry->bindings[i];
        if (b->set != set || b->binding != binding) continue;
        if (!found++) *place = i;
    }
    if (found == 1) return NULL;
    if (found)
        return KEEL_ERROR(KEEL_UNSUPPORTED,
                          "'%s' has several variables at %u of set %u; metal:// takes one",
                          c->entry->name, binding, set);
    return KEEL_ERROR(KEEL_CORRUPT, "'%s' binds something at %u of set %u, and does not say what",
                      c->entry->name, binding, set);
}

static keel_status_t buffers_move(cross_t *c, cross_resources_t *resources, int type)
{
    const cross_resource_t *list = NULL;
    size_t count = 0;
    KEEL_TRY(said(c, c->api->resources_get_resource_list_for_type(resources, type, &list, &count)));
    for (size_t i = 0; i < count; i++) {
        uint32_t place = 0;
        KEEL_TRY(place_find(
            c, c->api->compiler_get_decoration(c->compiler, list[i].id, DECORATION_SET),
            c->api->compiler_get_decoration(c->compiler, list[i].id, DECORATION_BINDING), &place));
        c->api->compiler_set_decoration(c->compiler, list[i].id, DECORATION_SET, 0);
        c->api->compiler_set_decoration(c->compiler, list[i].id, DECORATION_BINDING, place);
        c->placed++;
    }
    return NULL;
}

static keel_status_t index_set(cross_t *c, unsigned set, unsigned binding, unsigned index)
{
    cross_binding_t what = {MODEL_COMPUTE, set, binding, index, 0, 0};
    return said(c, c->api->compiler_msl_add_resource_binding(c->compiler, &what));
}

// All sets become one.
static keel_status_t bindings_condense(cross_t *c)
{
    const cross_set_t *active = NULL;
    cross_resources_t *resources = NULL;
    cross_compiler_t *compiler = c->compiler;
    KEEL_TRY(said(c, c->api->compiler_get_active_interface_variables(compiler, &active)));
    KEEL_TRY(said(c, c->api->compiler_create_shader_resources_for_active_variables(
                         compiler, &resources, active)));
    KEEL_TRY(said(c, c->api->compiler_set_enabled_interface_variables(compiler, active)));
    KEEL_TRY(buffers_move(c, resources, UNIFORM_BUFFERS));
    KEEL_TRY(buffers_move(c, resources, STORAGE_BUFFERS));
    if (c->placed != c->entry->binding_count) // as above
        return KEEL_ERROR(KEEL_UNSUPPORTED, "'%s' binds %u buffers, and SPIRV-Cross finds %u",
                          c->entry->name, c->entry->binding_count, c->placed);
    KEEL_TRY(index_set(c, SET_OF_CONSTANTS, 0, METAL_AT_CONSTANTS));
    KEEL_TRY(index_set(c, 0, BINDING_OF_THE_BUFFER, METAL_AT_BLOCK));
    return index_set(c, 0, BINDING_OF_SIZES, c->entry->binding_count);
}

static keel_status_t compiler_make(cross_t *c, const keel_image_t *image)
{
    const cross_api_t *api = c->api;
    cross_ir_t *ir = NULL;
    KEEL_TRY(said(c, api->context_create(&c->context)));
    KEEL_TRY(said(
        c, api->context_parse_spirv(c->context, image->data, image->size / sizeof(uint32_t), &ir)));
    KEEL_TRY(said(c, api->context_create_compiler(c->context, BACKEND_MSL, ir, TAKE_OWNERSHIP,
                                                  &c->compiler)));
    KEEL_TRY(said(c, api->compiler_set_entry_point(c->compiler, c->entry->name, MODEL_COMPUTE)));
    return said(c, api->compiler_rename_entry_point(c->compiler, c->entry->name, METAL_CROSS_NAME,
                                                    MODEL_COMPUTE));
}

static keel_status_t translate(cross_t *c, const keel_image_t *image, char **text, bool *sizes)
{
    const char *made = NULL;
    KEEL_TRY(compiler_make(c, image));
    KEEL_TRY(options_set(c));
    KEEL_TRY(bindings_condense(c));
    KEEL_TRY(said(c, c->api->compiler_compile(c->compiler, &made)));
    *sizes = c->api->compiler_msl_needs_buffer_size_buffer(c->compiler);
    *text = mem_copy_text(made);
    return *text ? NULL : status_no_memory();
}

// Words of SPIR-V that begin at a multiple of 4.
static keel_status_t words_check(const keel_image_t *image)
{
    if ((uintptr_t)image->data % sizeof(uint32_t) == 0 && image->size % sizeof(uint32_t) == 0)
        return NULL;
    return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "a module of SPIR-V is words of 32 bits, and lies at "
                                             "an address that is a multiple of 4");
}

keel_status_t metal_cross(const metal_device_t *device, const keel_image_t *image,
                          const keel_image_entry_info_t *entry, char **text, bool *sizes)
{
    const void *table = NULL;
    cross_t c = {.device = device, .entry = entry};
    KEEL_TRY(words_check(image));
    keel_status_t opened = library_open(&kind, device->cross[0] ? device->cross : NULL, &table);
    if (opened) {
        keel_status_t status =
            KEEL_ERROR(KEEL_UNSUPPORTED, "metal:// takes SPIR-V with the help of SPIRV-Cross: %s",
                       keel_status_message(opened));
        keel_status_release(opened);
        return status;
    }
    c.api = table;
    keel_status_t status = translate(&c, image, text, sizes);
    if (c.context) c.api->context_destroy(c.context);
    return status;
}
