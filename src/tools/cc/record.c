// SPDX-License-Identifier: Apache-2.0
#include "tools/cc/record.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "executable/elf.h"

// keel_record_t of <keel/kernel/entry.h>, which is for device code.
typedef struct record_t {
    uint32_t version, size, abi, group_size[3], constants, bindings, local_memory, arguments;
} record_t;

enum { RECORD_VERSION = 0x314b4c01, RECORDS_MAX = 4096, RECORD_SIZE_MAX = 1 << 16 };

static keel_status_t no_memory(void)
{
    return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "memory is short");
}

static keel_status_t damaged(void)
{
    return KEEL_ERROR(KEEL_CORRUPT, "the compiler made a record of a kernel that is damaged");
}

static uint32_t access_of(char letter)
{
    return letter == 'r'   ? KEEL_ACCESS_READ
           : letter == 'w' ? KEEL_ACCESS_WRITE
                           : KEEL_ACCESS_READ | KEEL_ACCESS_WRITE;
}

// The texts of a record: the kernel's name, then those of the bindings.
static keel_status_t texts_read(const char *text, size_t size, keel_image_entry_t *entry)
{
    char *copy = malloc(size + 1);
    keel_binding_info_t *bindings = calloc(entry->info.bindings + 1, sizeof *bindings);
    entry->info.name = copy;
    entry->bindings = bindings;
    if (!copy || !bindings) return no_memory();
    memcpy(copy, text, size);
    copy[size] = 0;
    const char *next = copy + strlen(copy) + 1, *end = copy + size;
    for (uint32_t i = 0; i < entry->info.bindings; i++) {
        if (next >= end || !*next) return damaged();
        bindings[i] = (keel_binding_info_t){.name = next + 1, .access = access_of(*next)};
        next += strlen(next) + 1;
    }
    return NULL;
}

// Adds the entry point that a record of at most `size` bytes describes.
static keel_status_t record_read(const char *bytes, size_t size, made_t *made, size_t *taken)
{
    record_t record;
    if (size < sizeof record) return damaged();
    memcpy(&record, bytes, sizeof record);
    if (record.version != RECORD_VERSION)
        return KEEL_ERROR(KEEL_UNSUPPORTED,
                          "the kernel was compiled with <keel/kernel.h> of another version");
    if (record.size < sizeof record || record.size > size || record.bindings > record.size ||
        made->entry_count == RECORDS_MAX)
        return damaged();
    if (!made->entries) made->entries = calloc(RECORDS_MAX, sizeof *made->entries);
    if (!made->entries) return no_memory();
    keel_image_entry_t *entry = &made->entries[made->entry_count++];
    *entry = (keel_image_entry_t){
        .info = {.group_size = {record.group_size[0], record.group_size[1], record.group_size[2]},
                 .constants = record.constants,
                 .bindings = record.bindings,
                 .local_memory = record.local_memory},
        .abi = record.abi,
        .arguments = record.arguments,
    };
    *taken = record.size;
    return texts_read(bytes + sizeof record, record.size - sizeof record, entry);
}

keel_status_t made_record(made_t *made, const void *bytes, size_t size)
{
    size_t taken;
    return record_read(bytes, size, made, &taken);
}

static keel_status_t elf_describe(made_t *made)
{
    elf_t elf;
    KEEL_TRY(elf_open(made->bytes, made->size, &elf));
    for (uint32_t i = 0; i < elf.section_count; i++) {
        elf_section_t section;
        KEEL_TRY(elf_section(&elf, i, &section));
        if (strcmp(section.name, "keel_kernels") != 0 || !section.data) continue;
        const char *bytes = (const char *)section.data;
        for (size_t at = 0, taken = 0; at < section.size; at += taken)
            KEEL_TRY(record_read(bytes + at, section.size - at, made, &taken));
    }
    return NULL;
}

