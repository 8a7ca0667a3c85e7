// SPDX-License-Identifier: Apache-2.0
#include <string.h>
#include <unistd.h>

#include "base/live.h"
#include "base/memory.h"
#include "core/check.h"
#include "core/device_ref.h"
#include "kit/device.h"
#include "kit/executable.h"
#include "kit/pool.h"
#include "kit/view.h"

static keel_status_t options_check(const keel_device_t *device,
                                   const keel_buffer_options_t *options)
{
    KEEL_TRY(check_flags("options->memory", options->memory, MEMORY_ALL));
    KEEL_TRY(check_flags("options->usage", options->usage, USAGE_ALL));
    KEEL_TRY(check_flags("options->access", options->access, KEEL_ACCESS_ALL));
    CHECK(options->node < device->caps.nodes, KEEL_OUT_OF_RANGE,
          "options->node is %u; the device has %u", options->node, device->caps.nodes);
    CHECK(!(options->alignment & (options->alignment - 1)), KEEL_INVALID_ARGUMENT,
          "options->alignment is %llu, which is no power of two",
          (unsigned long long)options->alignment);
    CHECK(options->alignment <= UINT64_C(1) << 30, KEEL_OUT_OF_RANGE,
          "options->alignment is above 2^30");
    return NULL;
}

// Memory that is the host's, where the device has its own, is bounded by the host alone.
static keel_status_t size_check(const keel_device_t *device, const char *argument, uint64_t size,
                                uint32_t memory)
{
    const keel_caps_t *caps = &device->caps;
    bool hosts = caps->memory_types[0] & ~memory & KEEL_MEMORY_DEVICE_LOCAL;
    uint64_t most = hosts ? INT64_MAX : caps->max_buffer_size;
    CHECK(size <= most, KEEL_OUT_OF_RANGE,
          "%s is %llu bytes; a buffer of the device has at most %llu", argument,
          (unsigned long long)size, (unsigned long long)most);
    return NULL;
}

// The memory type the device has that has all that was asked for.
static keel_status_t memory_choose(const keel_device_t *device, uint32_t wanted, uint32_t *chosen)
{
    for (int i = 0; i < 8 && device->caps.memory_types[i]; i++) {
        *chosen = device->caps.memory_types[i];
        if ((*chosen & wanted) == wanted) return NULL;
    }
    return KEEL_ERROR(
        KEEL_UNSUPPORTED,
        "options->memory is 0x%x; the device has no such memory (keel_caps_t.memory_types)",
        wanted);
}

// A zeroed buffer of the device with what all kinds have in common. On failure nothing is left. The
// device is held by roots with memory of their own, by the pool of others, and by the root of
// subspans.
static keel_status_t buffer_make(keel_device_t *device, const keel_buffer_options_t *options,
                                 keel_buffer_t **buffer)
{
    keel_buffer_t *b = mem_zalloc(sizeof *b);
    if (!b) return status_no_memory();
    keel_status_t status = options->name ? copy_name(options->name, &b->name) : NULL;
    if (status) {
        mem_free(b);
        return status;
    }
    object_init(&b->object);
    b->device = device;
    b->root = b;
    b->size = options->size;
    b->alignment = options->alignment > device->caps.buffer_alignment
                       ? options->alignment
                       : device->caps.buffer_alignment;
    b->usage = options->usage ? options->usage : USAGE_DEFAULT;
    b->access = options->access ? options->access : KEEL_ACCESS_ALL;
    b->node = options->node;
    live_add(LIVE_BUFFER, 1);
    *buffer = b;
    return NULL;
}

static void buffer_unmake(keel_buffer_t *buffer)
{
    if (!buffer->staging) live_add(LIVE_BUFFER, -1);
    mem_free(buffer->name);
    mem_free(buffer);
}

static void device_count(keel_device_t *device, uint64_t bytes)
{
    atomic_fetch_add(&device->buffers, 1);
    device_peak(device, atomic_fetch_add(&device->used, bytes) + bytes);
}

