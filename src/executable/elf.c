// SPDX-License-Identifier: Apache-2.0
#include "executable/elf.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"

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
    ELF_LOAD = 1,
    ELF_X86_64 = 62,
    ELF_AARCH64 = 183,
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
