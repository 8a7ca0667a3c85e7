// SPDX-License-Identifier: Apache-2.0
#include "executable/host.h"

#include <stdlib.h>
#include <string.h>

#include <keel/host_kernel.h>

#include "executable/build.h"
#include "executable/bytes.h"
#include "executable/elf.h"

enum {
    LOADS_MAX = 32,      // segments: compilers make four or five
    MAX_NAME = 4096,     // bytes of a name
    BINDINGS_MAX = 4096, // of an entry
    RELA_SIZE = 24,
};

_Static_assert(sizeof(void *) == 8,
               "objects of 64-bit machines are read by the structs of this one");

#if defined(__aarch64__)
enum { ELF_HOST = ELF_AARCH64 };
#else
enum { ELF_HOST = ELF_X86_64 };
#endif

// Where a pointer lies and where it points once the object is loaded at address 0.
typedef struct pointer_t {
    uint64_t at, value;
} pointer_t;

typedef struct host_reader_t {
    elf_t elf;
    image_info_t *info;
    elf_segment_t loads[LOADS_MAX];
    uint32_t load_count;
    pointer_t *pointers; // by `at`; in info's memory
    uint64_t pointer_count;
} host_reader_t;

static const char *machine_name(unsigned machine)
{
    return machine == ELF_X86_64    ? "x86-64"
           : machine == ELF_AARCH64 ? "aarch64"
                                    : "another machine";
}

keel_status_t host_check(const void *data, size_t size)
{
    elf_t elf;
    keel_image_kind_t kind = image_recognise(data, size);
    if (kind != KEEL_IMAGE_UNKNOWN && kind != KEEL_IMAGE_HOST)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "it is %s, and shared objects for %s are taken here",
                          image_kind_name(kind), machine_name(ELF_HOST));
    KEEL_TRY(elf_open(data, size, &elf));
    if (elf.machine != ELF_HOST)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "it is for %s (ELF machine %u), and this is %s",
                          machine_name(elf.machine), elf.machine, machine_name(ELF_HOST));
    if (elf.type != ELF_SHARED)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "it is an ELF file, but no shared object");
    if (!elf.program_count) return KEEL_ERROR(KEEL_CORRUPT, "its ELF header describes no segments");
    for (uint32_t i = 0; i < elf.program_count; i++) {
        elf_segment_t segment;
        KEEL_TRY(elf_segment(&elf, i, &segment));
    }
    return NULL;
}

static keel_status_t loads_find(host_reader_t *r)
{
    for (uint32_t i = 0; i < r->elf.program_count; i++) {
        elf_segment_t segment;
        KEEL_TRY(elf_segment(&r->elf, i, &segment));
        if (segment.type != ELF_LOAD) continue;
        if (r->load_count == LOADS_MAX)
            return KEEL_ERROR(KEEL_UNSUPPORTED, "it has more than %d segments", LOADS_MAX);
        r->loads[r->load_count++] = segment;
    }
    return NULL;
}

// The bytes that are loaded to an address; *left is how many. NULL if there are none.
static const uint8_t *loaded_at(const host_reader_t *r, uint64_t address, uint64_t *left)
{
    for (uint32_t i = 0; i < r->load_count; i++) {
        const elf_segment_t *load = &r->loads[i];
        if (address < load->address || address - load->address >= load->file_size) continue;
        *left = load->file_size - (address - load->address);
        return load->data + (address - load->address);
    }
    return NULL;
}

static keel_status_t table_bytes(const host_reader_t *r, uint64_t address, uint64_t size,
                                 const uint8_t **bytes)
{
    uint64_t left = 0;
    *bytes = loaded_at(r, address, &left);
    if (!*bytes || left < size)
        return KEEL_ERROR(KEEL_CORRUPT, "its table of entry points points outside of the object");
    return NULL;
}

static keel_status_t text_read(const host_reader_t *r, uint64_t address, const char **text)
{
    uint64_t left = 0;
    const uint8_t *bytes = loaded_at(r, address, &left);
    size_t room = left < MAX_NAME ? (size_t)left : MAX_NAME;
    if (!bytes || !memchr(bytes, 0, room))
        return KEEL_ERROR(KEEL_CORRUPT, "its table of entry points has a name that is no text");
    return image_text(r->info, bytes, room, text);
}