keel_status_t keel_buffer_create(keel_device_t *device, const keel_buffer_options_t *options,
                                 keel_buffer_t **buffer)
{
    CHECK_NOT_NULL(buffer);
    *buffer = NULL;
    CHECK_NOT_NULL(device);
    CHECK_NOT_NULL(options);
    KEEL_TRY(device_check(device));
    KEEL_TRY(options_check(device, options));
    uint32_t memory = 0;
    KEEL_TRY(memory_choose(device, options->memory, &memory));
    KEEL_TRY(size_check(device, "options->size", options->size, memory));
    CHECK(!(options->usage & KEEL_USAGE_EXPORT) || (device->caps.bits & KEEL_CAP_EXPORT_FD),
          KEEL_UNSUPPORTED,
          "options->usage asks for KEEL_USAGE_EXPORT, and the device has no KEEL_CAP_EXPORT_FD");
    keel_buffer_t *b;
    KEEL_TRY(buffer_make(device, options, &b));
    b->memory = memory;
    keel_status_t status = device->ops->buffer_alloc(b);
    if (status) {
        buffer_unmake(b);
        return status;
    }
    atomic_store(&b->resident, 1);
    device_count(device, b->capacity);
    device_hold(device);
    *buffer = b;
    return NULL;
}

keel_status_t keel_buffer_reserve(keel_pool_t *pool, const keel_buffer_options_t *options,
                                  keel_buffer_t **buffer)
{
    CHECK_NOT_NULL(buffer);
    *buffer = NULL;
    CHECK_NOT_NULL(pool);
    CHECK_NOT_NULL(options);
    KEEL_TRY(device_check(pool->device));
    KEEL_TRY(options_check(pool->device, options));
    KEEL_TRY(size_check(pool->device, "options->size", options->size, pool->options.memory));
    uint64_t block = pool->options.block_size;
    CHECK(!block ||
              (options->size <= block && options->alignment <= pool->device->caps.buffer_alignment),
          KEEL_OUT_OF_RANGE,
          "options ask for %llu bytes aligned to %llu; the pool has blocks of %llu aligned to %llu",
          (unsigned long long)options->size, (unsigned long long)options->alignment,
          (unsigned long long)block, (unsigned long long)pool->device->caps.buffer_alignment);
    CHECK(options->size <= pool->options.limit, KEEL_OUT_OF_RANGE,
          "options->size is %llu bytes; pool '%s' gives %llu to all its buffers together",
          (unsigned long long)options->size, TEXT_OF(pool->name),
          (unsigned long long)pool->options.limit);
    keel_buffer_t *b;
    KEEL_TRY(buffer_make(pool->device, options, &b));
    b->memory = pool->options.memory;
    b->usage = pool->options.usage;
    b->node = pool->options.node;
    b->pool = keel_pool_retain(pool);
    *buffer = b;
    return NULL;
}

// That a range lies within the buffer; *length comes back as a number.
static keel_status_t range_check(const keel_buffer_t *buffer, uint64_t offset, uint64_t *length)
{
    CHECK(offset <= buffer->size, KEEL_OUT_OF_RANGE, "offset %llu lies beyond %s",
          (unsigned long long)offset, BUFFER_EXTENT(buffer));
    if (*length == KEEL_WHOLE) *length = buffer->size - offset;
    CHECK(*length <= buffer->size - offset, KEEL_OUT_OF_RANGE,
          "offset %llu and length %llu reach beyond %s", (unsigned long long)offset,
          (unsigned long long)*length, BUFFER_EXTENT(buffer));
    return NULL;
}

keel_status_t keel_buffer_subspan(keel_buffer_t *buffer, uint64_t offset, uint64_t length,
                                  keel_buffer_t **subspan)
{
    CHECK_NOT_NULL(subspan);
    *subspan = NULL;
    CHECK_NOT_NULL(buffer);
    KEEL_TRY(range_check(buffer, offset, &length));
    keel_buffer_options_t options = {.size = length,
                                     .usage = buffer->usage,
                                     .access = buffer->access,
                                     .node = buffer->node,
                                     .name = buffer->name};
    keel_buffer_t *b = NULL;
    KEEL_TRY(buffer_make(buffer->device, &options, &b));
    b->memory = buffer->memory;
    b->root = keel_buffer_retain(buffer->root);
    b->offset = buffer->offset + offset;
    *subspan = b;
    return NULL;
}

keel_buffer_t *keel_buffer_retain(keel_buffer_t *buffer)
{
    if (buffer) object_retain(&buffer->object);
    return buffer;
}

