// SPDX-License-Identifier: Apache-2.0
#include "amd/bench/device.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amd/map.h"

static void check(bool good, const char *what, const char *name)
{
    if (good) return;
    fprintf(stderr, "%s: %s\n", name, what);
    exit(1);
}

static uint8_t *file_read(const char *path)
{
    FILE *file = fopen(path, "rb");
    check(file != NULL, "cannot be opened", path);
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(size);
    check(bytes && fread(bytes, 1, size, file) == size, "cannot be read", path);
    fclose(file);
    return bytes;
}

static const Elf64_Dyn *dynamic_find(const module_t *module, Elf64_Sxword tag);

// Pointers inside of the object's own data.
static void module_relocate(const module_t *module, const char *path)
{
    enum { RELATIVE64 = 13 };
    const Elf64_Dyn *rela = dynamic_find(module, DT_RELA), *size = dynamic_find(module, DT_RELASZ);
    if (!rela || !size) return;
    const Elf64_Rela *entry = (const Elf64_Rela *)(module->image + rela->d_un.d_ptr);
    for (uint64_t k = 0; k < size->d_un.d_val / sizeof *entry; k++) {
        check(ELF64_R_TYPE(entry[k].r_info) == RELATIVE64, "has relocations of another kind", path);
        uint64_t value = (uint64_t)(uintptr_t)module->image + (uint64_t)entry[k].r_addend;
        memcpy(module->image + entry[k].r_offset, &value, sizeof value);
    }
}

module_t module_load(const char *path)
{
    uint8_t *file = file_read(path);
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)file;
    check(!memcmp(header->e_ident, ELFMAG, SELFMAG), "is not an ELF file", path);
    const Elf64_Phdr *part = (const Elf64_Phdr *)(file + header->e_phoff);
    module_t module = {0};
    for (unsigned k = 0; k < header->e_phnum; k++) {
        size_t end = part[k].p_vaddr + part[k].p_memsz;
        if (part[k].p_type == PT_LOAD && end > module.size) module.size = end;
    }
    module.image = device_alloc(module.size);
    for (unsigned k = 0; k < header->e_phnum; k++) {
        if (part[k].p_type != PT_LOAD) continue;
        memcpy(module.image + part[k].p_vaddr, file + part[k].p_offset, part[k].p_filesz);
    }
    free(file);
    module_relocate(&module, path);
    return module;
}

static const Elf64_Dyn *dynamic_find(const module_t *module, Elf64_Sxword tag)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)module->image;
    const Elf64_Phdr *part = (const Elf64_Phdr *)(module->image + header->e_phoff);
    for (unsigned k = 0; k < header->e_phnum; k++) {
        if (part[k].p_type != PT_DYNAMIC) continue;
        const Elf64_Dyn *entry = (const Elf64_Dyn *)(module->image + part[k].p_vaddr);
        for (; entry->d_tag != DT_NULL; entry++) {
            if (entry->d_tag == tag) return entry;
        }
    }
    return NULL;
}

uint64_t module_symbol(const module_t *module, const char *name)
{
    const Elf64_Dyn *symbols = dynamic_find(module, DT_SYMTAB),
                    *hash = dynamic_find(module, DT_HASH);
    const Elf64_Dyn *strings = dynamic_find(module, DT_STRTAB);
    check(symbols && hash && strings, "looked up in a module without symbols", name);
    const Elf64_Sym *symbol = (const Elf64_Sym *)(module->image + symbols->d_un.d_ptr);
    uint32_t count = ((const uint32_t *)(module->image + hash->d_un.d_ptr))[1];
    for (uint32_t k = 0; k < count; k++) {
        const char *found = (const char *)module->image + strings->d_un.d_ptr + symbol[k].st_name;
        if (!strcmp(found, name)) return (uint64_t)(uintptr_t)module->image + symbol[k].st_value;
    }
    check(false, "is not in the module", name);
    return 0;
}

void module_unload(module_t *module)
{
    device_free(module->image);
    *module = (module_t){0};
}

void *device_alloc(size_t size)
{
    // With an unused page behind it: an access beyond the end does not hit another allocation.
    size_t room = ((size + 4095) & ~(size_t)4095) + 4096;
    uint8_t *memory = aligned_alloc(4096, room);
    check(memory != NULL, "memory is short", "device_alloc");
    memset(memory, 0, room);
    uint64_t base = (uint64_t)(uintptr_t)memory;
    const span_t span = {.base = base, .size = size, .host = memory, .nodes = ~0ull};
    check(map_add(&span), "overlap", "device_alloc");
    return memory;
}

void device_free(void *memory)
{
    map_remove((uint64_t)(uintptr_t)memory);
    free(memory);
}

dispatch_t device_dispatch(uint64_t kernel, uint32_t groups, uint32_t size)
{
    const uint32_t *descriptor = (const uint32_t *)(uintptr_t)kernel;
    dispatch_t dispatch = {
        .grid = {groups * size, 1, 1},
        .group = {size, 1, 1},
        .lds_size = descriptor[0],
        .scratch_size = descriptor[1],
        .kernel = kernel,
    };
    // A kernel that recurses cannot say how much it needs.
    if (dispatch.scratch_size) dispatch.scratch_size += 16384;
    return dispatch;
}

bool device_launch(isa_t *isa, dispatch_t dispatch, const void *arguments, size_t argument_size)
{
    uint8_t *kernarg = device_alloc(argument_size + 256); // room for hidden arguments
    memcpy(kernarg, arguments, argument_size);
    uint16_t *packet = device_alloc(64); // kernels look up the size of their group there
    packet[2] = (uint16_t)dispatch.group[0];
    packet[3] = packet[4] = 1;
    memcpy(packet + 6, &dispatch.grid[0], 4);
    dispatch.kernarg = (uint64_t)(uintptr_t)kernarg;
    dispatch.packet = (uint64_t)(uintptr_t)packet;
    bool done = isa_dispatch(isa, &dispatch);
    device_free(packet);
    device_free(kernarg);
    return done;
}

bool device_run(isa_t *isa, uint64_t kernel, uint32_t groups, uint32_t size, const void *arguments,
                size_t argument_size)
{
    return device_launch(isa, device_dispatch(kernel, groups, size), arguments, argument_size);
}

uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}
