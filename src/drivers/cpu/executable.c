// SPDX-License-Identifier: Apache-2.0
// Shared objects of the host as executables. Each is loaded from a copy of its own, by descriptor:
// what was checked is what is loaded, and nothing is written where others could guess its name.
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <keel/host_kernel.h>

#include "base/memory.h"
#include "base/shared_memory.h"
#include "base/status.h"
#include "drivers/cpu/cpu.h"
#include "drivers/cpu/target.h"
#include "executable/host.h"

typedef struct library_t {
    cache_item_t item;
    void *handle; // of dlopen
    int fd;       // kept open: the loader knows the object by a path with this number in it
    const keel_host_library_t *table; // in the library
} library_t;

typedef struct cpu_executable_t {
    keel_executable_t base;
    cache_item_t *library;            // owned
    const keel_host_library_t *table; // in the library
    keel_entry_info_t *entries;       // owned, as are the next four
    keel_binding_info_t *infos;
    const keel_binding_info_t **bindings;
    cpu_kernel_t *kernels;
    void **kernel_pointers;
} cpu_executable_t;

static keel_status_t write_all(int fd, const char *data, size_t size)
{
    while (size) {
        ssize_t written = write(fd, data, size);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0)
            return status_from_errno(KEEL_RESOURCE_EXHAUSTED, errno, "cannot copy the image");
        data += written;
        size -= (size_t)written;
    }
    return NULL;
}

static keel_status_t library_open(library_t *library, const keel_image_t *image)
{
    char path[64];
    KEEL_TRY(shared_memory_create(0, &library->fd));
    KEEL_TRY(write_all(library->fd, image->data, image->size));
#if defined(__linux__)
    snprintf(path, sizeof path, "/proc/self/fd/%d", library->fd);
#else
    snprintf(path, sizeof path, "/dev/fd/%d", library->fd);
#endif
    library->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library->handle)
        return KEEL_ERROR(KEEL_CORRUPT, "the system's loader refuses it: %s", dlerror());
    return NULL;
}

static keel_status_t library_load(cache_item_t *item, const keel_image_t *image)
{
    library_t *library = (library_t *)item;
    library->fd = -1;
    KEEL_TRY(host_check(image->data, image->size));
    KEEL_TRY(library_open(library, image));
    const keel_host_library_t *table = dlsym(library->handle, "keel_host_library");
    if (!table)
        return KEEL_ERROR(KEEL_UNSUPPORTED,
                          "it exports no keel_host_library (see keel/host_kernel.h)");
    if (table->abi != KEEL_HOST_ABI)
        return KEEL_ERROR(KEEL_UNSUPPORTED,
                          "it was built for version %u of the kernel ABI; this is version %d",
                          table->abi, KEEL_HOST_ABI);
    library->table = table;
    return NULL;
}

static void library_unload(cache_item_t *item)
{
    library_t *library = (library_t *)item;
    if (library->handle) dlclose(library->handle);
    if (library->fd >= 0) close(library->fd);
}

const cache_class_t cpu_library_class = {sizeof(library_t), library_load, library_unload, false};

static keel_status_t entry_check(const keel_host_entry_t *entry, uint32_t index)
{
    if (!entry->name || !entry->kernel)
        return KEEL_ERROR(KEEL_CORRUPT, "entry point %u has no %s", index,
                          entry->name ? "kernel" : "name");
    if (entry->bindings && !entry->access)
        return KEEL_ERROR(KEEL_CORRUPT, "entry point '%s' has %u bindings of unknown access",
                          entry->name, entry->bindings);
    return NULL;
}

