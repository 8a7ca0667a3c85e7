// SPDX-License-Identifier: Apache-2.0
#include "executable/image.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "executable/build.h"
#include "executable/cubin.h"
#include "executable/fatbin.h"
#include "executable/ptx.h"

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

static const char *const kind_names[IMAGE_KINDS] = {
    [IMAGE_UNKNOWN] = "unknown", [IMAGE_HOST] = "host",         [IMAGE_PTX] = "ptx",
    [IMAGE_CUBIN] = "cubin",     [IMAGE_FATBIN] = "fatbin",     [IMAGE_HSACO] = "hsaco",
    [IMAGE_SPIRV] = "spirv",     [IMAGE_OFFLOAD] = "offload",   [IMAGE_BUNDLE] = "bundle",
    [IMAGE_MSL] = "msl",         [IMAGE_METALLIB] = "metallib", [IMAGE_CONTAINER] = "container",
    [IMAGE_BITCODE] = "bitcode",
};

static const char *const packing_names[IMAGE_PACKINGS] = {
    [IMAGE_PLAIN] = "plain", [IMAGE_LZ4] = "lz4", [IMAGE_ZSTD] = "zstd", [IMAGE_ZLIB] = "zlib"};

static const char *const param_kind_names[IMAGE_PARAM_KINDS] = {
    [IMAGE_PARAM_VALUE] = "value",   [IMAGE_PARAM_POINTER] = "pointer",
    [IMAGE_PARAM_LOCAL] = "local",   [IMAGE_PARAM_OPAQUE] = "opaque",
    [IMAGE_PARAM_HIDDEN] = "hidden",
};

const char *image_kind_name(image_kind_t kind)
{
    return kind_names[kind];
}

const char *image_packing_name(image_packing_t packing)
{
    return packing_names[packing];
}

const char *image_param_kind_name(image_param_kind_t kind)
{
    return param_kind_names[kind];
}

// An ELF file's machine says whose it is.
static image_kind_t elf_recognise(const uint8_t *bytes, size_t size)
{
    if (size < 20) return IMAGE_UNKNOWN;
    switch (bytes[18] | bytes[19] << 8) {
    case 62:
    case 183: return IMAGE_HOST;
    case 190: return IMAGE_CUBIN;
    case 224: return IMAGE_HSACO;
    default: return IMAGE_UNKNOWN;
    }
}

image_kind_t image_recognise(const void *data, size_t size)
{
    static const struct {
        const char *magic;
        size_t length;
        image_kind_t kind;
    } magics[] = {
        {"\x50\xed\x55\xba", 4, IMAGE_FATBIN},
        {"\x03\x02\x23\x07", 4, IMAGE_SPIRV},
        {"\x07\x23\x02\x03", 4, IMAGE_SPIRV},
        {"\x10\xff\x10\xad", 4, IMAGE_OFFLOAD},
        {"__CLANG_OFFLOAD_BUNDLE__", 24, IMAGE_BUNDLE},
        {"CCOB", 4, IMAGE_BUNDLE},
        {"BC\xc0\xde", 4, IMAGE_BITCODE},
    };
    if (size >= 4 && !memcmp(data, "\177ELF", 4)) return elf_recognise(data, size);
    for (size_t i = 0; i < sizeof magics / sizeof magics[0]; i++)
        if (size >= magics[i].length && !memcmp(data, magics[i].magic, magics[i].length))
            return magics[i].kind;
    return ptx_recognise(data, size) ? IMAGE_PTX : IMAGE_UNKNOWN;
}

keel_status_t image_read(const void *data, size_t size, image_info_t *info)
{
    static keel_status_t (*const readers[IMAGE_KINDS])(const void *, size_t, image_info_t *) = {
        [IMAGE_PTX] = ptx_read,
        [IMAGE_CUBIN] = cubin_read,
        [IMAGE_FATBIN] = fatbin_read,
    };
    *info = (image_info_t){.target = "", .version = ""};
    image_kind_t kind = image_recognise(data, size);
    if (readers[kind]) return readers[kind](data, size, info);
    return KEEL_ERROR(KEEL_UNSUPPORTED, "it is no image of a kind that is known");
}

keel_status_t image_begin(image_info_t *info, image_kind_t kind, size_t size)
{
    *info = (image_info_t){.kind = kind, .target = "", .version = ""};
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
    *info = (image_info_t){.target = "", .version = ""};
}

keel_status_t image_end(image_info_t *info, keel_status_t status)
{
    if (status) image_info_finish(info);
    return status;
}

keel_status_t image_alloc(image_info_t *info, uint64_t size, void **out)
{
    image_memory_t *memory = info->memory;
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

keel_status_t image_add_entry(image_info_t *info, image_entry_t **entry)
{
    void *array = info->entries;
    KEEL_TRY(image_grow(info, &array, info->entry_count, sizeof **entry));
    info->entries = array;
    *entry = &info->entries[info->entry_count++];
    **entry = (image_entry_t){
        .name = "",
        .group_size = {IMAGE_UNSAID, IMAGE_UNSAID, IMAGE_UNSAID},
        .max_group_size = IMAGE_UNSAID,
        .wave_size = IMAGE_UNSAID,
        .private_memory = IMAGE_UNSAID,
        .vector_registers = IMAGE_UNSAID,
        .scalar_registers = IMAGE_UNSAID,
    };
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

keel_status_t image_add_param(image_info_t *info, image_entry_t *entry, image_param_t **param)
{
    void *array = entry->params;
    KEEL_TRY(image_grow(info, &array, entry->param_count, sizeof **param));
    entry->params = array;
    *param = &entry->params[entry->param_count++];
    **param = (image_param_t){.name = "", .type = "", .align = IMAGE_UNSAID};
    return NULL;
}

keel_status_t image_add_binding(image_info_t *info, image_entry_t *entry, image_binding_t **binding)
{
    void *array = entry->bindings;
    KEEL_TRY(image_grow(info, &array, entry->binding_count, sizeof **binding));
    entry->bindings = array;
    *binding = &entry->bindings[entry->binding_count++];
    **binding = (image_binding_t){.name = "", .type = "", .count = 1};
    return NULL;
}
