// SPDX-License-Identifier: Apache-2.0
// NVIDIA documents none of this. Entries are function symbols with a mark; what is to be known of
// one stands in a section .nv.info.NAME, whose sh_info is the entry's section of code, and in
// .nv.info, by number of symbol. Both hold attributes: format, name, and a value of one, two or,
// with its length before it, any number of bytes.
#include "executable/cubin.h"

#include <string.h>

#include "executable/build.h"
#include "executable/bytes.h"
#include "executable/elf.h"

enum {
    SYMBOL_IS_ENTRY = 0x10, // in st_other
    ABI_OF_CUDA_13 = 8,
    RESERVED_SHARED = 1024, // bytes of each group that the system keeps for itself ...
    RESERVES_FROM = 90,     // ... from this architecture on
};

enum {
    FORMAT_NONE = 1,
    FORMAT_BYTE = 2,
    FORMAT_HALF = 3,
    FORMAT_SIZED = 4,
};

enum {
    ATTRIBUTE_MAX_THREADS = 0x05,
    ATTRIBUTE_THREADS = 0x10,
    ATTRIBUTE_FRAME_SIZE = 0x11,
    ATTRIBUTE_STACK_SIZE = 0x12,
    ATTRIBUTE_PARAM = 0x17,
    ATTRIBUTE_PARAM_SIZE = 0x19,
    ATTRIBUTE_REGISTERS = 0x2f,
    ATTRIBUTE_LARGE_PARAM = 0x45,
    COMPATIBLE_ACCELERATED = 0x09, // in .nv.compat
};

typedef struct attribute_t {
    uint8_t format, name;
    uint16_t half;       // its value, if that is short
    const uint8_t *data; // its value, if that has a size
    uint16_t size;
} attribute_t;

typedef struct cubin_reader_t {
    elf_t elf;
    elf_section_t symbols;
    image_info_t *info;
    uint32_t *entry_of; // by section of code: the entry's index + 1, or 0
    bool newer;         // of CUDA 13 or later
    uint32_t number;    // of the architecture
    bool accelerated;   // the "a" of sm_90a
} cubin_reader_t;

// Takes the next attribute from between *at and end.
static keel_status_t attribute_next(const uint8_t **at, const uint8_t *end, attribute_t *attribute)
{
    *attribute = (attribute_t){0};
    if (end - *at < 4) return KEEL_ERROR(KEEL_CORRUPT, "an attribute is cut off");
    attribute->format = (*at)[0];
    attribute->name = (*at)[1];
    attribute->half = bytes_u16(*at + 2);
    *at += 4;
    if (attribute->format < FORMAT_NONE || attribute->format > FORMAT_SIZED)
        return KEEL_ERROR(KEEL_CORRUPT, "an attribute has the format %u", attribute->format);
    if (attribute->format != FORMAT_SIZED) return NULL;
    attribute->size = attribute->half;
    if (end - *at < attribute->size) return KEEL_ERROR(KEEL_CORRUPT, "an attribute is cut off");
    attribute->data = *at;
    *at += attribute->size;
    return NULL;
}

// Whether it is the attribute of that name, with at least that many bytes of value.
static bool is_sized(const attribute_t *attribute, uint8_t name, uint16_t size)
{
    return attribute->format == FORMAT_SIZED && attribute->name == name && attribute->size >= size;
}

static keel_image_entry_info_t *entry_of_section(const cubin_reader_t *r, uint32_t section)
{
    uint32_t index = section < r->elf.section_count ? r->entry_of[section] : 0;
    return index ? &r->info->entries[index - 1] : NULL;
}

// The value is ordinal, offset and size; the older form has 14 bits of size in the last word.
static keel_status_t param_add(cubin_reader_t *r, keel_image_entry_info_t *entry,
                               const attribute_t *attribute)
{
    uint32_t size = bytes_u32(attribute->data + 8);
    keel_image_param_t *param;
    KEEL_TRY(image_add_param(r->info, entry, &param));
    param->offset = bytes_u16(attribute->data + 6);
    param->size = attribute->name == ATTRIBUTE_PARAM ? size >> 18 : size;
    return NULL;
}

static keel_status_t max_threads_read(keel_image_entry_info_t *entry, const uint8_t *at)
{
    uint64_t product = 1;
    for (int i = 0; i < 3; i++) {
        uint64_t size = bytes_u32(at + 4 * i);
        if (!size || product > UINT32_MAX / size)
            return KEEL_ERROR(KEEL_CORRUPT, "'%s' has groups of an impossible size", entry->name);
        product *= size;
    }
    entry->max_group_size = (uint32_t)product;
    return NULL;
}

// What .nv.info.NAME says of its entry.
static keel_status_t entry_describe(cubin_reader_t *r, keel_image_entry_info_t *entry,
                                    const elf_section_t *section)
{
    const uint8_t *at = section->data, *end = at + section->size;
    while (at < end) {
        attribute_t attribute;
        KEEL_TRY(attribute_next(&at, end, &attribute));
        if (is_sized(&attribute, ATTRIBUTE_PARAM, 12) ||
            is_sized(&attribute, ATTRIBUTE_LARGE_PARAM, 12))
            KEEL_TRY(param_add(r, entry, &attribute));
        if (is_sized(&attribute, ATTRIBUTE_MAX_THREADS, 12))
            KEEL_TRY(max_threads_read(entry, attribute.data));
        if (is_sized(&attribute, ATTRIBUTE_THREADS, 12))
            for (int i = 0; i < 3; i++) entry->group_size[i] = bytes_u32(attribute.data + 4 * i);
        if (attribute.format == FORMAT_HALF && attribute.name == ATTRIBUTE_PARAM_SIZE)
            entry->param_size = attribute.half;
    }
    return NULL;
}

