// SPDX-License-Identifier: Apache-2.0
#include "executable/build.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "executable/bytes.h"

enum { CHUNK = 4096 };

typedef struct chunk_t {
    struct chunk_t *next;
    size_t used, size;
    _Alignas(16) char bytes[];
} chunk_t;

struct image_memory_t {
    chunk_t *chunks; // the one in use first
    uint64_t total;
    uint64_t limit;
};

keel_status_t image_begin(image_info_t *info, keel_image_kind_t kind, size_t size)
{
    *info = (image_info_t){.kind = kind, .target = "", .version = "", .producer = ""};
    info->memory = mem_zalloc(sizeof *info->memory);
    if (!info->memory) return status_no_memory();
    // A description may be larger than its image (an entry of ten bytes becomes a struct of a
    // hundred), but not without bound.
    const uint64_t most = UINT64_C(256) << 20;
    info->memory->limit = size < most / 64 ? 65536 + (uint64_t)size * 64 : most;
    return NULL;
}

void image_info_finish(image_info_t *info)
{
    chunk_t *chunk = info->memory ? info->memory->chunks : NULL;
    while (chunk) {
        chunk_t *next = chunk->next;
        mem_free(chunk);
        chunk = next;
    }
    mem_free(info->memory);
    *info = (image_info_t){.target = "", .version = "", .producer = ""};
}

keel_status_t image_end(image_info_t *info, keel_status_t status)
{
    if (status) image_info_finish(info);
    return status;
}

keel_status_t image_alloc(image_info_t *info, uint64_t size, void **out)
{
    image_memory_t *memory = info->memory;
    *out = NULL;
    uint64_t rounded = (size + 15) & ~UINT64_C(15);
    if (rounded < size || rounded > memory->limit - memory->total)
        return KEEL_ERROR(KEEL_CORRUPT, "to describe it would take more than %llu bytes",
                          (unsigned long long)memory->limit);
    chunk_t *chunk = memory->chunks;
    if (!chunk || chunk->size - chunk->used < rounded) {
        size_t room = rounded > CHUNK ? (size_t)rounded : CHUNK;
        chunk = mem_alloc(sizeof *chunk + room);
        if (!chunk) return status_no_memory();
        *chunk = (chunk_t){.next = memory->chunks, .size = room};
        memory->chunks = chunk;
    }
    memory->total += rounded;
    *out = chunk->bytes + chunk->used;
    chunk->used += (size_t)rounded;
    memset(*out, 0, (size_t)rounded);
    return NULL;
}

keel_status_t image_text(image_info_t *info, const void *bytes, size_t length, const char **text)
{
    const void *end = length ? memchr(bytes, 0, length) : NULL;
    if (end) length = (size_t)((const char *)end - (const char *)bytes);
    void *copy;
    KEEL_TRY(image_alloc(info, (uint64_t)length + 1, &copy));
    if (length) memcpy(copy, bytes, length);
    *text = copy;
    return NULL;
}

keel_status_t image_format(image_info_t *info, const char **text, const char *format, ...)
{
    char line[256];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length < 0) length = 0;
    return image_text(info, line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1,
                      text);
}

// Makes room for one more. Arrays have room for 4, 8, 16 ...: the count alone says when one is
// full.
keel_status_t image_grow(image_info_t *info, void **array, uint32_t count, size_t element)
{
    bool full = count == 0 || (count >= 4 && !(count & (count - 1)));
    if (!full) return NULL;
    uint64_t room = count ? (uint64_t)count * 2 : 4;
    void *larger;
    KEEL_TRY(image_alloc(info, room * element, &larger));
    if (count) memcpy(larger, *array, count * element);
    *array = larger;
    return NULL;
}

// An entry of which nothing is known.
static const keel_image_entry_info_t blank = {
    .name = "",
    .abi = "",
    .group_size = {KEEL_UNSAID, KEEL_UNSAID, KEEL_UNSAID},
    .max_group_size = KEEL_UNSAID,
    .wave_size = KEEL_UNSAID,
    .private_memory = KEEL_UNSAID,
    .vector_registers = KEEL_UNSAID,
    .scalar_registers = KEEL_UNSAID,
};

keel_status_t image_add_entry(image_info_t *info, keel_image_entry_info_t **entry)
{
    void *array = info->entries;
    KEEL_TRY(image_grow(info, &array, info->entry_count, sizeof **entry));
    info->entries = array;
    *entry = &info->entries[info->entry_count++];
    **entry = blank;
    return NULL;
}

keel_status_t image_add_member_entry(image_info_t *info, image_member_t *member,
                                     keel_image_entry_info_t **entry)
{
    void *array = member->entries;
    KEEL_TRY(image_grow(info, &array, member->entry_count, sizeof **entry));
    member->entries = array;
    *entry = &member->entries[member->entry_count++];
    **entry = blank;
    return NULL;
}

keel_status_t image_add_member(image_info_t *info, image_member_t **member)
{
    void *array = info->members;
    KEEL_TRY(image_grow(info, &array, info->member_count, sizeof **member));
    info->members = array;
    *member = &info->members[info->member_count++];
    **member = (image_member_t){.name = "", .target = ""};
    return NULL;
}

keel_status_t image_add_param(image_info_t *info, keel_image_entry_info_t *entry,
                              keel_image_param_t **param)
{
    void *array = entry->params;
    KEEL_TRY(image_grow(info, &array, entry->param_count, sizeof **param));
    entry->params = array;
    *param = &entry->params[entry->param_count++];
    **param = (keel_image_param_t){.name = "", .type = "", .align = KEEL_UNSAID};
    return NULL;
}

keel_status_t image_add_binding(image_info_t *info, keel_image_entry_info_t *entry,
                                keel_image_binding_t **binding)
{
    void *array = entry->bindings;
    KEEL_TRY(image_grow(info, &array, entry->binding_count, sizeof **binding));
    entry->bindings = array;
    *binding = &entry->bindings[entry->binding_count++];
    **binding = (keel_image_binding_t){.name = "", .type = "", .count = 1};
    return NULL;
}

static int param_compare(const void *a, const void *b)
{
    const keel_image_param_t *x = a, *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

keel_status_t image_check_params(keel_image_entry_info_t *entry)
{
    if (!entry->param_count) return NULL;
    qsort(entry->params, entry->param_count, sizeof *entry->params, param_compare);
    uint64_t end = 0;
    for (uint32_t i = 0; i < entry->param_count; i++) {
        const keel_image_param_t *param = &entry->params[i];
        if (param->offset < end || !bytes_fit(param->offset, param->size, entry->param_size))
            return KEEL_ERROR(KEEL_CORRUPT, "parameters of '%s' overlap or go beyond %u bytes",
                              entry->name, entry->param_size);
        end = param->offset + param->size;
    }
    return NULL;
}
