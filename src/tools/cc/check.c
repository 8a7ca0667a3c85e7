// SPDX-License-Identifier: Apache-2.0
#include "tools/cc/check.h"

#include <keel/host_kernel.h>
#include <stdlib.h>
#include <string.h>

#include "executable/elf.h"

const char *function_instead(const char *name, size_t length)
{
    static const struct {
        const char *name, *instead;
    } rows[] = {
        {"abs", "keel_abs"},           {"fabs", "keel_abs"},
        {"labs", "keel_abs"},          {"min", "keel_min"},
        {"fmin", "keel_min"},          {"max", "keel_max"},
        {"fmax", "keel_max"},          {"sqrt", "keel_sqrt"},
        {"rsqrt", "keel_rsqrt"},       {"fma", "keel_fma"},
        {"floor", "keel_floor"},       {"ceil", "keel_ceil"},
        {"trunc", "keel_trunc"},       {"rint", "keel_rint"},
        {"copysign", "keel_copysign"}, {"exp", "keel_exp"},
        {"exp2", "keel_exp2"},         {"log", "keel_log"},
        {"log2", "keel_log2"},         {"sin", "keel_sin"},
        {"cos", "keel_cos"},           {"tanh", "keel_tanh"},
        {"pow", "keel_pow"},           {"erf", "keel_erf"},
        {"popc", "keel_popcount"},     {"clz", "keel_clz"},
        {"mulhi", "keel_mulhi"},       {"atomicAdd", "keel_atomic_add"},
        {"threadfence", "keel_fence"}, {"syncthreads", "KEEL_BARRIER"},
    };
    for (; length && *name == '_'; length--) name++;
    for (int suffix = 0; suffix < 2 && length; suffix++) {
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
            if (strlen(rows[i].name) == length && !memcmp(rows[i].name, name, length))
                return rows[i].instead;
        if (name[length - 1] != 'f') return NULL;
        length--;
    }
    return NULL;
}

static keel_status_t undefined(const char *name, size_t length)
{
    const char *instead = function_instead(name, length);
    if (instead)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "nothing defines '%.*s': a kernel calls %s",
                          (int)length, name, instead);
    return KEEL_ERROR(KEEL_UNSUPPORTED,
                      "nothing defines '%.*s': a kernel calls functions of its own source and of "
                      "<keel/kernel.h>",
                      (int)length, name);
}

// Functions that compilers call by themselves: for what <keel/kernel.h> uses, and to watch code.
static bool called_by_compilers(const char *name)
{
    static const char *const names[] = {
        "memcpy", "memmove", "memset", "memcmp", "fma",  "fmaf",  "fmin",     "fminf",
        "fmax",   "fmaxf",   "floor",  "floorf", "ceil", "ceilf", "trunc",    "truncf",
        "rint",   "rintf",   "sqrt",   "sqrtf",  "fabs", "fabsf", "copysign", "copysignf",
    };
    static const char *const prefixes[] = {"__asan_", "__tsan_",      "__msan_", "__ubsan_",
                                           "__llvm_", "__sanitizer_", "__gcov_", "__stack_chk_"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(name, names[i])) return true;
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (!strncmp(name, prefixes[i], strlen(prefixes[i]))) return true;
    return false;
}

// What the loader would have to find in the process. Code that does without a function declares it
// weak.
static keel_status_t table_check(const elf_t *elf, const elf_section_t *table)
{
    enum { GLOBAL = 1 };
    for (uint64_t i = 1; i < elf_symbol_count(table); i++) {
        elf_symbol_t symbol;
        KEEL_TRY(elf_symbol(elf, table, i, &symbol));
        if (symbol.section || symbol.bind != GLOBAL || called_by_compilers(symbol.name)) continue;
        return undefined(symbol.name, strlen(symbol.name));
    }
    return NULL;
}

