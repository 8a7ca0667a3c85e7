// SPDX-License-Identifier: Apache-2.0
#include "executable/elf.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"
#include "executable/bytes.h"

// The parts of ELF64 that are looked at, so that hosts without <elf.h> can do it too.
typedef struct elf_header_t {
    uint8_t ident[16];
    uint16_t type, machine;
    uint32_t version;
    uint64_t entry, program_offset, section_offset;
    uint32_t flags;
    uint16_t header_size, program_size, program_count, section_size, section_count, name_section;
} elf_header_t;

typedef struct elf_program_t {
    uint32_t type, flags;
    uint64_t offset, address, physical, file_size, memory_size, align;
} elf_program_t;

enum {
    ELF_CLASS_64 = 2,
    ELF_LITTLE = 1,
    ELF_SHARED = 3,
    ELF_COUNT_ELSEWHERE = 0xffff,
    HEADER_SIZE = 64,
    SEGMENT_SIZE = 56,
    SECTION_SIZE = 64,
    SYMBOL_SIZE = 24,
};

#if defined(__aarch64__)
enum { ELF_HOST = ELF_AARCH64 };
#else
enum { ELF_HOST = ELF_X86_64 };
#endif

static const char *machine_name(unsigned machine)
{
    return machine == ELF_X86_64    ? "x86-64"
           : machine == ELF_AARCH64 ? "aarch64"
                                    : "another machine";
}

// Reads all of it or says that the file is too short.
static keel_status_t read_at(int fd, void *to, size_t size, uint64_t offset)
{
    char *at = to;
    while (size) {
        ssize_t got = pread(fd, at, size, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return status_from_errno(KEEL_IO, errno, "cannot read the image");
        if (got == 0) return KEEL_ERROR(KEEL_CORRUPT, "it is truncated");
        at += got;
        offset += (uint64_t)got;
        size -= (size_t)got;
    }
    return NULL;
}

static keel_status_t header_check(const elf_header_t *header)
{
    if (memcmp(header->ident, "\177ELF", 4) != 0)
        return KEEL_ERROR(KEEL_CORRUPT, "it is no ELF file");
    if (header->ident[4] != ELF_CLASS_64 || header->ident[5] != ELF_LITTLE)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "it is no 64-bit little-endian ELF file");
    if (header->machine != ELF_HOST)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "it is for %s (ELF machine %u), and this is %s",
                          machine_name(header->machine), header->machine, machine_name(ELF_HOST));
    if (header->type != ELF_SHARED)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "it is an ELF file, but no shared object");
    if (header->program_size != sizeof(elf_program_t) || !header->program_count)
        return KEEL_ERROR(KEEL_CORRUPT, "its ELF header describes no segments");
    return NULL;
}

static bool table_fits(uint64_t offset, uint64_t count, uint64_t entry, uint64_t size)
{
    return offset <= size && count * entry <= size - offset;
}

keel_status_t elf_check_host_library(int fd)
{
    struct stat info;
    elf_header_t header;
    if (fstat(fd, &info) < 0) return status_from_errno(KEEL_IO, errno, "cannot read the image");
    uint64_t size = (uint64_t)info.st_size;
    KEEL_TRY(read_at(fd, &header, sizeof header, 0));
    KEEL_TRY(header_check(&header));
    if (!table_fits(header.program_offset, header.program_count, header.program_size, size) ||
        !table_fits(header.section_offset, header.section_count, header.section_size, size))
        return KEEL_ERROR(KEEL_CORRUPT,
                          "it is truncated: a table of its ELF header lies beyond %llu bytes",
                          (unsigned long long)size);
    for (unsigned i = 0; i < header.program_count; i++) {
        elf_program_t program;
        KEEL_TRY(read_at(fd, &program, sizeof program, header.program_offset + i * sizeof program));
        if (program.offset > size || program.file_size > size - program.offset)
            return KEEL_ERROR(
                KEEL_CORRUPT, "it is truncated: segment %u ends at %llu, the file at %llu", i,
                (unsigned long long)(program.offset + program.file_size), (unsigned long long)size);
    }
    return NULL;
}

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
    if (size < HEADER_SIZE) return KEEL_ERROR(KEEL_CORRUPT, "it ends within its ELF header");
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
    if (!table_fits(elf->program_offset, elf->program_count, SEGMENT_SIZE, size) ||
        !table_fits(elf->section_offset, elf->section_count, SECTION_SIZE, size))
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
        return KEEL_ERROR(KEEL_CORRUPT, "section %u ends beyond the file", index);
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
        return KEEL_ERROR(KEEL_CORRUPT, "segment %u ends beyond the file", index);
    segment->data = elf->bytes + offset;
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
