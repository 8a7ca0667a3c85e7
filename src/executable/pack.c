// SPDX-License-Identifier: Apache-2.0
// Writing containers.
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "executable/compression.h"
#include "executable/format.h"

// An image as it will lie in the container.
typedef struct stored_t {
    void *packed; // owned; NULL: it stays as it is
    size_t size;
    uint64_t offset;
    size_t table; // of the builder
} stored_t;

static keel_status_t text_check(const char *what, uint32_t index, const char *text, bool empty)
{
    if (!text || (!empty && !*text))
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "images[%u] has an empty %s", index, what);
    if (!flat_text_is_good(text))
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT,
                          "images[%u] has a %s that is not printable UTF-8 of up to %d bytes",
                          index, what, FLAT_MAX_TEXT);
    return NULL;
}

static keel_status_t input_check(const container_input_t *image, uint32_t index)
{
    KEEL_TRY(text_check("target", index, image->target, false));
    if (!image->size || image->size > CONTAINER_MAX_IMAGE)
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "images[%u] has %zu bytes; 1 to %d can be packed",
                          index, image->size, CONTAINER_MAX_IMAGE);
    for (uint32_t i = 0; i < image->entry_count; i++) {
        const keel_image_entry_t *entry = &image->entries[i];
        KEEL_TRY(text_check("entry point's name", index, entry->info.name, false));
        for (uint32_t k = 0; k < entry->info.bindings; k++)
            KEEL_TRY(text_check("binding's name", index, entry->bindings[k].name, true));
    }
    return NULL;
}

static void entry_build(flat_builder_t *b, size_t table, const keel_image_entry_t *entry)
{
    flat_set_text(b, table, ENTRY_NAME, entry->info.name);
    flat_set_struct(b, table, ENTRY_GROUP_SIZE, entry->info.group_size);
    flat_set_number(b, table, ENTRY_CONSTANTS, entry->info.constants);
    flat_set_number(b, table, ENTRY_LOCAL_MEMORY, entry->info.local_memory);
    flat_set_number(b, table, ENTRY_ABI, entry->abi);
    flat_set_number(b, table, ENTRY_ARGUMENTS, entry->arguments);
    flat_set_tables(b, table, ENTRY_BINDINGS, entry->info.bindings);
    for (uint32_t i = 0; i < entry->info.bindings; i++) {
        size_t binding = flat_make_item(b, table, ENTRY_BINDINGS, i);
        flat_set_text(b, binding, BINDING_NAME, entry->bindings[i].name);
        flat_set_number(b, binding, BINDING_ACCESS, entry->bindings[i].access);
    }
}

// Where it lies is not known yet.
static void image_build(flat_builder_t *b, const container_input_t *image, const stored_t *stored)
{
    size_t table = stored->table;
    hash_t hash = hash_of(image->data, image->size);
    flat_set_text(b, table, ITEM_TARGET, image->target);
    flat_set_number(b, table, ITEM_KIND, image->kind);
    flat_set_number(b, table, ITEM_COMPRESSION, stored->packed ? CONTAINER_ZSTD : CONTAINER_PLAIN);
    flat_set_number(b, table, ITEM_STORED, stored->size);
    flat_set_number(b, table, ITEM_SIZE, image->size);
    flat_set_struct(b, table, ITEM_HASH, &hash);
    flat_set_tables(b, table, ITEM_ENTRIES, image->entry_count);
    for (uint32_t i = 0; i < image->entry_count; i++)
        entry_build(b, flat_make_item(b, table, ITEM_ENTRIES, i), &image->entries[i]);
}

static keel_status_t image_store(const container_input_t *image, bool compress, stored_t *stored)
{
    stored->size = image->size;
    if (!compress) return NULL;
    KEEL_TRY(zstd_pack(image->data, image->size, image->size - 1, &stored->packed, &stored->size));
    if (stored->packed && image->size / CONTAINER_MAX_RATIO <= stored->size) return NULL;
    // Readers take such a ratio for an attack.
    mem_free(stored->packed);
    stored->packed = NULL;
    stored->size = image->size;
    return NULL;
}

// Gives each image its place, and returns where the container ends.
static uint64_t images_place(flat_builder_t *b, stored_t *stored, uint32_t count)
{
    uint64_t at = sizeof(prefix_t) + b->size;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t align = stored[i].packed ? CONTAINER_ALIGNMENT : CONTAINER_PAGE;
        at = (at + align - 1) / align * align;
        stored[i].offset = at;
        flat_set_number(b, stored[i].table, ITEM_OFFSET, at);
        at += stored[i].size;
    }
    return at;
}

static keel_status_t bytes_make(const flat_builder_t *b, const container_input_t *images,
                                const stored_t *stored, uint32_t count, uint64_t size, void **bytes)
{
    unsigned char *to = mem_zalloc(size);
    if (!to) return status_no_memory();
    prefix_t prefix = {
        .magic = FORMAT_MAGIC,
        .version = CONTAINER_VERSION,
        .contents = (uint32_t)b->size,
        .size = size,
        .hash = hash_of(b->data, b->size),
    };
    memcpy(to, &prefix, sizeof prefix);
    memcpy(to + sizeof prefix, b->data, b->size);
    for (uint32_t i = 0; i < count; i++)
        memcpy(to + stored[i].offset, stored[i].packed ? stored[i].packed : images[i].data,
               stored[i].size);
    *bytes = to;
    return NULL;
}

static keel_status_t pack(const container_options_t *options, const container_input_t *images,
                          stored_t *stored, uint32_t count, flat_builder_t *b)
{
    char producer[64];
    snprintf(producer, sizeof producer, "keel %s", keel_version());
    size_t root = flat_build(b, FORMAT_IDENTIFIER, &format_contents);
    flat_set_text(b, root, CONTENTS_PRODUCER, options->producer ? options->producer : producer);
    flat_set_tables(b, root, CONTENTS_IMAGES, count);
    for (uint32_t i = 0; i < count; i++) {
        KEEL_TRY(image_store(&images[i], options->compress, &stored[i]));
        stored[i].table = flat_make_item(b, root, CONTENTS_IMAGES, i);
        image_build(b, &images[i], &stored[i]);
    }
    return b->failed ? status_no_memory() : NULL;
}

keel_status_t container_write(const container_options_t *options, const container_input_t *images,
                              uint32_t count, void **bytes, size_t *size)
{
    *bytes = NULL;
    if (options->producer && !flat_text_is_good(options->producer))
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "the producer's name is not printable UTF-8");
    for (uint32_t i = 0; i < count; i++) KEEL_TRY(input_check(&images[i], i));
    stored_t *stored = mem_zalloc(count * sizeof *stored);
    if (!stored) return status_no_memory();
    flat_builder_t builder = {0};
    keel_status_t status = pack(options, images, stored, count, &builder);
    if (!status && builder.size > CONTAINER_MAX_CONTENTS)
        status = KEEL_ERROR(KEEL_INVALID_ARGUMENT,
                            "the table of contents has %zu bytes; %d are the "
                            "limit",
                            builder.size, CONTAINER_MAX_CONTENTS);
    if (!status) {
        *size = images_place(&builder, stored, count);
        status = bytes_make(&builder, images, stored, count, *size, bytes);
    }
    for (uint32_t i = 0; i < count; i++) mem_free(stored[i].packed);
    mem_free(stored);
    mem_free(builder.data);
    return status;
}
