// SPDX-License-Identifier: Apache-2.0
// Kernels of the toy: shared objects for this processor, as <keel/host_kernel.h> has them, from
// containers of `keel cc`.
#include "toy.h"

#include <dlfcn.h>
#include <errno.h>
#include <keel/host_kernel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
const char toy_target[] = "x86_64-linux";
#else
const char toy_target[] = "aarch64-linux";
#endif

typedef struct toy_executable_t {
    keel_executable_t base;
    void *object; // of dlopen
    const keel_host_library_t *table;
    keel_entry_info_t *entries; // owned, as are the next three
    keel_binding_info_t *infos;
    const keel_binding_info_t **bindings;
    void **kernels;
} toy_executable_t;

uint32_t toy_rank(keel_device_t *device, keel_image_kind_t kind, const char *target)
{
    (void)device;
    return kind == KEEL_IMAGE_HOST && strcmp(target, toy_target) == 0 ? KEEL_RANK_EXACT : 0;
}

// The system loads objects from files.
static keel_status_t object_open(const keel_image_t *image, void **object)
{
    char path[] = "/tmp/keel-toy-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0) return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "%s: %s", path, strerror(errno));
    bool written = write(fd, image->data, image->size) == (ssize_t)image->size;
    *object = written ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    unlink(path);
    close(fd);
    if (*object) return NULL;
    return KEEL_ERROR(KEEL_CORRUPT, "the image cannot be loaded: %s",
                      written ? dlerror() : strerror(errno));
}

static void entry_describe(toy_executable_t *e, uint32_t i, keel_binding_info_t *infos)
{
    const keel_host_entry_t *entry = &e->table->entries[i];
    e->entries[i] = (keel_entry_info_t){
        .name = entry->name,
        .group_size = {entry->group_size[0], entry->group_size[1], entry->group_size[2]},
        .constants = entry->constants,
        .bindings = entry->bindings,
        .local_memory = entry->local_memory,
        .fixed_size = e->table->flags & KEEL_HOST_FIXED_SIZE,
        .raw = !entry->bindings,
    };
    e->bindings[i] = infos;
    memcpy(&e->kernels[i], &entry->kernel, sizeof e->kernels[i]);
    for (uint32_t k = 0; k < entry->bindings; k++)
        infos[k] = (keel_binding_info_t){
            .name = entry->names && entry->names[k] ? entry->names[k] : "",
            .access = entry->access[k] & KEEL_ACCESS_ALL,
        };
}

static keel_status_t entries_read(toy_executable_t *e)
{
    uint32_t count = e->table->entry_count, used = 0;
    for (uint32_t i = 0; i < count; i++) used += e->table->entries[i].bindings;
    e->entries = keel_mem_zalloc(count * sizeof *e->entries + 1);
    e->infos = keel_mem_zalloc(used * sizeof *e->infos + 1);
    e->bindings = keel_mem_zalloc(count * sizeof *e->bindings + 1);
    e->kernels = keel_mem_zalloc(count * sizeof *e->kernels + 1);
    if (!e->entries || !e->infos || !e->bindings || !e->kernels) return keel_status_no_memory();
    keel_binding_info_t *infos = e->infos;
    for (uint32_t i = 0; i < count; i++) {
        entry_describe(e, i, infos);
        infos += e->entries[i].bindings;
    }
    e->base.entry_count = count;
    e->base.entries = e->entries;
    e->base.bindings = e->bindings;
    e->base.kernels = e->kernels;
    return NULL;
}

static keel_status_t load(const keel_image_t *image, toy_executable_t *e)
{
    if (!image->entries) // it came alone, and may be anything
        return KEEL_ERROR(KEEL_CORRUPT, "it is no container of `keel cc`; the toy takes no other");
    KEEL_TRY(object_open(image, &e->object));
    e->table = dlsym(e->object, "keel_host_library");
    if (!e->table || e->table->abi != KEEL_HOST_ABI)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "the image has no kernels for this version of the ABI");
    return entries_read(e);
}

keel_status_t toy_load(keel_device_t *device, const keel_image_t *image,
                       keel_executable_t **executable)
{
    (void)device;
    toy_executable_t *e = keel_mem_zalloc(sizeof *e);
    if (!e) return keel_status_no_memory();
    keel_status_t status = load(image, e);
    if (status) {
        toy_unload(&e->base);
        return status;
    }
    *executable = &e->base;
    return NULL;
}

void toy_unload(keel_executable_t *executable)
{
    toy_executable_t *e = (toy_executable_t *)(void *)executable;
    if (e->object) dlclose(e->object);
    keel_mem_free(e->entries);
    keel_mem_free(e->infos);
    keel_mem_free(e->bindings);
    keel_mem_free(e->kernels);
    keel_mem_free(e);
}

keel_status_t toy_global(keel_executable_t *executable, const char *name,
                         keel_external_buffer_t *where)
{
    const keel_host_library_t *table = ((toy_executable_t *)(void *)executable)->table;
    for (uint32_t i = 0; i < table->global_count; i++) {
        if (strcmp(table->globals[i].name, name) != 0) continue;
        *where = (keel_external_buffer_t){.kind = KEEL_EXTERNAL_HOST,
                                          .handle.host = table->globals[i].address,
                                          .size = table->globals[i].size};
        return NULL;
    }
    return KEEL_ERROR(KEEL_NOT_FOUND, "'%s' has no global '%s'", executable->name, name);
}

static keel_status_t groups_run(const keel_cmd_dispatch_t *c, const keel_host_dispatch_t *dispatch,
                                void *local)
{
    keel_host_kernel_fn kernel;
    keel_host_group_t group = {.local = local};
    uint32_t *id = group.id;
    memcpy(&kernel, &c->kernel, sizeof kernel);
    if (!dispatch->groups[0] || !dispatch->groups[1]) return NULL;
    for (id[2] = 0; id[2] < dispatch->groups[2]; id[2]++)
        for (id[1] = 0; id[1] < dispatch->groups[1]; id[1]++)
            for (id[0] = 0; id[0] < dispatch->groups[0]; id[0]++) {
                int result = kernel(dispatch, &group);
                if (result) return KEEL_ERROR(KEEL_ABORTED, "the kernel returned %d", result);
            }
    return NULL;
}

keel_status_t toy_dispatch(toy_device_t *device, const keel_cmd_dispatch_t *c,
                           const keel_cmd_execute_t *execute)
{
    KEEL_ALIGNAS(16) unsigned char block[TOY_MAX_CONSTANTS];
    void *bindings[TOY_MAX_BINDINGS];
    uint64_t lengths[TOY_MAX_BINDINGS];
    keel_host_dispatch_t dispatch = {
        .group_size = {c->group_size[0], c->group_size[1], c->group_size[2]},
        .bindings = bindings,
        .lengths = lengths,
        .binding_count = c->binding_count,
        .constants = c->patch_count ? (void *)block : (const char *)c + c->constants,
        .constant_size = c->constant_size,
        .local_size = c->local_memory,
    };
    KEEL_TRY(keel_bind_counts(c, execute, dispatch.groups));
    if (c->patch_count) KEEL_TRY(keel_bind_constants(c, execute, block));
    for (uint16_t i = 0; i < c->binding_count; i++) {
        keel_bound_t bound;
        KEEL_TRY(keel_bind_ref(&c->bindings[i], execute, &bound));
        bindings[i] = bound.data;
        lengths[i] = bound.length;
    }
    return groups_run(c, &dispatch, device->local);
}
