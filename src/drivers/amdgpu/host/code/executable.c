// SPDX-License-Identifier: Apache-2.0
// Executables: code objects, from a container, alone, or in a bundle.
#include <stdio.h>
#include <string.h>

#include "base/fork.h"
#include "base/memory.h"
#include "base/status.h"
#include "drivers/amdgpu/host/code/code.h"
#include "executable/entries.h"
#include "executable/image.h"
#include "executable/unpack.h"
#include "kit/gfx.h"

typedef struct module_t {
    cache_item_t item;
    hsa_executable_t handle;
} module_t;

typedef struct executable_t {
    keel_executable_t base;
    cache_item_t *loaded; // owned
    entries_t entries;
    amdgpu_kernel_t *kernels; // owned, as is the next
    void **kernel_pointers;
} executable_t;

static hsa_executable_t module_of(const executable_t *e)
{
    return ((const module_t *)(const void *)e->loaded)->handle;
}

uint32_t amdgpu_executable_rank(keel_device_t *device, keel_image_kind_t kind, const char *target)
{
    return kind == KEEL_IMAGE_HSACO ? gfx_rank(device->info.target, target) : 0;
}

static keel_status_t code_define(amdgpu_device_t *device, hsa_code_object_reader_t reader,
                                 hsa_executable_t executable)
{
    const hsa_symbols_t *hsa = device->hsa;
    for (uint32_t i = 0; i < device->node_count; i++)
        KEEL_TRY(HSA_CALL(hsa, hsa_executable_load_agent_code_object, executable, device->agents[i],
                          reader, NULL, NULL));
    return HSA_CALL(hsa, hsa_executable_freeze, executable, NULL);
}

// One code object. HSA copies what it needs of the bytes.
static keel_status_t object_load(amdgpu_device_t *device, const void *data, size_t size,
                                 hsa_executable_t *executable)
{
    const hsa_symbols_t *hsa = device->hsa;
    hsa_code_object_reader_t reader;
    KEEL_TRY(HSA_CALL(hsa, hsa_executable_create_alt, HSA_PROFILE_FULL,
                      HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, NULL, executable));
    keel_status_t status =
        HSA_CALL(hsa, hsa_code_object_reader_create_from_memory, data, size, &reader);
    if (!status) {
        status = code_define(device, reader, *executable);
        hsa->hsa_code_object_reader_destroy(reader);
    }
    if (!status) return NULL;
    hsa->hsa_executable_destroy(*executable);
    executable->handle = 0;
    return status;
}

// The member of a bundle that suits the device best; NULL: none does.
static const image_member_t *member_choose(amdgpu_device_t *device, const image_info_t *info)
{
    const image_member_t *best = NULL;
    uint32_t highest = 0;
    for (uint32_t i = 0; i < info->member_count; i++) {
        const image_member_t *member = &info->members[i];
        uint32_t rank = amdgpu_executable_rank(&device->base, member->kind, member->target);
        if (rank <= highest) continue;
        highest = rank;
        best = member;
    }
    return best;
}

static keel_status_t bundle_load(amdgpu_device_t *device, const image_info_t *info,
                                 hsa_executable_t *executable)
{
    enum { MOST = 1 << 30 };
    void *bytes = NULL;
    const image_member_t *member = member_choose(device, info);
    if (!member)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "none of its %u images is for %s", info->member_count,
                          device->base.info.target);
    KEEL_TRY(image_unpack(member, MOST, &bytes));
    keel_status_t status = object_load(device, bytes, member->unpacked, executable);
    mem_free(bytes);
    return status;
}

keel_status_t amdgpu_code_load(amdgpu_device_t *device, const void *data, size_t size,
                               hsa_executable_t *executable)
{
    image_info_t info;
    KEEL_TRY(image_read(data, size, &info));
    keel_status_t status = info.member_count ? bundle_load(device, &info, executable)
                                             : object_load(device, data, size, executable);
    image_info_finish(&info);
    return status;
}

static keel_status_t symbol_find(amdgpu_device_t *device, uint32_t node,
                                 hsa_executable_t executable, const char *name,
                                 hsa_executable_symbol_t *symbol)
{
    return HSA_CALL(device->hsa, hsa_executable_get_symbol_by_name, executable, name,
                    &device->agents[node], symbol);
}

// What the kernel is on the nodes behind the first.
static keel_status_t others_find(amdgpu_device_t *device, hsa_executable_t executable,
                                 const char *text, amdgpu_kernel_t *kernel)
{
    for (uint32_t i = 1; i < device->node_count; i++) {
        hsa_executable_symbol_t symbol;
        KEEL_TRY(symbol_find(device, i, executable, text, &symbol));
        KEEL_TRY(HSA_CALL(device->hsa, hsa_executable_symbol_get_info, symbol,
                          HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &kernel->others[i - 1]));
    }
    return NULL;
}