static void entry_describe(cpu_executable_t *e, uint32_t index, keel_binding_info_t *infos)
{
    const keel_host_entry_t *entry = &e->table->entries[index];
    e->entries[index] = (keel_entry_info_t){
        .name = entry->name,
        .group_size = {entry->group_size[0], entry->group_size[1], entry->group_size[2]},
        .constants = entry->constants,
        .bindings = entry->bindings,
        .local_memory = entry->local_memory,
        .fixed_size = e->table->flags & KEEL_HOST_FIXED_SIZE,
        .raw = !entry->bindings, // constants alone are such a block
    };
    e->kernels[index].fn = entry->kernel;
    e->kernel_pointers[index] = &e->kernels[index];
    e->bindings[index] = infos;
    for (uint32_t i = 0; i < entry->bindings; i++)
        infos[i] = (keel_binding_info_t){
            .name = entry->names && entry->names[i] ? entry->names[i] : "",
            .access = entry->access[i] & KEEL_ACCESS_ALL,
        };
}

static keel_status_t entries_read(cpu_executable_t *e)
{
    uint32_t count = e->table->entry_count;
    size_t bindings = 0;
    for (uint32_t i = 0; i < count; i++) {
        KEEL_TRY(entry_check(&e->table->entries[i], i));
        bindings += e->table->entries[i].bindings;
    }
    e->entries = mem_zalloc(count * sizeof *e->entries);
    e->infos = mem_zalloc(bindings * sizeof *e->infos);
    e->bindings = mem_zalloc(count * sizeof *e->bindings);
    e->kernels = mem_zalloc(count * sizeof *e->kernels);
    e->kernel_pointers = mem_zalloc(count * sizeof *e->kernel_pointers);
    if (!e->entries || !e->infos || !e->bindings || !e->kernels || !e->kernel_pointers)
        return status_no_memory();
    keel_binding_info_t *infos = e->infos;
    for (uint32_t i = 0; i < count; i++) {
        entry_describe(e, i, infos);
        infos += e->entries[i].bindings;
    }
    e->base.entry_count = count;
    e->base.entries = e->entries;
    e->base.bindings = e->bindings;
    e->base.kernels = e->kernel_pointers;
    return NULL;
}

uint32_t cpu_executable_rank(keel_device_t *device, keel_image_kind_t kind, const char *target)
{
    const cpu_device_t *d = (const cpu_device_t *)(const void *)device;
    return kind == KEEL_IMAGE_HOST ? cpu_target_rank(d->level, target) : 0;
}

keel_status_t cpu_executable_load(keel_device_t *device, const keel_image_t *image,
                                  keel_executable_t **executable)
{
    cpu_device_t *d = (cpu_device_t *)(void *)device;
    cpu_executable_t *e = mem_zalloc(sizeof *e);
    if (!e) return status_no_memory();
    keel_status_t status = cache_load(&d->libraries, image, &e->library);
    if (!status) {
        e->table = ((const library_t *)e->library)->table;
        status = entries_read(e);
    }
    if (status) {
        cpu_executable_unload(&e->base);
        return status;
    }
    *executable = &e->base;
    return NULL;
}

void cpu_executable_unload(keel_executable_t *executable)
{
    cpu_executable_t *e = (cpu_executable_t *)(void *)executable;
    mem_free(e->entries);
    mem_free(e->infos);
    mem_free(e->bindings);
    mem_free(e->kernels);
    mem_free(e->kernel_pointers);
    cache_unload(e->library);
    mem_free(e);
}

keel_status_t cpu_executable_global(keel_executable_t *executable, const char *name,
                                    keel_external_buffer_t *where)
{
    const cpu_executable_t *e = (const cpu_executable_t *)(const void *)executable;
    for (uint32_t i = 0; i < e->table->global_count; i++) {
        const keel_host_global_t *global = &e->table->globals[i];
        if (strcmp(global->name, name) != 0) continue;
        *where = (keel_external_buffer_t){.kind = KEEL_EXTERNAL_DEVICE,
                                          .handle.device = (uint64_t)(uintptr_t)global->address,
                                          .size = global->size};
        return NULL;
    }
    return KEEL_ERROR(KEEL_NOT_FOUND, "'%s' has no global '%s'", executable->name, name);
}

keel_status_t cpu_executable_write(keel_executable_t *executable,
                                   const keel_external_buffer_t *where, const void *data)
{
    (void)executable;
    memcpy((void *)(uintptr_t)where->handle.device, data, where->size);
    return NULL;
}