// What .nv.info says of all of them.
static keel_status_t entries_describe(cubin_reader_t *r, const elf_section_t *section)
{
    const uint8_t *at = section->data, *end = at + section->size;
    while (at < end) {
        attribute_t attribute;
        KEEL_TRY(attribute_next(&at, end, &attribute));
        if (!is_sized(&attribute, attribute.name, 8)) continue;
        if (attribute.name != ATTRIBUTE_REGISTERS && attribute.name != ATTRIBUTE_FRAME_SIZE &&
            attribute.name != ATTRIBUTE_STACK_SIZE)
            continue;
        elf_symbol_t symbol;
        KEEL_TRY(elf_symbol(&r->elf, &r->symbols, bytes_u32(attribute.data), &symbol));
        keel_image_entry_info_t *entry = entry_of_section(r, symbol.section);
        uint32_t value = bytes_u32(attribute.data + 4);
        if (!entry || symbol.type != ELF_SYMBOL_FUNCTION) continue;
        if (attribute.name == ATTRIBUTE_REGISTERS)
            entry->vector_registers = value;
        else if (entry->private_memory == KEEL_UNSAID || value > entry->private_memory)
            entry->private_memory = value;
    }
    return NULL;
}

static keel_status_t compatible_read(cubin_reader_t *r, const elf_section_t *section)
{
    const uint8_t *at = section->data, *end = at + section->size;
    while (at < end) {
        attribute_t attribute;
        KEEL_TRY(attribute_next(&at, end, &attribute));
        if (attribute.format == FORMAT_BYTE && attribute.name == COMPATIBLE_ACCELERATED)
            r->accelerated = (attribute.half & 0xff) == 1;
    }
    return NULL;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static keel_status_t section_read(cubin_reader_t *r, const elf_section_t *section)
{
    keel_image_entry_info_t *entry = entry_of_section(r, section->info);
    if (section->data && begins(section->name, ".nv.")) KEEL_TRY(elf_claim(&r->elf, section->size));
    if (section->data && !strcmp(section->name, ".nv.info")) return entries_describe(r, section);
    if (section->data && !strcmp(section->name, ".nv.compat")) return compatible_read(r, section);
    if (entry && section->data && begins(section->name, ".nv.info."))
        return entry_describe(r, entry, section);
    if (entry && begins(section->name, ".nv.shared.")) {
        uint64_t kept = r->number >= RESERVES_FROM ? RESERVED_SHARED : 0;
        if (section->size > UINT32_MAX)
            return KEEL_ERROR(KEEL_CORRUPT, "'%s' has too much workgroup memory", entry->name);
        entry->local_memory = section->size > kept ? (uint32_t)(section->size - kept) : 0;
    }
    return NULL;
}

static keel_status_t entries_find(cubin_reader_t *r)
{
    for (uint64_t i = 0; i < elf_symbol_count(&r->symbols); i++) {
        elf_symbol_t symbol;
        KEEL_TRY(elf_symbol(&r->elf, &r->symbols, i, &symbol));
        if (symbol.type != ELF_SYMBOL_FUNCTION || !(symbol.other & SYMBOL_IS_ENTRY)) continue;
        if (!symbol.section || symbol.section >= r->elf.section_count) continue;
        keel_image_entry_info_t *entry;
        KEEL_TRY(image_add_entry(r->info, &entry));
        KEEL_TRY(image_text(r->info, symbol.name, strlen(symbol.name), &entry->name));
        entry->wave_size = 32;
        r->entry_of[symbol.section] = r->info->entry_count;
    }
    return NULL;
}

static keel_status_t symbols_find(cubin_reader_t *r)
{
    void *array;
    KEEL_TRY(image_alloc(r->info, (uint64_t)r->elf.section_count * sizeof *r->entry_of, &array));
    r->entry_of = array;
    for (uint32_t i = 0; i < r->elf.section_count; i++) {
        elf_section_t section;
        KEEL_TRY(elf_section(&r->elf, i, &section));
        if (section.type == ELF_SECTION_SYMBOLS) r->symbols = section;
    }
    return NULL;
}

static keel_status_t target_name(cubin_reader_t *r)
{
    bool accelerated = r->accelerated || (!r->newer && r->elf.flags & 0x800);
    return image_format(r->info, &r->info->target, "nvptx:sm_%u%s", r->number,
                        accelerated ? "a" : "");
}

static keel_status_t cubin_describe(cubin_reader_t *r)
{
    if (r->elf.machine != ELF_CUDA)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "it is for ELF machine %u, and NVIDIA GPUs are %d",
                          r->elf.machine, ELF_CUDA);
    r->newer = r->elf.abi_version >= ABI_OF_CUDA_13;
    r->number = r->newer ? r->elf.flags >> 8 & 0xff : r->elf.flags & 0xff;
    KEEL_TRY(symbols_find(r));
    KEEL_TRY(entries_find(r));
    for (uint32_t i = 0; i < r->elf.section_count; i++) {
        elf_section_t section;
        KEEL_TRY(elf_section(&r->elf, i, &section));
        KEEL_TRY(section_read(r, &section));
    }
    for (uint32_t i = 0; i < r->info->entry_count; i++)
        KEEL_TRY(image_check_params(&r->info->entries[i]));
    KEEL_TRY(target_name(r));
    return image_format(r->info, &r->info->version, "%u", r->elf.abi_version);
}

keel_status_t cubin_read(const void *data, size_t size, image_info_t *info)
{
    cubin_reader_t reader = {.info = info};
    KEEL_TRY(image_begin(info, KEEL_IMAGE_CUBIN, size));
    keel_status_t status = elf_open(data, size, &reader.elf);
    if (!status) status = cubin_describe(&reader);
    return image_end(info, status);
}