keel_status_t amdgpu_kernel_find(amdgpu_device_t *device, hsa_executable_t executable,
                                 const char *name, amdgpu_kernel_t *kernel)
{
    const hsa_symbols_t *hsa = device->hsa;
    hsa_executable_symbol_t symbol;
    char text[1024];
    if ((size_t)snprintf(text, sizeof text, "%s.kd", name) >= sizeof text)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "the name of entry point '%.64s...' is too long", name);
    keel_status_t status = symbol_find(device, 0, executable, text, &symbol);
    if (status) return keel_status_wrap(status, "it has no kernel '%s'", name);
    KEEL_TRY(HSA_CALL(hsa, hsa_executable_symbol_get_info, symbol,
                      HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &kernel->object));
    KEEL_TRY(HSA_CALL(hsa, hsa_executable_symbol_get_info, symbol,
                      HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE, &kernel->arguments));
    KEEL_TRY(HSA_CALL(hsa, hsa_executable_symbol_get_info, symbol,
                      HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE, &kernel->group));
    KEEL_TRY(HSA_CALL(hsa, hsa_executable_symbol_get_info, symbol,
                      HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE, &kernel->item));
    if (kernel->arguments > AMDGPU_MAX_ARGUMENTS)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "kernel '%s' takes %u bytes of arguments; %d at most",
                          name, kernel->arguments, AMDGPU_MAX_ARGUMENTS);
    return others_find(device, executable, text, kernel);
}

keel_status_t amdgpu_variable_find(amdgpu_device_t *device, hsa_executable_t executable,
                                   const char *name, uint64_t *address)
{
    hsa_executable_symbol_t symbol;
    KEEL_TRY(symbol_find(device, 0, executable, name, &symbol));
    return HSA_CALL(device->hsa, hsa_executable_symbol_get_info, symbol,
                    HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS, address);
}

// By the words of the metadata.
static const char *const hidden_names[AMDGPU_HIDDEN_KINDS] = {
    [AMDGPU_BLOCK_COUNT_X] = "hidden_block_count_x",
    [AMDGPU_BLOCK_COUNT_Y] = "hidden_block_count_y",
    [AMDGPU_BLOCK_COUNT_Z] = "hidden_block_count_z",
    [AMDGPU_GROUP_SIZE_X] = "hidden_group_size_x",
    [AMDGPU_GROUP_SIZE_Y] = "hidden_group_size_y",
    [AMDGPU_GROUP_SIZE_Z] = "hidden_group_size_z",
    [AMDGPU_GRID_DIMS] = "hidden_grid_dims",
};

static void hidden_read(const keel_image_entry_info_t *entry, amdgpu_kernel_t *kernel)
{
    uint32_t given = image_given_size(entry);
    if (given < entry->param_size) kernel->given = given;
    for (uint32_t i = 0; i < entry->param_count; i++) {
        const keel_image_param_t *param = &entry->params[i];
        for (int k = 0; k < AMDGPU_HIDDEN_KINDS; k++) {
            if (strcmp(param->type, hidden_names[k]) != 0) continue;
            if (param->offset > kernel->arguments || kernel->arguments - param->offset < 4)
                continue;
            kernel->hidden |= 1u << k;
            kernel->places[k] = param->offset;
        }
    }
}

// What kernels made elsewhere expect of their runtime.
static void hidden_find(executable_t *e, const image_info_t *info)
{
    for (uint32_t i = 0; i < info->entry_count; i++)
        for (uint32_t k = 0; k < e->entries.count; k++)
            if (e->kernels[k].raw && !strcmp(info->entries[i].name, e->entries.entries[k].name))
                hidden_read(&info->entries[i], &e->kernels[k]);
}

static keel_status_t module_load(cache_item_t *item, const keel_image_t *image)
{
    module_t *module = (module_t *)item;
    return amdgpu_code_load(item->cache->owner, image->data, image->size, &module->handle);
}

static void module_unload(cache_item_t *item)
{
    amdgpu_device_t *device = item->cache->owner;
    const module_t *module = (const module_t *)item;
    if (module->handle.handle && fork_is_ours(item->generation))
        device->hsa->hsa_executable_destroy(module->handle);
}

const cache_class_t amdgpu_module_class = {sizeof(module_t), module_load, module_unload, false};

static keel_status_t kernel_load(executable_t *e, amdgpu_device_t *device, uint32_t index)
{
    amdgpu_kernel_t *kernel = &e->kernels[index];
    keel_entry_info_t *entry = &e->entries.entries[index];
    KEEL_TRY(amdgpu_kernel_find(device, module_of(e), entry->name, kernel));
    kernel->raw = e->entries.abis[index] == KEEL_ABI_RAW;
    kernel->given = UINT32_MAX;
    if (kernel->raw) entry->local_memory = kernel->group;
    e->kernel_pointers[index] = kernel;
    return NULL;
}

