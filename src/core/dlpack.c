// SPDX-License-Identifier: Apache-2.0
#include <keel/dlpack.h>

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "core/check.h"

enum {
    FLAG_READ_ONLY = 1,
    METAL = 8 // kDLMetal: `data` is an object, an id<MTLBuffer>
};

// A tensor as it was given. Pointers are borrowed.
typedef struct view_t {
    // What messages call it: "tensor->", followed by the names of fields, of which two differ.
    const char *name, *rank_name, *type_name;
    DLDataType type;
    int32_t rank;
    const int64_t *shape, *strides;
} view_t;

// What it comes to.
typedef struct layout_t {
    int64_t shape[KEEL_DLPACK_MAX_DIMS];
    int64_t strides[KEEL_DLPACK_MAX_DIMS]; // in elements
    uint64_t bytes;                        // from the first element to the end of the last
} layout_t;

static keel_status_t view_check(const view_t *view)
{
    CHECK(view->rank >= 0 && view->rank <= KEEL_DLPACK_MAX_DIMS, KEEL_INVALID_ARGUMENT,
          "%s%s is %d; it must be 0 to %d", view->name, view->rank_name, view->rank,
          KEEL_DLPACK_MAX_DIMS);
    CHECK(view->shape || !view->rank, KEEL_INVALID_ARGUMENT, "%sshape is NULL, but %s is %d",
          view->name, view->rank_name, view->rank);
    CHECK(view->type.bits && view->type.lanes && view->type.bits * view->type.lanes % 8 == 0,
          KEEL_INVALID_ARGUMENT, "%s%s has %u bits in %u lanes; elements must be whole bytes",
          view->name, view->type_name, view->type.bits, view->type.lanes);
    for (int32_t i = 0; i < view->rank; i++) {
        CHECK(view->shape[i] >= 0, KEEL_INVALID_ARGUMENT, "%sshape[%d] is %lld", view->name, i,
              (long long)view->shape[i]);
        // Where there is nothing to step to, a stride may be anything.
        CHECK(!view->strides || view->strides[i] >= 0 || view->shape[i] <= 1, KEEL_INVALID_ARGUMENT,
              "%sstrides[%d] is %lld; negative strides are not supported", view->name, i,
              (long long)view->strides[i]);
    }
    return NULL;
}

static keel_status_t layout_strides(const view_t *view, layout_t *layout)
{
    int64_t compact = 1;
    for (int32_t i = view->rank; i-- > 0;) {
        int64_t size = layout->shape[i] = view->shape[i];
        layout->strides[i] = view->strides ? view->strides[i] : compact;
        CHECK(!__builtin_mul_overflow(compact, size ? size : 1, &compact), KEEL_OUT_OF_RANGE,
              "%sshape[%d] is %lld, which makes more than 2^63 elements", view->name, i,
              (long long)size);
    }
    return NULL;
}

static keel_status_t layout_of(const view_t *view, layout_t *layout)
{
    KEEL_TRY(view_check(view));
    KEEL_TRY(layout_strides(view, layout));
    uint64_t element = view->type.bits * view->type.lanes / 8u, end = element;
    bool empty = false;
    for (int32_t i = 0; i < view->rank; i++) {
        uint64_t step, size = (uint64_t)layout->shape[i];
        empty |= size == 0;
        if (size <= 1) continue;
        CHECK(!__builtin_mul_overflow((uint64_t)layout->strides[i], element, &step) &&
                  !__builtin_mul_overflow(step, size - 1, &step) &&
                  !__builtin_add_overflow(end, step, &end),
              KEEL_OUT_OF_RANGE,
              "%sshape[%d] is %lld with stride %lld, which reaches beyond 2^64 bytes", view->name,
              i, (long long)size, (long long)layout->strides[i]);
    }
    layout->bytes = empty ? 0 : end;
    return NULL;
}

// Tensors out of buffers.

typedef struct exported_t {
    keel_buffer_t *buffer; // retained
    layout_t layout;
    DLTensor tensor;
    union {
        DLManagedTensorVersioned versioned;
        DLManagedTensor legacy;
    } managed;
} exported_t;

static void exported_destroy(exported_t *exported)
{
    keel_buffer_release(exported->buffer);
    mem_free(exported);
}

static void versioned_delete(DLManagedTensorVersioned *self)
{
    exported_destroy(self->manager_ctx);
}

static void legacy_delete(DLManagedTensor *self)
{
    exported_destroy(self->manager_ctx);
}

static keel_status_t place_of(const keel_buffer_t *buffer, const keel_dlpack_place_t **place)
{
    const keel_dlpack_place_t *p = buffer->device->caps.dlpack;
    CHECK(p, KEEL_UNSUPPORTED, "the device has no KEEL_CAP_DLPACK");
    for (; p->type; p++) {
        *place = p;
        if ((p->node == KEEL_EVERY_NODE || p->node == buffer->node) &&
            (buffer->memory & p->memory) == p->memory)
            return NULL;
    }
    return KEEL_ERROR(KEEL_UNSUPPORTED,
                      "%s is in memory 0x%x of node %u, for which DLPack has no name",
                      BUFFER_LABEL(buffer), buffer->memory, buffer->node);
}

