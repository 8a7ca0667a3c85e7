// SPDX-License-Identifier: Apache-2.0
#include "executable/container.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "executable/compression.h"
#include "executable/format.h"

bool container_is(const void *start, size_t size)
{
    static const char magic[] = FORMAT_MAGIC;
    return size >= sizeof magic && memcmp(start, magic, sizeof magic) == 0;
}

static keel_status_t prefix_check(const prefix_t *prefix, uint64_t size)
{
    if (!container_is(prefix->magic, sizeof prefix->magic))
        return KEEL_ERROR(KEEL_CORRUPT, "it is no container");
    if (prefix->version != CONTAINER_VERSION)
        return KEEL_ERROR(KEEL_UNSUPPORTED,
                          "it is a container of version %u; this library reads version %d",
                          prefix->version, CONTAINER_VERSION);
    if (prefix->size != size)
        return KEEL_ERROR(KEEL_CORRUPT, "it is %s: it says that it has %llu bytes, and it has %llu",
                          prefix->size > size ? "truncated" : "too long",
                          (unsigned long long)prefix->size, (unsigned long long)size);
    if (prefix->reserved)
        return KEEL_ERROR(KEEL_CORRUPT, "its prefix has something where there should be nothing");
    if (prefix->contents > CONTAINER_MAX_CONTENTS || prefix->contents > size - sizeof *prefix)
        return KEEL_ERROR(KEEL_CORRUPT, "its table of contents of %u bytes cannot be",
                          prefix->contents);
    return NULL;
}

static keel_status_t contents_read(const source_t *source, void **contents, size_t *size)
{
    prefix_t prefix;
    KEEL_TRY(source_read(source, &prefix, sizeof prefix, 0));
    KEEL_TRY(prefix_check(&prefix, source->size));
    *size = prefix.contents;
    *contents = mem_alloc(*size);
    if (!*contents) return status_no_memory();
    KEEL_TRY(source_read(source, *contents, *size, sizeof prefix));
    hash_t hash = hash_of(*contents, *size);
    if (memcmp(&hash, &prefix.hash, sizeof hash) != 0)
        return KEEL_ERROR(KEEL_CORRUPT, "its table of contents is damaged: its hash is another");
    return flat_verify(*contents, *size, FORMAT_IDENTIFIER, &format_contents);
}

// Everything but what its entries are.
static keel_status_t image_check(const container_image_t *image, uint64_t first, uint64_t end)
{
    if (!image->target[0]) return KEEL_ERROR(KEEL_CORRUPT, "it does not say what it is for");
    bool inside = image->offset >= first && image->offset <= end &&
                  image->stored <= end - image->offset && image->stored;
    if (!inside)
        return KEEL_ERROR(KEEL_CORRUPT, "its bytes do not lie behind the table of contents");
    if (image->offset % CONTAINER_ALIGNMENT)
        return KEEL_ERROR(KEEL_CORRUPT, "its bytes are not aligned to %d", CONTAINER_ALIGNMENT);
    if (image->size > CONTAINER_MAX_IMAGE)
        return KEEL_ERROR(KEEL_CORRUPT, "it has %llu bytes; %d are the limit",
                          (unsigned long long)image->size, CONTAINER_MAX_IMAGE);
    bool plain = image->compression == CONTAINER_PLAIN;
    if (plain ? image->size != image->stored
              : image->size <= image->stored || image->size / CONTAINER_MAX_RATIO > image->stored)
        return KEEL_ERROR(KEEL_CORRUPT, "it has %llu bytes, and %llu of them are stored",
                          (unsigned long long)image->size, (unsigned long long)image->stored);
    return NULL;
}

static void image_fill(container_image_t *image, flat_t from)
{
    image->target = flat_text(from, ITEM_TARGET);
    image->kind = (uint32_t)flat_number(from, ITEM_KIND, FLAT_U8);
    image->compression = (uint32_t)flat_number(from, ITEM_COMPRESSION, FLAT_U8);
    image->offset = flat_number(from, ITEM_OFFSET, FLAT_U64);
    image->stored = flat_number(from, ITEM_STORED, FLAT_U64);
    image->size = flat_number(from, ITEM_SIZE, FLAT_U64);
    memcpy(&image->hash, flat_struct(from, ITEM_HASH), sizeof image->hash);
    image->entry_count = flat_count(from, ITEM_ENTRIES);
}

static void entry_fill(keel_image_entry_t *entry, flat_t from, keel_binding_info_t *bindings)
{
    entry->info.name = flat_text(from, ENTRY_NAME);
    memcpy(entry->info.group_size, flat_struct(from, ENTRY_GROUP_SIZE),
           sizeof entry->info.group_size);
    entry->info.constants = (uint32_t)flat_number(from, ENTRY_CONSTANTS, FLAT_U32);
    entry->info.bindings = flat_count(from, ENTRY_BINDINGS);
    entry->info.local_memory = (uint32_t)flat_number(from, ENTRY_LOCAL_MEMORY, FLAT_U32);
    entry->bindings = bindings;
    entry->abi = (uint32_t)flat_number(from, ENTRY_ABI, FLAT_U8);
    entry->arguments = (uint32_t)flat_number(from, ENTRY_ARGUMENTS, FLAT_U32);
    // As `keel cc` compiles them, or a shader says.
    entry->info.fixed_size = entry->abi == KEEL_ABI_DIRECT || entry->abi == KEEL_ABI_BOUND;
    for (uint32_t i = 0; i < entry->info.bindings; i++) {
        flat_t binding = flat_item(from, ENTRY_BINDINGS, i);
        bindings[i] = (keel_binding_info_t){
            .name = flat_text(binding, BINDING_NAME),
            .access = flat_number(binding, BINDING_ACCESS, FLAT_U8) & KEEL_ACCESS_ALL,
        };
    }
}

