// SPDX-License-Identifier: Apache-2.0
// Threadgroup variables stand in kernels, so clang names them as the static variables of a function
// are named in C++; and MSL has no others of these that can be written.
#include "metal/static.h"

#include "metal/base.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// The linker has just made it, so it is taken to be right.
static const Elf64_Shdr *find_symbols(const char *file)
{
    const Elf64_Ehdr *head = (const void *)file;
    const Elf64_Shdr *sections = (const void *)(file + head->e_shoff);
    for (unsigned i = 0; i < head->e_shnum; i++)
        if (sections[i].sh_type == SHT_SYMTAB) return &sections[i];
    return NULL;
}

static unsigned long sum(const char *file, const char *prefix)
{
    const Elf64_Ehdr *head = (const void *)file;
    const Elf64_Shdr *sections = (const void *)(file + head->e_shoff);
    const Elf64_Shdr *table = find_symbols(file);
    unsigned long size = 0;
    for (size_t i = 0; table && i < table->sh_size / sizeof(Elf64_Sym); i++) {
        const Elf64_Sym *symbol = (const Elf64_Sym *)(const void *)(file + table->sh_offset) + i;
        const char *name = file + sections[table->sh_link].sh_offset + symbol->st_name;
        if (ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT) continue;
        if (symbol->st_shndx >= head->e_shnum) continue;
        if (!(sections[symbol->st_shndx].sh_flags & SHF_WRITE)) continue;
        if (!strncmp(name, prefix, strlen(prefix))) size += symbol->st_size;
    }
    return size;
}

unsigned long static_memory(const char *object, const char *kernel)
{
    char prefix[160];
    snprintf(prefix, sizeof prefix, "_ZZ%zu%sE", strlen(kernel), kernel);
    int fd = open(object, O_RDONLY | O_CLOEXEC);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) != 0) die("%s cannot be read", object);
    void *file = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (file == MAP_FAILED) die("%s cannot be mapped", object);
    unsigned long size = sum(file, prefix);
    munmap(file, (size_t)info.st_size);
    close(fd);
    return size;
}
