// SPDX-License-Identifier: Apache-2.0
#include "executable/elf.h"

#include <string.h>

#include "executable/bytes.h"

enum {
    ELF_CLASS_64 = 2,
    ELF_LITTLE = 1,
    ELF_COUNT_ELSEWHERE = 0xffff,
    HEADER_SIZE = 64,
    SEGMENT_SIZE = 56,
    SECTION_SIZE = 64,
    SYMBOL_SIZE = 24,
};

// Counts that do not fit into the header stand in section 0.
static void counts_widen(elf_t *elf)
{
    if (!bytes_fit(elf->section_offset, SECTION_SIZE, elf->size)) return;
    const uint8_t *first = elf->bytes + elf->section_offset;
    uint64_t sections = bytes_u64(first + 32);
    if (!elf->section_count) elf->section_count = sections < UINT32_MAX ? (uint32_t)sections : 0;
    if (elf->name_section == ELF_COUNT_ELSEWHERE) elf->name_section = bytes_u32(first + 40);
    if (elf->program_count == ELF_COUNT_ELSEWHERE) elf->program_count = bytes_u32(first + 44);
}

keel_status_t elf_open(const void *data, size_t size, elf_t *elf)
{
    const uint8_t *b = data;
    *elf = (elf_t){.bytes = b, .size = size};
    if (size < 4 || memcmp(b, "\177ELF", 4) != 0)
        return KEEL_ERROR(KEEL_CORRUPT, "it is no ELF file");
    if (size < HEADER_SIZE)
        return KEEL_ERROR(KEEL_CORRUPT, "it is truncated within its ELF header");
    if (b[4] != ELF_CLASS_64 || b[5] != ELF_LITTLE)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "it is no 64-bit little-endian ELF file");
    elf->abi = b[7];
    elf->abi_version = b[8];
    elf->type = bytes_u16(b + 16);
    elf->machine = bytes_u16(b + 18);
    elf->program_offset = bytes_u64(b + 32);
    elf->section_offset = bytes_u64(b + 40);
    elf->flags = bytes_u32(b + 48);
    elf->program_count = bytes_u16(b + 56);
    elf->section_count = bytes_u16(b + 60);
    elf->name_section = bytes_u16(b + 62);
    if (elf->section_offset) counts_widen(elf);
    if ((elf->program_count && bytes_u16(b + 54) != SEGMENT_SIZE) ||
        (elf->section_count && bytes_u16(b + 58) != SECTION_SIZE))
        return KEEL_ERROR(KEEL_CORRUPT, "its ELF header gives a wrong size of table entries");
    if (!bytes_fit(elf->program_offset, (uint64_t)elf->program_count * SEGMENT_SIZE, size) ||
        !bytes_fit(elf->section_offset, (uint64_t)elf->section_count * SECTION_SIZE, size))
        return KEEL_ERROR(KEEL_CORRUPT,
                          "it is truncated: a table of its ELF header lies beyond %zu bytes", size);
    return NULL;
}

// A string of a table, which must end with a 0 so that all in it are terminated; NULL if there is
// none.
static const char *string_at(const elf_section_t *table, uint64_t offset)
{
    if (!table->data || offset >= table->size || table->data[table->size - 1]) return NULL;
    return (const char *)table->data + offset;
}

static keel_status_t section_read(const elf_t *elf, uint32_t index, elf_section_t *section)
{
    *section = (elf_section_t){.name = ""};
    if (index >= elf->section_count)
        return KEEL_ERROR(KEEL_CORRUPT, "it refers to section %u of %u", index, elf->section_count);
    const uint8_t *at = elf->bytes + elf->section_offset + (uint64_t)index * SECTION_SIZE;
    uint64_t offset = bytes_u64(at + 24);
    *section = (elf_section_t){
        .name = "",
        .type = bytes_u32(at + 4),
        .flags = bytes_u64(at + 8),
        .address = bytes_u64(at + 16),
        .size = bytes_u64(at + 32),
        .link = bytes_u32(at + 40),
        .info = bytes_u32(at + 44),
        .entry_size = bytes_u64(at + 56),
    };
    if (!section->type || section->type == ELF_SECTION_NOBITS) return NULL;
    if (!bytes_fit(offset, section->size, elf->size))
        return KEEL_ERROR(KEEL_CORRUPT, "it is truncated: section %u ends beyond it", index);
    section->data = elf->bytes + offset;
    return NULL;
}

keel_status_t elf_section(const elf_t *elf, uint32_t index, elf_section_t *section)
{
    KEEL_TRY(section_read(elf, index, section));
    if (!elf->name_section) return NULL;
    elf_section_t names;
    KEEL_TRY(section_read(elf, elf->name_section, &names));
    uint64_t at = elf->section_offset + (uint64_t)index * SECTION_SIZE;
    section->name = string_at(&names, bytes_u32(elf->bytes + at));
    if (!section->name) return KEEL_ERROR(KEEL_CORRUPT, "section %u has no proper name", index);
    return NULL;
}

keel_status_t elf_segment(const elf_t *elf, uint32_t index, elf_segment_t *segment)
{
    const uint8_t *at = elf->bytes + elf->program_offset + (uint64_t)index * SEGMENT_SIZE;
    uint64_t offset = bytes_u64(at + 8);
    *segment = (elf_segment_t){
        .type = bytes_u32(at),
        .flags = bytes_u32(at + 4),
        .address = bytes_u64(at + 16),
        .file_size = bytes_u64(at + 32),
        .memory_size = bytes_u64(at + 40),
        .align = bytes_u64(at + 48),
    };
    if (!bytes_fit(offset, segment->file_size, elf->size))
        return KEEL_ERROR(KEEL_CORRUPT, "it is truncated: segment %u ends beyond it", index);
    segment->data = elf->bytes + offset;
    return NULL;
}

keel_status_t elf_claim(elf_t *elf, uint64_t size)
{
    uint64_t left = elf->size * 2 - elf->claimed;
    if (size > left) return KEEL_ERROR(KEEL_CORRUPT, "its sections overlap");
    elf->claimed += size;
    return NULL;
}

uint64_t elf_symbol_count(const elf_section_t *table)
{
    return table->data ? table->size / SYMBOL_SIZE : 0;
}

keel_status_t elf_symbol(const elf_t *elf, const elf_section_t *table, uint64_t index,
                         elf_symbol_t *symbol)
{
    *symbol = (elf_symbol_t){.name = ""};
    if (index >= elf_symbol_count(table))
        return KEEL_ERROR(KEEL_CORRUPT, "it refers to a symbol that it does not have");
    const uint8_t *at = table->data + index * SYMBOL_SIZE;
    elf_section_t strings;
    KEEL_TRY(section_read(elf, table->link, &strings));
    *symbol = (elf_symbol_t){
        .name = string_at(&strings, bytes_u32(at)),
        .type = at[4] & 15,
        .bind = at[4] >> 4,
        .other = at[5],
        .section = bytes_u16(at + 6),
        .value = bytes_u64(at + 8),
        .size = bytes_u64(at + 16),
    };
    if (!symbol->name)
        return KEEL_ERROR(KEEL_CORRUPT, "symbol %llu has no proper name",
                          (unsigned long long)index);
    return NULL;
}