// How many of everything there is.
static void contents_count(flat_t root, size_t *images, size_t *entries, size_t *bindings)
{
    *images = flat_count(root, CONTENTS_IMAGES);
    *entries = *bindings = 0;
    for (uint32_t i = 0; i < *images; i++) {
        flat_t image = flat_item(root, CONTENTS_IMAGES, i);
        uint32_t count = flat_count(image, ITEM_ENTRIES);
        *entries += count;
        for (uint32_t k = 0; k < count; k++)
            *bindings += flat_count(flat_item(image, ITEM_ENTRIES, k), ENTRY_BINDINGS);
    }
}

// Texts stay where they are; the rest becomes arrays, in one piece of memory.
static keel_status_t contents_fill(container_t *c, flat_t root, uint64_t first, uint64_t end)
{
    size_t image_count, entry_count, binding_count;
    contents_count(root, &image_count, &entry_count, &binding_count);
    c->memory = mem_zalloc(image_count * sizeof(container_image_t) +
                           entry_count * sizeof(keel_image_entry_t) +
                           binding_count * sizeof(keel_binding_info_t));
    if (!c->memory) return status_no_memory();
    container_image_t *images = c->memory;
    keel_image_entry_t *entries = (void *)(images + image_count);
    keel_binding_info_t *bindings = (void *)(entries + entry_count);
    for (uint32_t i = 0; i < image_count; i++) {
        flat_t from = flat_item(root, CONTENTS_IMAGES, i);
        container_image_t *image = &images[i];
        image_fill(image, from);
        keel_status_t status = image_check(image, first, end);
        if (status)
            return keel_status_wrap(status, "image %u, for '%s', is damaged", i, image->target);
        image->entries = entries;
        for (uint32_t k = 0; k < image->entry_count; k++, entries++) {
            entry_fill(entries, flat_item(from, ITEM_ENTRIES, k), bindings);
            if (!entries->info.name[0])
                return KEEL_ERROR(KEEL_CORRUPT, "image %u has an entry point without a name", i);
            bindings += entries->info.bindings;
        }
    }
    c->producer = flat_text(root, CONTENTS_PRODUCER);
    c->image_count = (uint32_t)image_count;
    c->images = images;
    return NULL;
}

keel_status_t container_read(const source_t *source, container_t *container)
{
    *container = (container_t){.version = CONTAINER_VERSION};
    size_t size = 0;
    keel_status_t status = contents_read(source, &container->contents, &size);
    if (!status)
        status = contents_fill(container, flat_root(container->contents), sizeof(prefix_t) + size,
                               source->size);
    if (status) container_finish(container);
    return status;
}

void container_finish(container_t *container)
{
    mem_free(container->memory);
    mem_free(container->contents);
    *container = (container_t){0};
}

static keel_status_t hash_check(const container_image_t *image, const void *bytes)
{
    hash_t hash = hash_of(bytes, image->size);
    if (memcmp(&hash, &image->hash, sizeof hash) != 0)
        return KEEL_ERROR(KEEL_CORRUPT, "the image for '%s' is damaged: its hash is another",
                          image->target);
    return NULL;
}

static keel_status_t image_expand(const container_image_t *image, const source_t *source,
                                  void *bytes)
{
    void *packed = mem_alloc(image->stored);
    if (!packed) return status_no_memory();
    keel_status_t status = source_read(source, packed, image->stored, image->offset);
    if (!status) status = zstd_unpack(packed, image->stored, bytes, image->size);
    mem_free(packed);
    return keel_status_wrap(status, "the image for '%s' cannot be expanded", image->target);
}

keel_status_t container_image_read(const container_t *container, const source_t *source,
                                   uint32_t index, void *bytes)
{
    const container_image_t *image = &container->images[index];
    switch (image->compression) {
    case CONTAINER_PLAIN: KEEL_TRY(source_read(source, bytes, image->size, image->offset)); break;
    case CONTAINER_ZSTD: KEEL_TRY(image_expand(image, source, bytes)); break;
    default:
        return KEEL_ERROR(KEEL_UNSUPPORTED,
                          "the image for '%s' is compressed in a way (%u) that this library does "
                          "not know",
                          image->target, image->compression);
    }
    return hash_check(image, bytes);
}

keel_status_t container_image_view(const container_t *container, const source_t *source,
                                   uint32_t index, const void **bytes)
{
    const container_image_t *image = &container->images[index];
    *bytes = NULL;
    if (!source->data || image->compression != CONTAINER_PLAIN) return NULL;
    KEEL_TRY(hash_check(image, source->data + image->offset));
    *bytes = source->data + image->offset;
    return NULL;
}
