// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "drivers/stream/driver.h"
#include "executable/entries.h"

typedef struct module_t {
    cache_item_t item;
    stream_module_h handle;
} module_t;

typedef struct stream_executable_t {
    keel_executable_t base;
    stream_device_t *device; // borrowed
    cache_item_t *loaded;    // owned
    stream_module_h module;  // of that
    entries_t entries;
    stream_kernel_t *kernels; // owned, as is the next
    void **kernel_pointers;
    bool foreign; // some of them were made elsewhere
} stream_executable_t;

uint32_t stream_executable_rank(keel_device_t *device, keel_image_kind_t kind, const char *target)
{
    return stream_device(device)->api->image_rank(stream_device(device)->vendor, kind, target);
}

// The other form of a kernel, which walks over its grid.
static keel_status_t walk_find(stream_executable_t *e, const char *name, stream_kernel_t *kernel)
{
    char walk[512];
    if ((size_t)snprintf(walk, sizeof walk, "%s$walk", name) >= sizeof walk)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "the name of entry point '%.64s...' is too long", name);
    uint32_t local_memory;
    return e->device->api->module_function(e->device->vendor, e->module, walk, &kernel->walk,
                                           &local_memory);
}

static keel_status_t kernel_load(stream_executable_t *e, uint32_t index)
{
    const stream_api_t *api = e->device->api;
    stream_vendor_t *vendor = e->device->vendor;
    stream_kernel_t *kernel = &e->kernels[index];
    keel_entry_info_t *entry = &e->entries.entries[index];
    uint32_t local = 0;
    kernel->abi = e->entries.abis[index];
    KEEL_TRY(api->module_function(vendor, e->module, entry->name, &kernel->function, &local));
    if (kernel->abi != KEEL_ABI_RAW) KEEL_TRY(walk_find(e, entry->name, kernel));
    // What a dispatch has beyond what is in the code is dynamic; for kernels made elsewhere the
    // vendor alone knows what is.
    if (kernel->abi == KEEL_ABI_RAW) entry->local_memory = local;
    e->foreign |= kernel->abi == KEEL_ABI_RAW;
    kernel->arguments = entry->constants;
    if (kernel->abi == KEEL_ABI_RAW && !kernel->arguments) { // none, or the image does not say
        kernel->arguments = e->device->limits.max_arguments;
        if (stream_device_has(e->device, STREAM_ARGUMENTS))
            KEEL_TRY(api->function_arguments(vendor, kernel->function, &kernel->arguments));
    }
    kernel->local_memory = local < entry->local_memory ? local : entry->local_memory;
    uint32_t most = e->device->limits.max_local_memory;
    if (local < most) {
        KEEL_TRY(api->function_allow(vendor, kernel->function, most - local));
        if (kernel->walk) KEEL_TRY(api->function_allow(vendor, kernel->walk, most - local));
    }
    e->kernel_pointers[index] = kernel;
    return NULL;
}

// Text must end in a zero byte.
static keel_status_t module_load(cache_item_t *item, const keel_image_t *image)
{
    stream_device_t *device = item->cache->owner;
    module_t *module = (module_t *)item;
    char *data = mem_alloc(image->size + 1);
    if (!data) return status_no_memory();
    memcpy(data, image->data, image->size);
    data[image->size] = 0;
    const stream_api_t *api = device->api;
    keel_status_t status = api->module_load(device->vendor, data, image->size, &module->handle);
    if (keel_status_code(status) == KEEL_RESOURCE_EXHAUSTED) {
        keel_status_release(status);
        stream_memory_gather(device);
        status = api->module_load(device->vendor, data, image->size, &module->handle);
    }
    mem_free(data);
    return status;
}

static void module_unload(cache_item_t *item)
{
    stream_device_t *device = item->cache->owner;
    atomic_fetch_add(&device->unloads, 1);
    stream_free(device, true, device->api->module_unload, ((const module_t *)item)->handle);
}