// The numbers between { and } of an initialiser, which may leave out zeros at the end.
static keel_status_t initialiser_read(const char *line, const char *end, made_t *made)
{
    const char *open = strchr(line, '[');
    unsigned long size = open ? strtoul(open + 1, NULL, 10) : 0;
    const char *next = open ? strchr(open, '{') : NULL;
    if (!next || next > end || size > RECORD_SIZE_MAX) return damaged();
    char *bytes = calloc(1, size + 1);
    if (!bytes) return no_memory();
    size_t taken = 0;
    for (size_t i = 0; i < size && next < end && *next != '}'; i++) {
        char *after;
        bytes[i] = (char)strtoul(next + 1, &after, 10);
        next = after;
    }
    keel_status_t status = record_read(bytes, size, made, &taken);
    free(bytes);
    return status;
}

// Where a line of PTX has a text; NULL if it does not.
static const char *line_find(const char *line, const char *end, const char *text)
{
    size_t length = strlen(text);
    for (; (size_t)(end - line) >= length; line++)
        if (*line == *text && memcmp(line, text, length) == 0) return line;
    return NULL;
}

// Whether a line of PTX declares a record.
static bool line_is_record(const char *line, const char *end)
{
    return strncmp(line, ".global ", 8) == 0 && line_find(line, end, " keel_record_");
}

// The entry point that a line of PTX begins, or NULL.
static const keel_image_entry_t *line_entry(const made_t *made, const char *line, const char *end)
{
    const char *name = line_find(line, end, ".entry ");
    if (!name) return NULL;
    name += strlen(".entry ");
    for (uint32_t i = 0; i < made->entry_count; i++) {
        size_t length = strlen(made->entries[i].info.name);
        if (strncmp(name, made->entries[i].info.name, length) != 0) continue;
        if (name[length] == '(' || !strncmp(name + length, "$walk(", 6)) return &made->entries[i];
    }
    return NULL;
}

static const char *line_end(const char *line)
{
    const char *end = strchr(line, '\n');
    return end ? end + 1 : line + strlen(line);
}

// Copies PTX without the records, and says before the body of each kernel how large its groups are,
// so that registers are allotted for them and no other size can be launched.
static void ptx_rewrite(made_t *made, char *to)
{
    const keel_image_entry_t *entry = NULL;
    const char *begin = to;
    for (const char *line = made->bytes, *end; *line; line = end) {
        end = line_end(line);
        if (line_is_record(line, end)) continue;
        const keel_image_entry_t *begun = line_entry(made, line, end);
        if (begun) entry = begun;
        if (*line == '{' && entry) {
            const uint32_t *size = entry->info.group_size;
            to += sprintf(to, ".reqntid %u, %u, %u\n", size[0], size[1], size[2]);
            entry = NULL;
        }
        memcpy(to, line, (size_t)(end - line));
        to += end - line;
    }
    *to = 0;
    made->size = (size_t)(to - begin) + 1; // with the 0 that the driver's reader wants
}

static keel_status_t ptx_describe(made_t *made)
{
    for (const char *line = made->bytes, *end; *line; line = end) {
        end = line_end(line);
        if (line_is_record(line, end)) KEEL_TRY(initialiser_read(line, end, made));
    }
    char *rewritten = malloc(made->size + 1 + (size_t)made->entry_count * 128);
    if (!rewritten) return no_memory();
    ptx_rewrite(made, rewritten);
    free(made->bytes);
    made->bytes = rewritten;
    return NULL;
}

keel_status_t made_describe(made_t *made, keel_image_kind_t kind)
{
    KEEL_TRY(kind == KEEL_IMAGE_PTX ? ptx_describe(made) : elf_describe(made));
    return made_has_kernels(made);
}

keel_status_t made_has_kernels(const made_t *made)
{
    if (!made->entry_count)
        return KEEL_ERROR(KEEL_NOT_FOUND, "the source has no kernel: begin one with KEEL_KERNEL");
    return NULL;
}

void made_finish(made_t *made)
{
    for (uint32_t i = 0; i < made->entry_count; i++) {
        free((void *)(uintptr_t)made->entries[i].info.name);
        free((void *)(uintptr_t)made->entries[i].bindings);
    }
    free(made->entries);
    free(made->bytes);
    *made = (made_t){0};
}