static void root_release_memory(keel_buffer_t *buffer)
{
    keel_device_t *device = buffer->device;
    if (buffer->pool) {
        if (object_is_ours(&buffer->object))
            pool_reclaim(buffer);
        else
            keel_buffer_release(buffer->lender);
        keel_pool_release(buffer->pool);
        return;
    }
    if (buffer->external.size || buffer->external.release) {
        device->ops->buffer_forget(buffer);
        if (buffer->executable) executable_unuse(buffer->executable);
    } else {
        device->ops->buffer_free(buffer);
        atomic_fetch_sub(&device->buffers, 1);
        atomic_fetch_sub(&device->used, buffer->capacity);
    }
    device_drop(device);
}

static void root_destroy(keel_buffer_t *buffer)
{
    root_release_memory(buffer);
    buffer_unmake(buffer);
}

// Apart from the release, which seldom is the last.
__attribute__((noinline)) static void buffer_destroy(keel_buffer_t *buffer)
{
    if (buffer->root == buffer) {
        if (views_end(buffer, root_destroy)) root_destroy(buffer);
        return;
    }
    keel_buffer_release(buffer->root);
    buffer_unmake(buffer);
}

void keel_buffer_release(keel_buffer_t *buffer)
{
    if (buffer && object_release_unlisted(&buffer->object)) buffer_destroy(buffer);
}

uint64_t keel_buffer_size(const keel_buffer_t *buffer)
{
    return buffer->size;
}

void keel_buffer_info(const keel_buffer_t *buffer, keel_buffer_info_t *info)
{
    *info = (keel_buffer_info_t){
        .size = buffer->size,
        .memory = buffer->memory,
        .usage = buffer->usage,
        .access = buffer->access,
        .node = buffer->node,
        .queue_ordered = buffer->root->pool != NULL,
        .resident = atomic_load(&buffer->root->resident) != 0,
        .offset = buffer->offset,
        .root = buffer->root,
        .device = buffer->device,
        .name = TEXT_OF(buffer->name),
    };
}

// That the buffer has memory now.
static keel_status_t resident_check(const keel_buffer_t *buffer)
{
    // acquire: pairs with the alloca that gave it memory.
    CHECK(atomic_load_explicit(&buffer->root->resident, memory_order_acquire),
          KEEL_FAILED_PRECONDITION, "%s has no memory: its alloca has not run, or its dealloca has",
          BUFFER_LABEL(buffer));
    return NULL;
}

keel_status_t keel_buffer_address(keel_buffer_t *buffer, uint64_t *address)
{
    CHECK_NOT_NULL(buffer);
    CHECK_NOT_NULL(address);
    KEEL_TRY(resident_check(buffer));
    *address = atomic_load(&buffer->root->address) + buffer->offset;
    return NULL;
}

static keel_status_t host_check(const keel_buffer_t *buffer, uint64_t offset, uint64_t *length)
{
    CHECK_NOT_NULL(buffer);
    CHECK(object_is_ours(&buffer->object), KEEL_DEVICE_LOST,
          "%s was made before fork and stayed with the parent process", BUFFER_LABEL(buffer));
    KEEL_TRY(range_check(buffer, offset, length));
    CHECK(buffer->memory & KEEL_MEMORY_HOST_VISIBLE, KEEL_PERMISSION_DENIED,
          "%s is in memory 0x%x, which the host cannot reach; make it with "
          "KEEL_MEMORY_HOST_VISIBLE, or let a queue copy it to or from a buffer that is",
          BUFFER_LABEL(buffer), buffer->memory);
    return NULL;
}

keel_status_t keel_buffer_map(keel_buffer_t *buffer, uint64_t offset, uint64_t length,
                              uint32_t access, void **pointer)
{
    CHECK_NOT_NULL(pointer);
    *pointer = NULL;
    KEEL_TRY(host_check(buffer, offset, &length));
    KEEL_TRY(check_flags("access", access, KEEL_ACCESS_ALL));
    CHECK(access, KEEL_INVALID_ARGUMENT,
          "access is 0; say what the host will do with %s: KEEL_ACCESS_READ, KEEL_ACCESS_WRITE or "
          "KEEL_ACCESS_ALL",
          BUFFER_LABEL(buffer));
    CHECK(buffer->usage & KEEL_USAGE_MAP, KEEL_PERMISSION_DENIED,
          "%s was made without KEEL_USAGE_MAP", BUFFER_LABEL(buffer));
    CHECK((buffer->access & access) == access, KEEL_PERMISSION_DENIED,
          "access is 0x%x, but %s allows only 0x%x", access, BUFFER_LABEL(buffer), buffer->access);
    KEEL_TRY(resident_check(buffer));
    *pointer = (char *)atomic_load(&buffer->root->data) + buffer->offset + offset;
    object_retain(&buffer->object); // a mapping keeps the memory
    return NULL;
}

