// SPDX-License-Identifier: Apache-2.0
// Reading ELF files that may be damaged or not ELF at all: 64-bit, little-endian ones.
#ifndef KEEL_SRC_EXECUTABLE_ELF_H_
#define KEEL_SRC_EXECUTABLE_ELF_H_

#include <keel/status.h>

enum {
    ELF_X86_64 = 62,
    ELF_AARCH64 = 183,
    ELF_CUDA = 190,
    ELF_AMDGPU = 224,
};

enum {
    ELF_SHARED = 3, // type of a file
    ELF_LOAD = 1,   // type of a segment
};

enum {
    ELF_SECTION_SYMBOLS = 2,
    ELF_SECTION_RELA = 4,
    ELF_SECTION_NOTE = 7,
    ELF_SECTION_NOBITS = 8,
    ELF_SECTION_DYNAMIC_SYMBOLS = 11,
};

enum {
    ELF_SYMBOL_OBJECT = 1,
    ELF_SYMBOL_FUNCTION = 2,
};

// An ELF file in memory whose tables are known to lie within it.
typedef struct elf_t {
    const uint8_t *bytes; // borrowed
    uint64_t size;
    uint16_t type, machine;
    uint8_t abi, abi_version;
    uint32_t flags;
    uint64_t program_offset, section_offset;
    uint32_t program_count, section_count;
    uint32_t name_section;
    uint64_t claimed; // by elf_claim
} elf_t;

typedef struct elf_section_t {
    const char *name;    // terminated; "" if it has none
    const uint8_t *data; // NULL if it takes no room in the file
    uint32_t type, link, info;
    uint64_t flags, address, size, entry_size;
} elf_section_t;

typedef struct elf_segment_t {
    uint32_t type, flags;
    const uint8_t *data;
    uint64_t address, file_size, memory_size, align;
} elf_segment_t;

typedef struct elf_symbol_t {
    const char *name; // terminated
    uint8_t type, bind, other;
    uint16_t section;
    uint64_t value, size;
} elf_symbol_t;

// KEEL_CORRUPT for what is damaged or no ELF file, KEEL_UNSUPPORTED for 32 bits or the other byte
// order.
keel_status_t elf_open(const void *data, size_t size, elf_t *elf) KEEL_MUST_USE;

// Sections and segments by number, below the counts; KEEL_CORRUPT if they do not lie in the file.
keel_status_t elf_section(const elf_t *elf, uint32_t index, elf_section_t *section) KEEL_MUST_USE;
keel_status_t elf_segment(const elf_t *elf, uint32_t index, elf_segment_t *segment) KEEL_MUST_USE;

// Called before `size` bytes of a section or segment are looked through. KEEL_CORRUPT once these
// are more than twice the file, which takes many that overlap: so no file makes its reader run
// long.
keel_status_t elf_claim(elf_t *elf, uint64_t size) KEEL_MUST_USE;

// How many symbols a section of that type holds, and one of them by number below that.
uint64_t elf_symbol_count(const elf_section_t *table);
keel_status_t elf_symbol(const elf_t *elf, const elf_section_t *table, uint64_t index,
                         elf_symbol_t *symbol) KEEL_MUST_USE;

#endif
