// SPDX-License-Identifier: Apache-2.0
// Memory that others have, too: pages of the application, objects of Metal's, and pages behind a
// descriptor.
#include <sys/mman.h>

#include "base/shared_memory.h"
#include "base/status.h"
#include "drivers/metal/memory/pieces.h"

enum { STORAGE_MANAGED = 1, STORAGE_PRIVATE = 2 }; // MTLStorageMode

// Metal takes whole pages: those that the memory lies in.
static keel_status_t import_host(keel_buffer_t *buffer)
{
    uint64_t host = (uintptr_t)buffer->external.handle.host, inside = host % METAL_PAGE;
    uint64_t size = metal_round_up(inside + buffer->size, METAL_PAGE);
    id made = metal_mapping_wrap(metal_device(buffer->device), (void *)(uintptr_t)(host - inside),
                                 size, NULL);
    return metal_memory_attach(buffer, made, inside);
}

keel_status_t metal_buffer_export(keel_buffer_t *buffer, keel_external_buffer_t *external)
{
    const metal_memory_t *memory = metal_memory_of(buffer->root);
    external->offset += memory->inside;
    return shared_memory_duplicate(memory->mapping->fd, &external->handle.fd);
}

static keel_status_t import_file(keel_buffer_t *buffer)
{
    const keel_external_buffer_t *external = &buffer->external;
    int protection = (buffer->access & KEEL_ACCESS_READ ? PROT_READ : 0) |
                     (buffer->access & KEEL_ACCESS_WRITE ? PROT_WRITE : 0);
    uint64_t size = metal_round_up(external->size, METAL_PAGE);
    metal_mapping_t file = {.fd = external->handle.fd}, *mapping = NULL;
    KEEL_TRY(shared_memory_check(external->handle.fd, external->offset, external->size));
    KEEL_TRY(metal_mapping_make(file, size, protection, external->offset, &mapping));
    return metal_mapping_attach(buffer, mapping, size, 0);
}

// What memory an object of another's making is. False: of a kind that is not used here.
static bool bits_find(const metal_device_t *device, id object, uint32_t *bits)
{
    const uint32_t local = KEEL_MEMORY_DEVICE_LOCAL | KEEL_MEMORY_DEVICE_VISIBLE;
    unsigned long mode = mtl_storage_mode(device->api, object);
    *bits = metal_shared_bits(device);
    if (mode == STORAGE_PRIVATE) *bits = local;
    if (mode == STORAGE_MANAGED) *bits = local | KEEL_MEMORY_HOST_VISIBLE | KEEL_MEMORY_HOST_CACHED;
    return mode <= STORAGE_PRIVATE && (device->discrete || mode != STORAGE_MANAGED);
}

static keel_status_t object_check(const metal_device_t *device,
                                  const keel_external_buffer_t *external)
{
    const metal_api_t *api = device->api;
    id object = external->handle.object;
    unsigned long length = mtl_length(api, object);
    if (mtl_registry_id(api, mtl_device(api, object)) != mtl_registry_id(api, device->device))
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "external->handle.object is of another device");
    if (external->offset <= length && external->size <= length - external->offset) return NULL;
    return KEEL_ERROR(KEEL_OUT_OF_RANGE, "external: %llu bytes at %llu; the MTLBuffer has %lu",
                      (unsigned long long)external->size, (unsigned long long)external->offset,
                      length);
}

static keel_status_t import_object(keel_buffer_t *buffer)
{
    metal_device_t *device = metal_device(buffer->device);
    const metal_api_t *api = device->api;
    id object = buffer->external.handle.object;
    if (!object) { // an empty tensor
        id none = mtl_new_buffer(api, device->device, METAL_WORD, METAL_SHARED | METAL_UNTRACKED);
        return metal_memory_attach(buffer, none, 0);
    }
    KEEL_TRY(object_check(device, &buffer->external));
    if (!bits_find(device, object, &buffer->memory))
        return KEEL_ERROR(KEEL_UNSUPPORTED, "the MTLBuffer's storage is managed, in memory that is "
                                            "unified");
    return metal_memory_attach_alias(buffer, mtl_retain(api, object), buffer->external.offset);
}

static keel_status_t import(keel_buffer_t *buffer)
{
    switch (buffer->external.kind) {
    case KEEL_EXTERNAL_HOST: return import_host(buffer);
    case KEEL_EXTERNAL_DEVICE: return metal_memory_attach_address(buffer);
    case KEEL_EXTERNAL_FD: return import_file(buffer);
    default: return import_object(buffer);
    }
}

keel_status_t metal_buffer_import(keel_buffer_t *buffer)
{
    const metal_api_t *api = metal_device(buffer->device)->api;
    buffer->memory = metal_shared_bits(metal_device(buffer->device));
    void *pool = metal_enter(api);
    keel_status_t status = import(buffer);
    metal_leave(api, pool);
    return status;
}

void metal_buffer_forget(keel_buffer_t *buffer)
{
    metal_buffer_free(buffer);
    if (buffer->external.release) buffer->external.release(buffer->external.user);
}

void metal_buffer_object(keel_buffer_t *root, void **object, uint64_t *offset)
{
    const keel_buffer_t *owner = metal_memory_owner(root);
    const metal_memory_t *memory = metal_memory_of(owner);
    *object = memory->buffer;
    *offset = memory->inside + (atomic_load(&root->address) - atomic_load(&owner->address));
}