void keel_buffer_unmap(keel_buffer_t *buffer)
{
    keel_buffer_release(buffer);
}

keel_status_t keel_buffer_flush(keel_buffer_t *buffer, uint64_t offset, uint64_t length)
{
    KEEL_TRY(host_check(buffer, offset, &length));
    if (!buffer->device->ops->buffer_flush) return NULL;
    return buffer->device->ops->buffer_flush(buffer, offset, length);
}

keel_status_t keel_buffer_invalidate(keel_buffer_t *buffer, uint64_t offset, uint64_t length)
{
    KEEL_TRY(host_check(buffer, offset, &length));
    if (!buffer->device->ops->buffer_invalidate) return NULL;
    return buffer->device->ops->buffer_invalidate(buffer, offset, length);
}

keel_status_t keel_buffer_read(keel_buffer_t *buffer, uint64_t offset, void *target,
                               uint64_t length)
{
    CHECK(length != KEEL_WHOLE, KEEL_OUT_OF_RANGE, "length is KEEL_WHOLE; give bytes");
    CHECK(target || !length, KEEL_INVALID_ARGUMENT, "target is NULL, but length is %llu",
          (unsigned long long)length);
    void *memory;
    KEEL_TRY(keel_buffer_map(buffer, offset, length, KEEL_ACCESS_READ, &memory));
    keel_status_t status = keel_buffer_invalidate(buffer, offset, length);
    if (!status && length) memcpy(target, memory, length);
    keel_buffer_unmap(buffer);
    return status;
}

keel_status_t keel_buffer_write(keel_buffer_t *buffer, uint64_t offset, const void *source,
                                uint64_t length)
{
    CHECK(length != KEEL_WHOLE, KEEL_OUT_OF_RANGE, "length is KEEL_WHOLE; give bytes");
    CHECK(source || !length, KEEL_INVALID_ARGUMENT, "source is NULL, but length is %llu",
          (unsigned long long)length);
    void *memory;
    KEEL_TRY(keel_buffer_map(buffer, offset, length, KEEL_ACCESS_WRITE, &memory));
    if (length) memcpy(memory, source, length);
    keel_status_t status = keel_buffer_flush(buffer, offset, length);
    keel_buffer_unmap(buffer);
    return status;
}

// Memory behind a descriptor is mapped by whole pages.
static keel_status_t page_check(const char *what, uint64_t offset)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    CHECK(offset % page == 0, KEEL_INVALID_ARGUMENT,
          "%s is %llu, no multiple of the page size %llu", what, (unsigned long long)offset,
          (unsigned long long)page);
    return NULL;
}

static keel_status_t external_check(const keel_device_t *device,
                                    const keel_external_buffer_t *external)
{
    switch (external->kind) {
    case KEEL_EXTERNAL_HOST:
        CHECK(external->handle.host || !external->size, KEEL_INVALID_ARGUMENT,
              "external->handle.host is NULL");
        CHECK(external->size <= UINTPTR_MAX - (uintptr_t)external->handle.host, KEEL_OUT_OF_RANGE,
              "external->size is %llu bytes, more than there are behind external->handle.host",
              (unsigned long long)external->size);
        return NULL;
    case KEEL_EXTERNAL_DEVICE:
        CHECK(external->handle.device || !external->size, KEEL_INVALID_ARGUMENT,
              "external->handle.device is 0");
        return NULL;
    case KEEL_EXTERNAL_FD:
        CHECK(external->handle.fd >= 0, KEEL_INVALID_ARGUMENT, "external->handle.fd is %d",
              external->handle.fd);
        CHECK(external->size, KEEL_INVALID_ARGUMENT, "external->size is 0");
        return page_check("external->offset", external->offset);
    case KEEL_EXTERNAL_NATIVE:
        CHECK(device->ops->buffer_object, KEEL_UNSUPPORTED, "device '%s' has no objects for memory",
              device->name);
        CHECK(external->handle.object || !external->size, KEEL_INVALID_ARGUMENT,
              "external->handle.object is NULL");
        return NULL;
    }
    return KEEL_ERROR(KEEL_INVALID_ARGUMENT,
                      "external->kind is %d, which is none of keel_external_kind_t",
                      (int)external->kind);
}

