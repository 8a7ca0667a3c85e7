// SPDX-License-Identifier: Apache-2.0
#include "executable/contents.h"

#include <string.h>

#include "executable/build.h"
#include "executable/bytes.h"
#include "executable/container.h"

static keel_status_t copy(image_info_t *info, const char *from, const char **to)
{
    return image_text(info, from, strlen(from), to);
}

static const char *abi_name(uint32_t abi)
{
    switch (abi) {
    case KEEL_ABI_RAW: return "raw";
    case KEEL_ABI_HOST: return "host";
    case KEEL_ABI_OLDER: return "older";
    case KEEL_ABI_DIRECT: return "direct";
    case KEEL_ABI_BOUND: return "bound";
    default: return "unknown";
    }
}

static keel_status_t bindings_copy(image_info_t *info, const keel_image_entry_t *from,
                                   keel_image_entry_info_t *entry)
{
    for (uint32_t i = 0; i < from->info.bindings; i++) {
        keel_image_binding_t *binding;
        KEEL_TRY(image_add_binding(info, entry, &binding));
        binding->binding = i;
        binding->type = "buffer";
        binding->access = from->bindings[i].access;
        KEEL_TRY(copy(info, from->bindings[i].name, &binding->name));
    }
    return NULL;
}

static keel_status_t entry_copy(image_info_t *info, const keel_image_entry_t *from,
                                image_member_t *member)
{
    keel_image_entry_info_t *entry;
    KEEL_TRY(image_add_member_entry(info, member, &entry));
    KEEL_TRY(copy(info, from->info.name, &entry->name));
    entry->abi = abi_name(from->abi);
    entry->constants = from->info.constants;
    entry->local_memory = from->info.local_memory;
    entry->param_size = from->arguments;
    if (from->info.group_size[0])
        memcpy(entry->group_size, from->info.group_size, sizeof entry->group_size);
    return bindings_copy(info, from, entry);
}

static keel_status_t member_copy(image_info_t *info, const uint8_t *bytes, size_t size,
                                 const container_image_t *from)
{
    image_member_t *member;
    if (!bytes_fit(from->offset, from->stored, size) || from->compression > CONTAINER_ZSTD)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "the image for %s is stored in an unknown way",
                          from->target);
    KEEL_TRY(image_add_member(info, &member));
    KEEL_TRY(copy(info, from->target, &member->target));
    member->kind =
        from->kind <= KEEL_IMAGE_METALLIB ? (keel_image_kind_t)from->kind : KEEL_IMAGE_UNKNOWN;
    member->data = bytes + from->offset;
    member->size = from->stored;
    member->unpacked = from->size;
    member->packing = from->compression == CONTAINER_ZSTD ? IMAGE_ZSTD : IMAGE_PLAIN;
    for (uint32_t i = 0; i < from->entry_count; i++)
        KEEL_TRY(entry_copy(info, &from->entries[i], member));
    return NULL;
}

static keel_status_t container_copy(image_info_t *info, const void *data, size_t size,
                                    const container_t *container)
{
    KEEL_TRY(image_format(info, &info->version, "%u", container->version));
    KEEL_TRY(copy(info, container->producer, &info->producer));
    for (uint32_t i = 0; i < container->image_count; i++)
        KEEL_TRY(member_copy(info, data, size, &container->images[i]));
    return NULL;
}

keel_status_t contents_read(const void *data, size_t size, image_info_t *info)
{
    container_t container = {0};
    source_t source = source_of_memory(data, size);
    KEEL_TRY(image_begin(info, KEEL_IMAGE_CONTAINER, size));
    keel_status_t status = container_read(&source, &container);
    if (!status) status = container_copy(info, data, size, &container);
    container_finish(&container);
    return image_end(info, status);
}