static int pointer_compare(const void *a, const void *b)
{
    const pointer_t *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

// A pointer of the table. One without a relocation is what the file has: 0, or an address that the
// loader adds the object's own to.
static keel_status_t pointer_read(const host_reader_t *r, uint64_t at, uint64_t *value)
{
    *value = 0;
    pointer_t key = {at, 0};
    const pointer_t *found =
        r->pointer_count ? bsearch(&key, r->pointers, r->pointer_count, sizeof key, pointer_compare)
                         : NULL;
    if (found) {
        *value = found->value;
        return NULL;
    }
    const uint8_t *bytes;
    KEEL_TRY(table_bytes(r, at, 8, &bytes));
    *value = bytes_u64(bytes);
    return NULL;
}

// Relocations that store an address: relative ones, and those of a symbol.
static bool is_relative(uint16_t machine, uint32_t type)
{
    return machine == ELF_AARCH64 ? type == 1027 : type == 8;
}

static bool is_absolute(uint16_t machine, uint32_t type)
{
    return machine == ELF_AARCH64 ? type == 257 || type == 1025 : type == 1 || type == 6;
}

static keel_status_t section_relocate(host_reader_t *r, const elf_section_t *section)
{
    elf_section_t symbols;
    KEEL_TRY(elf_claim(&r->elf, section->size));
    KEEL_TRY(elf_section(&r->elf, section->link, &symbols));
    for (uint64_t offset = 0; section->size - offset >= RELA_SIZE; offset += RELA_SIZE) {
        const uint8_t *rela = section->data + offset;
        uint64_t info = bytes_u64(rela + 8), addend = bytes_u64(rela + 16);
        uint32_t type = (uint32_t)info;
        elf_symbol_t symbol = {0};
        if (is_absolute(r->elf.machine, type))
            KEEL_TRY(elf_symbol(&r->elf, &symbols, info >> 32, &symbol));
        else if (!is_relative(r->elf.machine, type))
            continue;
        r->pointers[r->pointer_count++] = (pointer_t){bytes_u64(rela), symbol.value + addend};
    }
    return NULL;
}

static keel_status_t relocations_read(host_reader_t *r)
{
    uint64_t count = 0;
    elf_section_t section;
    for (int pass = 0; pass < 2; pass++) {
        if (pass) {
            void *array;
            KEEL_TRY(image_alloc(r->info, count * sizeof *r->pointers, &array));
            r->pointers = array;
        }
        for (uint32_t i = 0; i < r->elf.section_count; i++) {
            KEEL_TRY(elf_section(&r->elf, i, &section));
            if (section.type != ELF_SECTION_RELA) continue;
            if (pass)
                KEEL_TRY(section_relocate(r, &section));
            else
                count += section.size / RELA_SIZE;
        }
    }
    if (r->pointer_count)
        qsort(r->pointers, r->pointer_count, sizeof *r->pointers, pointer_compare);
    return NULL;
}

static keel_status_t bindings_read(host_reader_t *r, keel_image_entry_info_t *entry, uint64_t at,
                                   uint32_t count)
{
    uint64_t access = 0, names = 0;
    const uint8_t *bytes;
    KEEL_TRY(pointer_read(r, at + offsetof(keel_host_entry_t, access), &access));
    KEEL_TRY(pointer_read(r, at + offsetof(keel_host_entry_t, names), &names));
    KEEL_TRY(table_bytes(r, access, (uint64_t)count * 4, &bytes));
    for (uint32_t i = 0; i < count; i++) {
        keel_image_binding_t *binding;
        uint64_t name = 0;
        KEEL_TRY(image_add_binding(r->info, entry, &binding));
        binding->binding = i;
        binding->type = "buffer";
        binding->access = bytes_u32(bytes + i * 4) & KEEL_ACCESS_ALL;
        if (names) KEEL_TRY(pointer_read(r, names + i * 8, &name));
        if (name) KEEL_TRY(text_read(r, name, &binding->name));
    }
    return NULL;
}

static keel_status_t entry_read(host_reader_t *r, uint64_t at)
{
    const uint8_t *bytes;
    uint64_t name = 0, kernel = 0;
    KEEL_TRY(table_bytes(r, at, sizeof(keel_host_entry_t), &bytes));
    KEEL_TRY(pointer_read(r, at + offsetof(keel_host_entry_t, name), &name));
    KEEL_TRY(pointer_read(r, at + offsetof(keel_host_entry_t, kernel), &kernel));
    keel_image_entry_info_t *entry;
    KEEL_TRY(image_add_entry(r->info, &entry));
    KEEL_TRY(text_read(r, name, &entry->name));
    if (!kernel) return KEEL_ERROR(KEEL_CORRUPT, "entry point '%s' has no kernel", entry->name);
    for (int i = 0; i < 3; i++)
        entry->group_size[i] =
            bytes_u32(bytes + offsetof(keel_host_entry_t, group_size) + (size_t)i * 4);
    entry->constants = bytes_u32(bytes + offsetof(keel_host_entry_t, constants));
    entry->local_memory = bytes_u32(bytes + offsetof(keel_host_entry_t, local_memory));
    uint32_t bindings = bytes_u32(bytes + offsetof(keel_host_entry_t, bindings));
    if (bindings > BINDINGS_MAX)
        return KEEL_ERROR(KEEL_CORRUPT, "entry point '%s' has %u bindings", entry->name, bindings);
    return bindings ? bindings_read(r, entry, at, bindings) : NULL;
}

static keel_status_t library_read(host_reader_t *r, uint64_t at)
{
    const uint8_t *bytes;
    uint64_t entries = 0;
    KEEL_TRY(loads_find(r));
    KEEL_TRY(relocations_read(r));
    KEEL_TRY(table_bytes(r, at, sizeof(keel_host_library_t), &bytes));
    uint32_t abi = bytes_u32(bytes + offsetof(keel_host_library_t, abi));
    uint32_t count = bytes_u32(bytes + offsetof(keel_host_library_t, entry_count));
    if (abi != KEEL_HOST_ABI)
        return KEEL_ERROR(KEEL_UNSUPPORTED,
                          "it was built for version %u of the kernel ABI; this is version %d", abi,
                          KEEL_HOST_ABI);
    KEEL_TRY(image_format(r->info, &r->info->version, "%u", abi));
    KEEL_TRY(pointer_read(r, at + offsetof(keel_host_library_t, entries), &entries));
    KEEL_TRY(table_bytes(r, entries, count * (uint64_t)sizeof(keel_host_entry_t), &bytes));
    for (uint32_t i = 0; i < count; i++)
        KEEL_TRY(entry_read(r, entries + i * (uint64_t)sizeof(keel_host_entry_t)));
    return NULL;
}

// Finds the table among the exported symbols.
static keel_status_t library_find(host_reader_t *r, uint64_t *at)
{
    elf_section_t section;
    elf_symbol_t symbol;
    for (uint32_t i = 0; i < r->elf.section_count; i++) {
        KEEL_TRY(elf_section(&r->elf, i, &section));
        if (section.type != ELF_SECTION_DYNAMIC_SYMBOLS) continue;
        KEEL_TRY(elf_claim(&r->elf, section.size));
        for (uint64_t k = 0; k < elf_symbol_count(&section); k++) {
            KEEL_TRY(elf_symbol(&r->elf, &section, k, &symbol));
            if (symbol.section && !strcmp(symbol.name, "keel_host_library")) *at = symbol.value;
        }
    }
    return NULL;
}

static keel_status_t host_describe(host_reader_t *r)
{
    if (r->elf.machine != ELF_X86_64 && r->elf.machine != ELF_AARCH64)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "it is for ELF machine %u; x86-64 and aarch64 are read",
                          r->elf.machine);
    r->info->target = r->elf.machine == ELF_AARCH64 ? "aarch64-linux" : "x86_64-linux";
    uint64_t at = 0;
    KEEL_TRY(library_find(r, &at));
    return at ? library_read(r, at) : NULL;
}

keel_status_t host_read(const void *data, size_t size, image_info_t *info)
{
    host_reader_t reader = {.info = info};
    KEEL_TRY(image_begin(info, KEEL_IMAGE_HOST, size));
    keel_status_t status = elf_open(data, size, &reader.elf);
    if (!status) status = host_describe(&reader);
    return image_end(info, status);
}