keel_status_t keel_buffer_import(keel_device_t *device, const keel_external_buffer_t *external,
                                 const keel_buffer_options_t *options, keel_buffer_t **buffer)
{
    CHECK_NOT_NULL(buffer);
    *buffer = NULL;
    CHECK_NOT_NULL(device);
    CHECK_NOT_NULL(external);
    KEEL_TRY(device_check(device));
    CHECK(device->caps.bits & KEEL_CAP_IMPORT_HOST, KEEL_UNSUPPORTED,
          "the device has no KEEL_CAP_IMPORT_HOST");
    KEEL_TRY(external_check(device, external));
    keel_buffer_options_t own = options ? *options : (keel_buffer_options_t){0};
    CHECK(!(own.usage & KEEL_USAGE_EXPORT), KEEL_UNSUPPORTED,
          "options->usage asks for KEEL_USAGE_EXPORT; only memory that Keel made is exported");
    own.size = external->size;
    own.alignment = 0;
    KEEL_TRY(options_check(device, &own));
    bool hosts = external->kind == KEEL_EXTERNAL_HOST;
    KEEL_TRY(size_check(device, "external->size", external->size,
                        hosts ? KEEL_MEMORY_HOST_VISIBLE : device->caps.memory_types[0]));
    keel_buffer_t *b;
    KEEL_TRY(buffer_make(device, &own, &b));
    b->external = *external;
    b->memory = own.memory;
    keel_status_t status = device->ops->buffer_import(b);
    if (!status && own.memory & ~b->memory) {
        status = KEEL_ERROR(KEEL_UNSUPPORTED,
                            "options->memory is 0x%x; the memory that is imported is 0x%x",
                            own.memory, b->memory);
        b->external.release = NULL; // it stays the caller's
        device->ops->buffer_forget(b);
    }
    if (status) {
        buffer_unmake(b);
        return status;
    }
    // Marks it as imported even if there is nothing of it.
    if (!b->external.size && !b->external.release) b->external.size = 1;
    atomic_store(&b->resident, 1);
    device_hold(device);
    *buffer = b;
    return NULL;
}

keel_status_t keel_buffer_export(keel_buffer_t *buffer, keel_external_buffer_t *external)
{
    CHECK_NOT_NULL(buffer);
    CHECK_NOT_NULL(external);
    KEEL_TRY(device_check(buffer->device));
    KEEL_TRY(resident_check(buffer));
    keel_external_kind_t kind = external->kind;
    *external = (keel_external_buffer_t){.kind = kind, .size = buffer->size};
    switch (kind) {
    case KEEL_EXTERNAL_HOST: {
        CHECK(buffer->memory & KEEL_MEMORY_HOST_VISIBLE, KEEL_PERMISSION_DENIED,
              "%s is not in KEEL_MEMORY_HOST_VISIBLE memory", BUFFER_LABEL(buffer));
        external->handle.host = (char *)atomic_load(&buffer->root->data) + buffer->offset;
        return NULL;
    }
    case KEEL_EXTERNAL_DEVICE:
        external->handle.device = atomic_load(&buffer->root->address) + buffer->offset;
        return NULL;
    case KEEL_EXTERNAL_FD:
        CHECK(buffer->usage & KEEL_USAGE_EXPORT, KEEL_PERMISSION_DENIED,
              "%s was made without KEEL_USAGE_EXPORT", BUFFER_LABEL(buffer));
        KEEL_TRY(page_check("the offset of the subspan", buffer->offset));
        external->offset = buffer->offset;
        return buffer->device->ops->buffer_export(buffer, external);
    case KEEL_EXTERNAL_NATIVE:
        CHECK(buffer->device->ops->buffer_object, KEEL_UNSUPPORTED,
              "device '%s' has no objects for memory", buffer->device->name);
        buffer->device->ops->buffer_object(buffer->root, &external->handle.object,
                                           &external->offset);
        external->offset += buffer->offset;
        return NULL;
    }
    return KEEL_ERROR(KEEL_INVALID_ARGUMENT,
                      "external->kind is %d, which is none of keel_external_kind_t", (int)kind);
}
