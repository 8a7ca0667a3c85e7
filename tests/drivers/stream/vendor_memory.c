// SPDX-License-Identifier: Apache-2.0
// Memory, pools, and code.
#include <stdlib.h>
#include <string.h>

#include "drivers/stream/vendor_inside.h"

typedef struct memory_t {
    thing_t thing;
    char *data; // owned, unless it is the application's
    uint64_t size;
    thing_t *pool; // NULL: none
} memory_t;

static uint64_t limit, used;

static void memory_finish(thing_t *thing)
{
    free(((memory_t *)thing)->data);
}

static memory_t *memory_of(thing_kind_t kind, uint64_t address)
{
    for (thing_t *thing = thing_first(); thing; thing = thing->next) {
        memory_t *m = (memory_t *)thing;
        if (thing->kind == kind && address - (uintptr_t)m->data < m->size) return m;
    }
    return NULL;
}

static keel_status_t memory_get(uint64_t size, thing_t *pool, void **data)
{
    if (used + size > limit)
        return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "the fake has no %llu bytes",
                          (unsigned long long)size);
    memory_t *m = thing_new(THING_MEMORY, sizeof *m);
    m->thing.finish = memory_finish;
    m->data = aligned_alloc(STREAM_ALIGNMENT,
                            (size + STREAM_ALIGNMENT - 1) & ~(uint64_t)(STREAM_ALIGNMENT - 1));
    if (!m->data) abort();
    m->size = size;
    m->pool = pool;
    used += size;
    *data = m->data;
    return NULL;
}

void memory_end(uint64_t address)
{
    memory_t *m = memory_of(THING_MEMORY, address);
    if (!m || (uintptr_t)m->data != address) {
        misuse("memory is freed that is none; ");
        return;
    }
    used -= m->size;
    free(m->data);
    m->data = NULL;
    thing_end(m, THING_MEMORY);
}

static keel_status_t alloc(stream_vendor_t *v, uint64_t size, uint64_t *address)
{
    void *data = NULL;
    BEGIN(alloc_device);
    keel_status_t status = memory_get(size, NULL, &data);
    *address = (uintptr_t)data;
    return done(status);
}

static keel_status_t alloc_managed(stream_vendor_t *v, uint64_t size, uint64_t *address)
{
    void *data = NULL;
    BEGIN(alloc_managed);
    keel_status_t status = memory_get(size, NULL, &data);
    *address = (uintptr_t)data;
    return done(status);
}

static keel_status_t alloc_host(stream_vendor_t *v, uint64_t size, void **data)
{
    BEGIN(alloc_host);
    keel_status_t status = memory_get(size, NULL, data);
    return done(status);
}

static void free_memory(stream_vendor_t *v, void *what)
{
    BEGIN_VOID(free_device);
    memory_end((uintptr_t)what);
    done(NULL);
}

static void free_host(stream_vendor_t *v, void *what)
{
    BEGIN_VOID(free_host);
    memory_end((uintptr_t)what);
    done(NULL);
}

static keel_status_t allocation(stream_vendor_t *v, uint64_t address, uint64_t *start)
{
    BEGIN(allocation);
    const memory_t *m = memory_of(THING_MEMORY, address);
    if (m) *start = (uintptr_t)m->data;
    return done(m ? NULL : KEEL_ERROR(KEEL_INVALID_ARGUMENT, "no allocation has the address"));
}

static keel_status_t host_address(stream_vendor_t *v, void *data, uint64_t *address)
{
    BEGIN(host_address);
    *address = (uintptr_t)data;
    bool known = memory_of(THING_MEMORY, *address) || memory_of(THING_LOCKED, *address);
    return done(known ? NULL : KEEL_ERROR(KEEL_INVALID_ARGUMENT, "memory is not locked"));
}

static keel_status_t host_register(stream_vendor_t *v, void *data, uint64_t size, bool written,
                                   bool *already)
{
    (void)written;
    BEGIN(host_register);
    memory_t *m = thing_new(THING_LOCKED, sizeof *m);
    m->data = data;
    m->size = size;
    *already = false;
    return done(NULL);
}

static void host_unregister(stream_vendor_t *v, void *data)
{
    BEGIN_VOID(host_unregister);
    memory_t *m = memory_of(THING_LOCKED, (uintptr_t)data);
    if (!m) misuse("pages are unlocked that are not locked; ");
    if (m) thing_end(m, THING_LOCKED);
    done(NULL);
}

static uint64_t memory(stream_vendor_t *v)
{
    BEGIN_VOID(memory);
    uint64_t left = limit - used;
    done(NULL);
    return left;
}

static keel_status_t pool_create(stream_vendor_t *v, uint64_t threshold, stream_pool_h *pool)
{
    (void)threshold;
    BEGIN(pool_create);
    *pool = thing_new(THING_POOL, sizeof(thing_t));
    return done(NULL);
}