static keel_external_kind_t kind_out(const keel_dlpack_place_t *place)
{
    if (place->type == METAL) return KEEL_EXTERNAL_NATIVE;
    return place->memory & KEEL_MEMORY_HOST_VISIBLE ? KEEL_EXTERNAL_HOST : KEEL_EXTERNAL_DEVICE;
}

// What a tensor has as its data, and where in that it begins.
static void *data_of(const keel_external_buffer_t *memory, uint64_t offset, uint64_t *byte_offset)
{
    *byte_offset = 0; // which many readers forget: addresses have it in them
    switch (memory->kind) {
    case KEEL_EXTERNAL_NATIVE: *byte_offset = memory->offset + offset; return memory->handle.object;
    case KEEL_EXTERNAL_HOST: return (char *)memory->handle.host + offset;
    default: return (void *)(uintptr_t)(memory->handle.device + offset);
    }
}

static keel_status_t tensor_fill(exported_t *exported, const keel_tensor_t *tensor)
{
    keel_buffer_t *buffer = exported->buffer;
    const keel_dlpack_place_t *place = NULL;
    KEEL_TRY(place_of(buffer, &place));
    keel_external_buffer_t memory = {.kind = kind_out(place)};
    KEEL_TRY(keel_buffer_export(buffer, &memory));
    uint64_t byte_offset;
    void *data = data_of(&memory, tensor->offset, &byte_offset);
    exported->tensor = (DLTensor){
        .data = data,
        .byte_offset = byte_offset,
        .device = {place->type, place->id},
        .ndim = tensor->rank,
        .dtype = tensor->type,
        .shape = exported->layout.shape,
        .strides = exported->layout.strides,
    };
    return NULL;
}

static keel_status_t tensor_export(keel_buffer_t *buffer, const keel_tensor_t *tensor,
                                   exported_t **exported)
{
    CHECK_NOT_NULL(buffer);
    CHECK_NOT_NULL(tensor);
    CHECK(buffer->access & KEEL_ACCESS_READ, KEEL_PERMISSION_DENIED,
          "%s does not allow KEEL_ACCESS_READ", BUFFER_LABEL(buffer));
    view_t view = {
        .name = "tensor->",
        .rank_name = "rank",
        .type_name = "type",
        .type = tensor->type,
        .rank = tensor->rank,
        .shape = tensor->shape,
        .strides = tensor->strides,
    };
    layout_t layout = {0};
    KEEL_TRY(layout_of(&view, &layout));
    CHECK(tensor->offset <= buffer->size && layout.bytes <= buffer->size - tensor->offset,
          KEEL_OUT_OF_RANGE, "tensor has %llu bytes at offset %llu, which reach beyond %s",
          (unsigned long long)layout.bytes, (unsigned long long)tensor->offset,
          BUFFER_EXTENT(buffer));
    exported_t *e = mem_zalloc(sizeof *e);
    if (!e) return status_no_memory();
    e->buffer = keel_buffer_retain(buffer);
    e->layout = layout;
    keel_status_t status = tensor_fill(e, tensor);
    if (status) {
        exported_destroy(e);
        return status;
    }
    *exported = e;
    return NULL;
}

keel_status_t keel_buffer_to_dlpack(keel_buffer_t *buffer, const keel_tensor_t *tensor,
                                    DLManagedTensorVersioned **managed)
{
    CHECK_NOT_NULL(managed);
    *managed = NULL;
    exported_t *exported;
    KEEL_TRY(tensor_export(buffer, tensor, &exported));
    exported->managed.versioned = (DLManagedTensorVersioned){
        .version = {1, 1},
        .manager_ctx = exported,
        .deleter = versioned_delete,
        .flags = buffer->access & KEEL_ACCESS_WRITE ? 0 : FLAG_READ_ONLY,
        .dl_tensor = exported->tensor,
    };
    *managed = &exported->managed.versioned;
    return NULL;
}

keel_status_t keel_buffer_to_dlpack0(keel_buffer_t *buffer, const keel_tensor_t *tensor,
                                     DLManagedTensor **managed)
{
    CHECK_NOT_NULL(managed);
    *managed = NULL;
    CHECK_NOT_NULL(buffer);
    CHECK(buffer->access & KEEL_ACCESS_WRITE, KEEL_PERMISSION_DENIED,
          "%s does not allow KEEL_ACCESS_WRITE, which a legacy tensor cannot say",
          BUFFER_LABEL(buffer));
    exported_t *exported;
    KEEL_TRY(tensor_export(buffer, tensor, &exported));
    exported->managed.legacy = (DLManagedTensor){
        .dl_tensor = exported->tensor,
        .manager_ctx = exported,
        .deleter = legacy_delete,
    };
    *managed = &exported->managed.legacy;
    return NULL;
}