const cache_class_t stream_module_class = {sizeof(module_t), module_load, module_unload, false};

static keel_status_t executable_init(stream_executable_t *e, const keel_image_t *image)
{
    KEEL_TRY(entries_read(&e->entries, &e->device->base, image));
    uint32_t count = e->base.entry_count = e->entries.count;
    e->base.entries = e->entries.entries;
    e->base.bindings = e->entries.bindings;
    e->kernels = mem_zalloc(count * sizeof *e->kernels);
    e->base.kernels = e->kernel_pointers = mem_zalloc(count * sizeof *e->kernel_pointers);
    if (!e->kernels || !e->kernel_pointers) return status_no_memory();
    KEEL_TRY(cache_load(&e->device->modules, image, &e->loaded));
    e->module = ((const module_t *)e->loaded)->handle;
    for (uint32_t i = 0; i < count; i++) KEEL_TRY(kernel_load(e, i));
    if (e->foreign && stream_device_has(e->device, STREAM_UPDATABLE))
        keel_status_release(
            stream_indirects_reserve(e->device, UINT32_MAX)); // may be needed, or not
    return NULL;
}

keel_status_t stream_executable_load(keel_device_t *base, const keel_image_t *image,
                                     keel_executable_t **executable)
{
    stream_device_t *device = stream_device(base);
    stream_executable_t *e = mem_zalloc(sizeof *e);
    if (!e) return status_no_memory();
    e->device = device;
    stream_entered_t entered;
    bool vendor = stream_enter(device, &entered);
    keel_status_t status = vendor ? executable_init(e, image) : stream_device_lost(device);
    if (vendor) stream_leave(&entered);
    if (status) {
        stream_executable_unload(&e->base);
        return stream_device_note(device, status);
    }
    *executable = &e->base;
    return NULL;
}

void stream_executable_unload(keel_executable_t *executable)
{
    stream_executable_t *e = (stream_executable_t *)(void *)executable;
    if (e->foreign) stream_indirects_forget(e->device);
    cache_unload(e->loaded);
    entries_finish(&e->entries);
    mem_free(e->kernels);
    mem_free(e->kernel_pointers);
    mem_free(e);
}

keel_status_t stream_executable_global(keel_executable_t *executable, const char *name,
                                       keel_external_buffer_t *where)
{
    stream_executable_t *e = (stream_executable_t *)(void *)executable;
    stream_entered_t entered;
    *where = (keel_external_buffer_t){.kind = KEEL_EXTERNAL_DEVICE};
    if (!stream_enter(e->device, &entered)) return stream_device_lost(e->device);
    keel_status_t status = e->device->api->module_global(e->device->vendor, e->module, name,
                                                         &where->handle.device, &where->size);
    stream_leave(&entered);
    if (keel_status_code(status) == KEEL_NOT_FOUND)
        status = keel_status_wrap(status, "'%s' has no global '%s'", executable->name, name);
    return stream_device_note(e->device, status);
}

// Beside the queues, whose work is none of its business.
static keel_status_t global_write(stream_device_t *device, const keel_external_buffer_t *where,
                                  const void *data)
{
    block_t *block = NULL;
    KEEL_TRY(stream_block_acquire(device, where->size, &block));
    memcpy(block->data, data, where->size);
    bound_copy_t copy = {where->handle.device, block->address, where->size};
    keel_status_t status = device->api->copy(device->vendor, device->side, &copy);
    if (!status) status = stream_device_drain(device, device->side);
    stream_blocks_return(device, block);
    return status;
}

keel_status_t stream_executable_write(keel_executable_t *executable,
                                      const keel_external_buffer_t *where, const void *data)
{
    stream_device_t *device = stream_device(executable->device);
    stream_entered_t entered;
    if (!stream_enter(device, &entered)) return stream_device_lost(device);
    keel_status_t status = global_write(device, where, data);
    stream_leave(&entered);
    return stream_device_note(device, status);
}