static void pool_destroy(stream_vendor_t *v, stream_pool_h pool)
{
    BEGIN_VOID(pool_destroy);
    thing_end(pool, THING_POOL);
    done(NULL);
}

static keel_status_t pool_alloc(stream_vendor_t *v, stream_pool_h pool, stream_h stream,
                                uint64_t size, uint64_t *address)
{
    void *data = NULL;
    BEGIN(pool_alloc);
    thing_of(stream, THING_STREAM);
    keel_status_t status = memory_get(size, thing_of(pool, THING_POOL), &data);
    *address = (uintptr_t)data;
    return done(status);
}

static keel_status_t pool_free(stream_vendor_t *v, stream_h stream, uint64_t address)
{
    BEGIN(pool_free);
    stream_put(stream, &(work_t){.kind = WORK_FREE, .address = address});
    return done(NULL);
}

static uint64_t pool_reserved(stream_vendor_t *v, stream_pool_h pool)
{
    uint64_t bytes = 0;
    BEGIN_VOID(pool_reserved);
    for (thing_t *thing = thing_first(); thing; thing = thing->next)
        if (thing->kind == THING_MEMORY && ((memory_t *)thing)->pool == pool)
            bytes += ((memory_t *)thing)->size;
    done(NULL);
    return bytes;
}

static keel_status_t pool_trim(stream_vendor_t *v, stream_pool_h pool, uint64_t keep)
{
    (void)keep;
    BEGIN(pool_trim);
    thing_of(pool, THING_POOL);
    return done(NULL);
}

static uint32_t image_rank(stream_vendor_t *v, keel_image_kind_t kind, const char *target)
{
    (void)v;
    return kind == KEEL_IMAGE_SPIRV && !strcmp(target, "fake") ? KEEL_RANK_EXACT : 0;
}

static keel_status_t module_load(stream_vendor_t *v, const void *data, size_t size,
                                 stream_module_h *module)
{
    (void)data, (void)size;
    BEGIN(module_load);
    *module = thing_new(THING_MODULE, sizeof(thing_t));
    return done(NULL);
}

static void module_unload(stream_vendor_t *v, void *module)
{
    BEGIN_VOID(module_unload);
    thing_end(module, THING_MODULE);
    done(NULL);
}

static keel_status_t module_function(stream_vendor_t *v, stream_module_h module, const char *name,
                                     stream_function_h *function, uint32_t *local_memory)
{
    BEGIN(module_function);
    thing_of(module, THING_MODULE);
    const kernel_t *kernel = kernel_find(name);
    *function = (void *)(uintptr_t)kernel;
    *local_memory = 0;
    return done(kernel ? NULL : KEEL_ERROR(KEEL_NOT_FOUND, "the fake has no kernel %s", name));
}

static keel_status_t module_global(stream_vendor_t *v, stream_module_h module, const char *name,
                                   uint64_t *address, uint64_t *size)
{
    (void)module, (void)address, (void)size;
    BEGIN(module_global);
    return done(KEEL_ERROR(KEEL_NOT_FOUND, "the fake has no variable %s", name));
}

static keel_status_t function_allow(stream_vendor_t *v, stream_function_h function,
                                    uint32_t local_memory)
{
    (void)function, (void)local_memory;
    BEGIN(function_allow);
    return done(NULL);
}

static keel_status_t function_arguments(stream_vendor_t *v, stream_function_h function,
                                        uint32_t *size)
{
    BEGIN(function_arguments);
    *size = ((const kernel_t *)function)->arguments;
    return done(NULL);
}

static const void *builtin_image(stream_vendor_t *v)
{
    (void)v;
    return "built-in kernels";
}

void memory_slots(stream_api_t *api, uint32_t features)
{
    api->memory = memory;
    api->alloc_device = alloc;
    api->free_device = free_memory;
    api->alloc_host = alloc_host;
    api->free_host = free_host;
    api->allocation = allocation;
    api->host_address = host_address;
    api->host_register = host_register;
    api->host_unregister = host_unregister;
    api->image_rank = image_rank;
    api->module_load = module_load;
    api->module_unload = module_unload;
    api->module_function = module_function;
    api->module_global = module_global;
    api->function_allow = function_allow;
    api->builtin_image = builtin_image;
    api->builtin_names = kernel_builtins;
    if (features & STREAM_MANAGED) api->alloc_managed = alloc_managed;
    if (features & STREAM_ARGUMENTS) api->function_arguments = function_arguments;
    if (!(features & STREAM_POOLS)) return;
    api->pool_create = pool_create;
    api->pool_destroy = pool_destroy;
    api->pool_alloc = pool_alloc;
    api->pool_free = pool_free;
    api->pool_reserved = pool_reserved;
    api->pool_trim = pool_trim;
}

void vendor_memory(uint64_t bytes)
{
    vendor_lock();
    limit = bytes;
    done(NULL);
}

void memory_reset(void)
{
    used = 0;
}