// Buffers over tensors.

static void versioned_release(void *user)
{
    DLManagedTensorVersioned *managed = user;
    if (managed->deleter) managed->deleter(managed);
}

static void legacy_release(void *user)
{
    DLManagedTensor *managed = user;
    if (managed->deleter) managed->deleter(managed);
}

static keel_status_t place_find(const keel_device_t *device, DLDevice wanted,
                                const keel_dlpack_place_t **place)
{
    char there[128] = "";
    CHECK(device->caps.dlpack, KEEL_UNSUPPORTED, "the device has no KEEL_CAP_DLPACK");
    for (const keel_dlpack_place_t *p = device->caps.dlpack; p->type; p++) {
        *place = p;
        if (p->type == (int32_t)wanted.device_type && p->id == wanted.device_id) return NULL;
        size_t length = strlen(there);
        snprintf(there + length, sizeof there - length, "%s(%d, %d)", length ? ", " : "", p->type,
                 p->id);
    }
    return KEEL_ERROR(KEEL_INVALID_ARGUMENT,
                      "managed->dl_tensor.device is (%d, %d) in DLPack's terms; device '%s' has %s",
                      (int)wanted.device_type, (int)wanted.device_id, device->name, there);
}

// What is imported for a tensor whose data begins at `start`.
static void external_set(keel_external_buffer_t *external, const keel_dlpack_place_t *place,
                         const DLTensor *tensor, uintptr_t start)
{
    if (place->type == METAL) {
        external->kind = KEEL_EXTERNAL_NATIVE;
        external->handle.object = tensor->data;
        external->offset = tensor->byte_offset;
    } else if (place->memory & KEEL_MEMORY_DEVICE_LOCAL) {
        external->kind = KEEL_EXTERNAL_DEVICE;
        external->handle.device = start;
    } else {
        external->kind = KEEL_EXTERNAL_HOST;
        external->handle.host = (void *)start;
    }
}

// `external` says how to release the tensor.
static keel_status_t tensor_import(keel_device_t *device, const DLTensor *tensor, uint32_t access,
                                   keel_external_buffer_t *external, keel_buffer_t **buffer)
{
    const keel_dlpack_place_t *place = NULL;
    KEEL_TRY(place_find(device, tensor->device, &place));
    view_t view = {
        .name = "managed->dl_tensor.",
        .rank_name = "ndim",
        .type_name = "dtype",
        .type = tensor->dtype,
        .rank = tensor->ndim,
        .shape = tensor->shape,
        .strides = tensor->strides,
    };
    layout_t layout;
    KEEL_TRY(layout_of(&view, &layout));
    uintptr_t start = (uintptr_t)tensor->data, end;
    CHECK(start || !layout.bytes, KEEL_INVALID_ARGUMENT,
          "managed->dl_tensor.data is NULL, but the tensor has %llu bytes",
          (unsigned long long)layout.bytes);
    CHECK(!__builtin_add_overflow(start, tensor->byte_offset, &start) &&
              !__builtin_add_overflow(start, layout.bytes, &end),
          KEEL_OUT_OF_RANGE,
          "managed->dl_tensor.byte_offset is %llu, which puts %llu bytes beyond the end of memory",
          (unsigned long long)tensor->byte_offset, (unsigned long long)layout.bytes);
    external->size = layout.bytes;
    external_set(external, place, tensor, start);
    keel_buffer_options_t options = {
        .memory = place->memory,
        .access = access,
        .node = place->node == KEEL_EVERY_NODE ? 0 : place->node,
    };
    return keel_buffer_import(device, external, &options, buffer);
}

keel_status_t keel_buffer_from_dlpack(keel_device_t *device, DLManagedTensorVersioned *managed,
                                      keel_buffer_t **buffer)
{
    CHECK_NOT_NULL(buffer);
    *buffer = NULL;
    CHECK_NOT_NULL(device);
    CHECK_NOT_NULL(managed);
    // Of another major version only the first fields are known.
    CHECK(managed->version.major == 1, KEEL_UNSUPPORTED,
          "managed->version is %u.%u; tensors of version 1.x are supported", managed->version.major,
          managed->version.minor);
    keel_external_buffer_t external = {.release = versioned_release, .user = managed};
    uint32_t access = managed->flags & FLAG_READ_ONLY ? KEEL_ACCESS_READ : KEEL_ACCESS_ALL;
    return tensor_import(device, &managed->dl_tensor, access, &external, buffer);
}

keel_status_t keel_buffer_from_dlpack0(keel_device_t *device, DLManagedTensor *managed,
                                       keel_buffer_t **buffer)
{
    CHECK_NOT_NULL(buffer);
    *buffer = NULL;
    CHECK_NOT_NULL(device);
    CHECK_NOT_NULL(managed);
    keel_external_buffer_t external = {.release = legacy_release, .user = managed};
    return tensor_import(device, &managed->dl_tensor, KEEL_ACCESS_ALL, &external, buffer);
}