// What the metadata of the code says that is loaded of the image.
static keel_status_t metadata_read(executable_t *e, amdgpu_device_t *device,
                                   const keel_image_t *image)
{
    enum { MOST = 1 << 30 };
    image_info_t info, inner;
    void *bytes = NULL;
    KEEL_TRY(image_read(image->data, image->size, &info));
    if (!info.member_count) {
        hidden_find(e, &info);
        image_info_finish(&info);
        return NULL;
    }
    const image_member_t *member = member_choose(device, &info);
    keel_status_t status = image_unpack(member, MOST, &bytes);
    if (!status) status = image_read(bytes, member->unpacked, &inner);
    if (!status) hidden_find(e, &inner);
    if (!status) image_info_finish(&inner);
    mem_free(bytes);
    image_info_finish(&info);
    return status;
}

static keel_status_t executable_init(executable_t *e, amdgpu_device_t *device,
                                     const keel_image_t *image)
{
    KEEL_TRY(entries_read(&e->entries, &device->base, image));
    uint32_t count = e->base.entry_count = e->entries.count;
    e->base.entries = e->entries.entries;
    e->base.bindings = e->entries.bindings;
    e->kernels = mem_zalloc(count * sizeof *e->kernels);
    e->base.kernels = e->kernel_pointers = mem_zalloc(count * sizeof *e->kernel_pointers);
    if (!e->kernels || !e->kernel_pointers) return status_no_memory();
    KEEL_TRY(cache_load(&device->modules, image, &e->loaded));
    for (uint32_t i = 0; i < count; i++) KEEL_TRY(kernel_load(e, device, i));
    return metadata_read(e, device, image);
}

keel_status_t amdgpu_executable_load(keel_device_t *device, const keel_image_t *image,
                                     keel_executable_t **executable)
{
    executable_t *e = mem_zalloc(sizeof *e);
    if (!e) return status_no_memory();
    keel_status_t status = executable_init(e, amdgpu_device(device), image);
    if (status) {
        amdgpu_executable_unload(&e->base);
        return status;
    }
    *executable = &e->base;
    return NULL;
}

void amdgpu_executable_unload(keel_executable_t *executable)
{
    executable_t *e = (executable_t *)(void *)executable;
    cache_unload(e->loaded);
    entries_finish(&e->entries);
    mem_free(e->kernels);
    mem_free(e->kernel_pointers);
    mem_free(e);
}

keel_status_t amdgpu_executable_global(keel_executable_t *executable, const char *name,
                                       keel_external_buffer_t *where)
{
    const executable_t *e = (const executable_t *)(const void *)executable;
    amdgpu_device_t *device = amdgpu_device(executable->device);
    hsa_executable_symbol_t symbol;
    hsa_symbol_kind_t kind;
    uint32_t size = 0;
    *where = (keel_external_buffer_t){.kind = KEEL_EXTERNAL_DEVICE};
    keel_status_t status = symbol_find(device, 0, module_of(e), name, &symbol);
    if (status) {
        status = status_as(status, KEEL_NOT_FOUND);
        return keel_status_wrap(status, "'%s' has no global '%s'", executable->name, name);
    }
    KEEL_TRY(HSA_CALL(device->hsa, hsa_executable_symbol_get_info, symbol,
                      HSA_EXECUTABLE_SYMBOL_INFO_TYPE, &kind));
    if (kind != HSA_SYMBOL_KIND_VARIABLE)
        return KEEL_ERROR(KEEL_NOT_FOUND, "'%s' of '%s' is no variable", name, executable->name);
    KEEL_TRY(HSA_CALL(device->hsa, hsa_executable_symbol_get_info, symbol,
                      HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS, &where->handle.device));
    KEEL_TRY(HSA_CALL(device->hsa, hsa_executable_symbol_get_info, symbol,
                      HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE, &size));
    where->size = size;
    return NULL;
}

// Each GPU has its own, all get the same. HSA loads a code object as a whole, so that on another
// GPU all of it is as far away as one of its kernels.
keel_status_t amdgpu_executable_write(keel_executable_t *executable,
                                      const keel_external_buffer_t *where, const void *data)
{
    const executable_t *e = (const executable_t *)(const void *)executable;
    amdgpu_device_t *device = amdgpu_device(executable->device);
    for (uint32_t i = 0; i < device->node_count; i++) {
        uint64_t shift = i ? amdgpu_kernel_object(e->kernels, i) - e->kernels->object : 0;
        KEEL_TRY(HSA_CALL(device->hsa, hsa_memory_copy,
                          (void *)(uintptr_t)(where->handle.device + shift), data, where->size));
    }
    return NULL;
}
