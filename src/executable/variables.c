// SPDX-License-Identifier: Apache-2.0
#include "executable/variables.h"

#include <string.h>

#include "executable/elf.h"
#include "executable/image.h"
#include "executable/ptx.h"
#include "executable/ptx_token.h"

enum { SECTION_WRITE = 1, SECTION_ALLOC = 2 };

static bool begins_with_one_of(const char *name, const char *const *prefixes)
{
    for (; *prefixes; prefixes++)
        if (strncmp(name, *prefixes, strlen(*prefixes)) == 0) return true;
    return false;
}

// Sections that are written by the loader alone, or are workgroup memory; and those that are never
// written by code, but are by the host.
static bool section_is_variable(const elf_section_t *section)
{
    static const char *const loaders[] = {".dynamic",       ".got",          ".init_array",
                                          ".fini_array",    ".data.rel.ro",  ".relro_padding",
                                          "keel_",          ".nv.shared",    ".nv.merc.nv.shared",
                                          ".nv.constant0.", ".nv.constant2", NULL};
    static const char *const hosts[] = {".nv.constant", NULL};
    bool known = begins_with_one_of(section->name, loaders);
    if (!section->size || !(section->flags & SECTION_ALLOC) || known) return false;
    return section->flags & SECTION_WRITE || begins_with_one_of(section->name, hosts);
}

static keel_status_t sections_look(const void *data, size_t size, bool *found)
{
    elf_t elf;
    KEEL_TRY(elf_open(data, size, &elf));
    *found = !elf.section_count;
    for (uint32_t i = 0; i < elf.section_count && !*found; i++) {
        elf_section_t section;
        KEEL_TRY(elf_section(&elf, i, &section));
        *found = section_is_variable(&section);
    }
    return NULL;
}

// Declarations of variables. In instructions the same words follow the name of the operation, as in
// ld.global.f32.
static bool text_has_variables(const char *text, size_t size)
{
    static const char *const words[] = {".global", ".const", ".tex", ".surf", ".sampler", NULL};
    ptx_lexer_t lexer;
    const char *end = NULL;
    bool operation = false;
    ptx_lexer_init(&lexer, text, size);
    for (ptx_next(&lexer); lexer.token.kind != PTX_END; ptx_next(&lexer)) {
        const ptx_token_t *token = &lexer.token;
        if (token->kind == PTX_BROKEN) return true;
        bool follows = token->kind == PTX_DIRECTIVE && token->text == end;
        operation = token->kind == PTX_NAME || (operation && follows);
        for (const char *const *word = words; token->kind == PTX_DIRECTIVE && *word; word++)
            if (!operation && ptx_is(&lexer, *word)) return true;
        end = token->text + token->length;
    }
    return false;
}

bool image_has_variables(const void *data, size_t size)
{
    bool found = true;
    if (size >= 4 && memcmp(data, "\177ELF", 4) == 0) {
        keel_status_t status = sections_look(data, size, &found);
        found |= status != NULL;
        keel_status_release(status);
    } else if (ptx_recognise(data, size)) {
        found = text_has_variables(data, size);
    }
    return found;
}
