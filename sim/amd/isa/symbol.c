// SPDX-License-Identifier: Apache-2.0
// Names of kernels. A loaded code object still has its ELF header and dynamic symbols in front of
// its code. What is read here is the program's memory and may be anything, so nothing is trusted.
#include <elf.h>
#include <stdio.h>

#include "amd/isa/state.h"

// The bytes from the header of an object to the end of the memory it is in.
typedef struct {
    const uint8_t *bytes;
    uint64_t size;
} object_t;

static const void *part(const object_t *object, uint64_t offset, uint64_t size)
{
    bool inside = offset <= object->size && size <= object->size - offset && offset % 4 == 0;
    return inside ? object->bytes + offset : NULL;
}

// The object that an offset into memory belongs to: it begins on a page.
static bool object_find(const span_t *span, uint64_t offset, object_t *out)
{
    enum { PAGE = 4096, PAGES_MAX = 16384 };
    uint64_t at = offset & ~(uint64_t)(PAGE - 1);
    for (unsigned k = 0; k < PAGES_MAX; k++, at -= PAGE) {
        if (span->size - at >= sizeof(Elf64_Ehdr) && !memcmp(span->host + at, ELFMAG, SELFMAG)) {
            *out = (object_t){span->host + at, span->size - at};
            return true;
        }
        if (at == 0) break;
    }
    return false;
}

typedef struct {
    uint64_t symbols, strings, strings_size, hash;
} dynamic_t;

static bool dynamic_read(const object_t *object, dynamic_t *out)
{
    const Elf64_Ehdr *header = part(object, 0, sizeof *header);
    const Elf64_Phdr *parts =
        header ? part(object, header->e_phoff, header->e_phnum * sizeof *parts) : NULL;
    const Elf64_Dyn *entry = NULL;
    uint64_t count = 0;
    for (unsigned k = 0; parts && k < header->e_phnum; k++) {
        if (parts[k].p_type != PT_DYNAMIC) continue;
        entry = part(object, parts[k].p_vaddr, parts[k].p_memsz);
        count = parts[k].p_memsz / sizeof *entry;
    }
    for (uint64_t k = 0; entry && k < count; k++) {
        switch (entry[k].d_tag) {
        case DT_SYMTAB: out->symbols = entry[k].d_un.d_ptr; break;
        case DT_STRTAB: out->strings = entry[k].d_un.d_ptr; break;
        case DT_STRSZ: out->strings_size = entry[k].d_un.d_val; break;
        case DT_HASH: out->hash = entry[k].d_un.d_ptr; break;
        default: break;
        }
    }
    return entry && out->symbols && out->strings && out->hash;
}

// The name of the symbol at an offset into the object, as a string that ends inside of it.
static const char *symbol_find(const object_t *object, uint64_t value)
{
    dynamic_t dynamic = {0};
    if (!dynamic_read(object, &dynamic)) return NULL;
    const uint32_t *hash = part(object, dynamic.hash, 8);
    uint64_t count = hash ? hash[1] : 0;
    const Elf64_Sym *symbols = part(object, dynamic.symbols, count * sizeof *symbols);
    if (!symbols || dynamic.strings + dynamic.strings_size > object->size) return NULL;
    const char *strings = (const char *)object->bytes + dynamic.strings;
    for (uint64_t k = 0; k < count; k++) {
        uint64_t name = symbols[k].st_name;
        if (symbols[k].st_value != value || !name || name >= dynamic.strings_size) continue;
        if (memchr(strings + name, 0, dynamic.strings_size - name)) return strings + name;
    }
    return NULL;
}

void kernel_name(uint64_t address, char *out, size_t size)
{
    span_t span;
    object_t object;
    const char *name = NULL;
    if (map_find(address, 0, &span) && object_find(&span, address - span.base, &object)) {
        name = symbol_find(&object, (uint64_t)(span.host + (address - span.base) - object.bytes));
    }
    if (!name) {
        snprintf(out, size, "0x%llx", (unsigned long long)address);
        return;
    }
    size_t length = strlen(name);
    if (length > 3 && !strcmp(name + length - 3, ".kd")) length -= 3;
    snprintf(out, size, "%.*s", (int)length, name);
}