static keel_status_t symbols_check(const made_t *made)
{
    elf_t elf;
    KEEL_TRY(elf_open(made->bytes, made->size, &elf));
    for (uint32_t i = 0; i < elf.section_count; i++) {
        elf_section_t section;
        KEEL_TRY(elf_section(&elf, i, &section));
        if (section.type == ELF_SECTION_DYNAMIC_SYMBOLS) KEEL_TRY(table_check(&elf, &section));
    }
    return NULL;
}

static bool line_begins(const char *line, const char *with)
{
    return strncmp(line, with, strlen(with)) == 0;
}

// The name in a line that declares what PTX does not define: the last word, without what follows
// it.
static keel_status_t declaration_check(const char *line)
{
    size_t end = strcspn(line, "\n");
    while (end && strchr(" (;[]", line[end - 1])) end--;
    size_t begin = end;
    while (begin && line[begin - 1] != ' ') begin--;
    if (line_begins(line + begin, "cuda")) return NULL; // of CUDA's runtime for devices
    return undefined(line + begin, end - begin);
}

// What a line of PTX says of the memory of an item: `.local .align 8 .b8 __local_depot0[8192];`.
static keel_status_t depot_check(const char *line, const char *kernel)
{
    enum { ITEM_MAX = 512 << 10 };
    size_t open = strcspn(line, "[\n");
    unsigned long bytes = line[open] == '[' ? strtoul(line + open + 1, NULL, 10) : 0;
    if (bytes <= ITEM_MAX) return NULL;
    return KEEL_ERROR(KEEL_UNSUPPORTED,
                      "%s '%.*s' takes %lu bytes of memory for each item, by its variables and "
                      "KEEL_PRIVATE; an item has %d",
                      *kernel ? "kernel" : "a function", (int)strcspn(kernel, "($\n"), kernel,
                      bytes, (int)ITEM_MAX);
}

static keel_status_t ptx_check(const char *text)
{
    static const char entry[] = ".visible .entry ";
    const char *kernel = "";
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (line_begins(line, entry)) kernel = line + strlen(entry);
        if (line_begins(line, ".extern .func ") || line_begins(line, ".extern .global "))
            KEEL_TRY(declaration_check(line));
        const char *code = line + strspn(line, " \t");
        if (line_begins(code, ".local ")) KEEL_TRY(depot_check(code, kernel));
    }
    return NULL;
}

// Workgroup memory that a group may have on the first GPU of NVIDIA that runs the code: KiB.
static uint32_t nvidia_memory(int machine)
{
    static const struct {
        int from;
        uint32_t kib;
    } rows[] = {{0, 48},   {70, 96}, {75, 64},  {80, 163}, {86, 99},
                {87, 163}, {89, 99}, {90, 227}, {120, 99}};
    uint32_t kib = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (machine >= rows[i].from) kib = rows[i].kib;
    return kib;
}

static uint32_t group_memory(const target_t *target)
{
    if (target->family == TARGET_HOST) return KEEL_HOST_LOCAL_MEMORY;
    if (target->family == TARGET_AMDGCN)
        return strcmp(target->text, "gfx950") ? 64 << 10 : 160 << 10;
    if (target->family == TARGET_MSL) return 32 << 10;
    return nvidia_memory(atoi(target->text + strlen("nvptx:sm_"))) << 10;
}

static keel_status_t memory_check(const made_t *made, const target_t *target)
{
    uint32_t most = group_memory(target);
    for (uint32_t i = 0; i < made->entry_count; i++) {
        const keel_entry_info_t *info = &made->entries[i].info;
        if (info->local_memory > most)
            return KEEL_ERROR(KEEL_UNSUPPORTED,
                              "kernel '%s' takes %u bytes of workgroup memory; a group has %u",
                              info->name, info->local_memory, most);
    }
    return NULL;
}

keel_status_t made_check(const made_t *made, const target_t *target)
{
    KEEL_TRY(memory_check(made, target));
    if (target->family == TARGET_NVPTX) return ptx_check(made->bytes);
    return target->family == TARGET_HOST ? symbols_check(made) : NULL;
}
