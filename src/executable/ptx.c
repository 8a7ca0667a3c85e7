// SPDX-License-Identifier: Apache-2.0
#include "executable/ptx.h"

#include <stdlib.h>
#include <string.h>

#include "executable/build.h"
#include "executable/ptx_token.h"

enum {
    ALIGN_MAX = 1 << 16,
    BLOCK_MAX = 1 << 20, // bytes of parameters: far more than any GPU takes
    GLANCE = 4096,       // bytes that tell PTX from other texts
};

// A variable in workgroup memory, of the module.
typedef struct shared_t {
    const char *name; // in the text
    size_t length;
    uint64_t size, align;
    uint32_t user; // the last entry that counted it, from 1
} shared_t;

// A body to be looked through once all variables are known.
typedef struct body_t {
    const char *text;
    size_t size;
    uint32_t line;
} body_t;

typedef struct ptx_reader_t {
    ptx_lexer_t lexer;
    image_info_t *info;
    shared_t *shared; // in info's memory, as is the next
    uint32_t shared_count;
    body_t *bodies; // one per entry
} ptx_reader_t;

// What stands before the name of a variable.
typedef struct ptx_type_t {
    const char *name; // ".u64"
    uint64_t size, align;
    keel_param_kind_t kind;
} ptx_type_t;

static keel_status_t syntax_error(const ptx_reader_t *r, const char *expected)
{
    const ptx_token_t *token = &r->lexer.token;
    if (token->kind == PTX_END)
        return KEEL_ERROR(KEEL_CORRUPT, "it ends in line %u, before %s", r->lexer.line, expected);
    if (token->kind == PTX_BROKEN)
        return KEEL_ERROR(KEEL_CORRUPT, "line %u: a comment or string does not end", r->lexer.line);
    if (token->kind == PTX_MARK && (token->text[0] < ' ' || token->text[0] > '~'))
        return KEEL_ERROR(KEEL_CORRUPT, "line %u: expected %s, found a byte 0x%02x", r->lexer.line,
                          expected, (unsigned char)token->text[0]);
    int length = token->length < 40 ? (int)token->length : 40;
    return KEEL_ERROR(KEEL_CORRUPT, "line %u: expected %s, found '%.*s'", r->lexer.line, expected,
                      length, token->text);
}

static keel_status_t expect(ptx_reader_t *r, const char *mark)
{
    if (!ptx_is(&r->lexer, mark)) return syntax_error(r, mark);
    ptx_next(&r->lexer);
    return NULL;
}

static keel_status_t number_read(ptx_reader_t *r, uint64_t most, uint64_t *value)
{
    *value = 0;
    if (!ptx_integer(&r->lexer, value) || *value > most)
        return syntax_error(r, "a whole number of reasonable size");
    ptx_next(&r->lexer);
    return NULL;
}

static bool at_end(const ptx_reader_t *r)
{
    return r->lexer.token.kind == PTX_END || r->lexer.token.kind == PTX_BROKEN;
}

// From a '{' to behind the '}' that belongs to it.
static keel_status_t block_pass(ptx_reader_t *r)
{
    uint64_t depth = 0;
    do {
        if (at_end(r)) return syntax_error(r, "the end of a block, '}'");
        if (ptx_is(&r->lexer, "{")) depth++;
        if (ptx_is(&r->lexer, "}")) depth--;
        ptx_next(&r->lexer);
    } while (depth);
    return NULL;
}

// To behind the next ';' that is not in a block.
static keel_status_t statement_pass(ptx_reader_t *r)
{
    while (!ptx_is(&r->lexer, ";")) {
        if (at_end(r)) return syntax_error(r, "the end of a statement, ';'");
        if (ptx_is(&r->lexer, "{"))
            KEEL_TRY(block_pass(r));
        else
            ptx_next(&r->lexer);
    }
    ptx_next(&r->lexer);
    return NULL;
}

static bool type_find(const ptx_lexer_t *lexer, ptx_type_t *type)
{
    static const ptx_type_t types[] = {
        {".b8", 1, 1, KEEL_PARAM_VALUE},       {".u8", 1, 1, KEEL_PARAM_VALUE},
        {".s8", 1, 1, KEEL_PARAM_VALUE},       {".b16", 2, 2, KEEL_PARAM_VALUE},
        {".u16", 2, 2, KEEL_PARAM_VALUE},      {".s16", 2, 2, KEEL_PARAM_VALUE},
        {".f16", 2, 2, KEEL_PARAM_VALUE},      {".bf16", 2, 2, KEEL_PARAM_VALUE},
        {".b32", 4, 4, KEEL_PARAM_VALUE},      {".u32", 4, 4, KEEL_PARAM_VALUE},
        {".s32", 4, 4, KEEL_PARAM_VALUE},      {".f32", 4, 4, KEEL_PARAM_VALUE},
        {".f16x2", 4, 4, KEEL_PARAM_VALUE},    {".bf16x2", 4, 4, KEEL_PARAM_VALUE},
        {".tf32", 4, 4, KEEL_PARAM_VALUE},     {".b64", 8, 8, KEEL_PARAM_UNSAID},
        {".u64", 8, 8, KEEL_PARAM_UNSAID},     {".s64", 8, 8, KEEL_PARAM_UNSAID},
        {".f64", 8, 8, KEEL_PARAM_VALUE},      {".b128", 16, 16, KEEL_PARAM_VALUE},
        {".texref", 8, 8, KEEL_PARAM_OPAQUE},  {".samplerref", 8, 8, KEEL_PARAM_OPAQUE},
        {".surfref", 8, 8, KEEL_PARAM_OPAQUE},
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (!ptx_is(lexer, types[i].name)) continue;
        *type = types[i];
        return true;
    }
    return false;
}

// A vector's elements lie together and are aligned as a whole.
static uint64_t vector_find(const ptx_lexer_t *lexer)
{
    return ptx_is(lexer, ".v2") ? 2 : ptx_is(lexer, ".v4") ? 4 : ptx_is(lexer, ".v8") ? 8 : 0;
}

// The directives before a name: type, alignment, vector, what a pointer points to. Others say
// nothing about the layout.
static keel_status_t type_read(ptx_reader_t *r, ptx_type_t *type)
{
    *type = (ptx_type_t){0};
    uint64_t align = 0, vector = 1;
    keel_param_kind_t kind = KEEL_PARAM_UNSAID;
    while (r->lexer.token.kind == PTX_DIRECTIVE) {
        // What follows .ptr is about the memory behind the pointer.
        bool pointer = kind == KEEL_PARAM_POINTER || kind == KEEL_PARAM_LOCAL;
        uint64_t wide = vector_find(&r->lexer);
        if (ptx_is(&r->lexer, ".align")) {
            uint64_t value;
            ptx_next(&r->lexer);
            KEEL_TRY(number_read(r, ALIGN_MAX, &value));
            if (!value || (value & (value - 1)))
                return syntax_error(r, "an alignment that is a power of two before");
            if (!pointer) align = value;
            continue;
        }
        if (wide) vector = wide;
        if (ptx_is(&r->lexer, ".ptr")) kind = KEEL_PARAM_POINTER;
        if (pointer && ptx_is(&r->lexer, ".shared")) kind = KEEL_PARAM_LOCAL;
        if (!wide) type_find(&r->lexer, type);
        ptx_next(&r->lexer);
    }
    if (!type->name) return syntax_error(r, "a type");
    type->size *= vector;
    type->align = align ? align : type->align * vector;
    if (kind != KEEL_PARAM_UNSAID) type->kind = kind;
    return NULL;
}

// Array bounds behind a name; [] counts as none and gives a size of 0.
static keel_status_t bounds_read(ptx_reader_t *r, uint64_t *size)
{
    while (ptx_is(&r->lexer, "[")) {
        uint64_t bound = 0;
        ptx_next(&r->lexer);
        if (!ptx_is(&r->lexer, "]")) KEEL_TRY(number_read(r, UINT32_MAX, &bound));
        KEEL_TRY(expect(r, "]"));
        if (bound && *size > UINT32_MAX / bound)
            return syntax_error(r, "an array of less than 4 GiB before");
        *size *= bound;
    }
    return NULL;
}

static keel_status_t name_read(ptx_reader_t *r, ptx_token_t *name)
{
    *name = r->lexer.token;
    if (name->kind != PTX_NAME) return syntax_error(r, "a name");
    ptx_next(&r->lexer);
    return NULL;
}

static bool place(uint64_t *end, uint64_t size, uint64_t align, uint64_t most)
{
    uint64_t offset = (*end + align - 1) & ~(align - 1);
    if (offset > most || size > most - offset) return false;
    *end = offset + size;
    return true;
}

static keel_status_t param_read(ptx_reader_t *r, keel_image_entry_info_t *entry)
{
    KEEL_TRY(expect(r, ".param"));
    ptx_type_t type;
    ptx_token_t name;
    KEEL_TRY(type_read(r, &type));
    KEEL_TRY(name_read(r, &name));
    bool array = ptx_is(&r->lexer, "[");
    KEEL_TRY(bounds_read(r, &type.size));
    uint64_t end = entry->param_size;
    if (!type.size || !place(&end, type.size, type.align, BLOCK_MAX))
        return syntax_error(r, "parameters of 1 byte to 1 MiB before");
    keel_image_param_t *param;
    KEEL_TRY(image_add_param(r->info, entry, &param));
    param->kind = array ? KEEL_PARAM_VALUE : type.kind;
    param->offset = (uint32_t)(end - type.size);
    param->size = (uint32_t)type.size;
    param->align = (uint32_t)type.align;
    entry->param_size = (uint32_t)end;
    KEEL_TRY(image_text(r->info, name.text, name.length, &param->name));
    return image_format(r->info, &param->type, array ? "%s[]" : "%s", type.name);
}

static keel_status_t params_read(ptx_reader_t *r, keel_image_entry_info_t *entry)
{
    ptx_next(&r->lexer);
    if (!ptx_is(&r->lexer, ")")) {
        KEEL_TRY(param_read(r, entry));
        while (ptx_is(&r->lexer, ",")) {
            ptx_next(&r->lexer);
            KEEL_TRY(param_read(r, entry));
        }
    }
    return expect(r, ")");
}

// One to three numbers; those left out are 1.
static keel_status_t extent_read(ptx_reader_t *r, uint32_t extent[3])
{
    for (int i = 0; i < 3; i++) extent[i] = 1;
    for (int i = 0; i < 3; i++) {
        uint64_t value;
        ptx_next(&r->lexer);
        KEEL_TRY(number_read(r, 1 << 20, &value));
        if (!value) return syntax_error(r, "a size that is not 0 before");
        extent[i] = (uint32_t)value;
        if (!ptx_is(&r->lexer, ",")) break;
    }
    return NULL;
}

// What stands between parameters and body; only the sizes of groups are of interest.
static keel_status_t tuning_read(ptx_reader_t *r, keel_image_entry_info_t *entry)
{
    while (!ptx_is(&r->lexer, "{") && !ptx_is(&r->lexer, ";")) {
        if (at_end(r)) return syntax_error(r, "the body of an entry");
        if (ptx_is(&r->lexer, ".reqntid")) {
            KEEL_TRY(extent_read(r, entry->group_size));
        } else if (ptx_is(&r->lexer, ".maxntid")) {
            uint32_t most[3];
            KEEL_TRY(extent_read(r, most));
            uint64_t product = (uint64_t)most[0] * most[1];
            if (product > (1 << 30) / most[2]) return syntax_error(r, "a smaller group before");
            entry->max_group_size = (uint32_t)(product * most[2]);
        } else if (ptx_is(&r->lexer, ".pragma")) {
            KEEL_TRY(statement_pass(r));
        } else {
            ptx_next(&r->lexer);
        }
    }
    return NULL;
}

static keel_status_t entry_read(ptx_reader_t *r)
{
    ptx_next(&r->lexer);
    ptx_token_t name;
    KEEL_TRY(name_read(r, &name));
    uint32_t index = r->info->entry_count;
    keel_image_entry_info_t *entry;
    KEEL_TRY(image_add_entry(r->info, &entry));
    KEEL_TRY(image_text(r->info, name.text, name.length, &entry->name));
    entry->wave_size = 32;
    if (ptx_is(&r->lexer, "(")) KEEL_TRY(params_read(r, entry));
    KEEL_TRY(tuning_read(r, entry));
    if (ptx_is(&r->lexer, ";")) { // a declaration; the entry comes later, or not at all
        r->info->entry_count = index;
        ptx_next(&r->lexer);
        return NULL;
    }
    void *bodies = r->bodies;
    KEEL_TRY(image_grow(r->info, &bodies, index, sizeof *r->bodies));
    r->bodies = bodies;
    const char *text = r->lexer.token.text;
    uint32_t line = r->lexer.line;
    KEEL_TRY(block_pass(r));
    r->bodies[index] = (body_t){text, (size_t)(r->lexer.token.text - text), line};
    return NULL;
}

static keel_status_t function_pass(ptx_reader_t *r)
{
    while (!ptx_is(&r->lexer, "{") && !ptx_is(&r->lexer, ";")) {
        if (at_end(r)) return syntax_error(r, "the body of a function");
        ptx_next(&r->lexer);
    }
    if (ptx_is(&r->lexer, "{")) return block_pass(r);
    ptx_next(&r->lexer);
    return NULL;
}

// The names of a declaration of workgroup memory, whose type is read. `entry` is where its size is
// added to; NULL for a variable of the module, which is kept.
static keel_status_t shared_read(ptx_reader_t *r, keel_image_entry_info_t *entry)
{
    ptx_type_t type;
    ptx_next(&r->lexer);
    KEEL_TRY(type_read(r, &type));
    do {
        if (ptx_is(&r->lexer, ",")) ptx_next(&r->lexer);
        ptx_token_t name;
        uint64_t size = type.size;
        KEEL_TRY(name_read(r, &name));
        KEEL_TRY(bounds_read(r, &size));
        if (entry) {
            uint64_t end = entry->local_memory;
            if (!place(&end, size, type.align, UINT32_MAX))
                return syntax_error(r, "less than 4 GiB of workgroup memory before");
            entry->local_memory = (uint32_t)end;
            continue;
        }
        void *array = r->shared;
        KEEL_TRY(image_grow(r->info, &array, r->shared_count, sizeof *r->shared));
        r->shared = array;
        r->shared[r->shared_count++] = (shared_t){name.text, name.length, size, type.align, 0};
    } while (ptx_is(&r->lexer, ","));
    return statement_pass(r);
}

static keel_status_t header_read(ptx_reader_t *r)
{
    if (!ptx_is(&r->lexer, ".version")) return syntax_error(r, ".version");
    ptx_next(&r->lexer);
    if (r->lexer.token.kind != PTX_NUMBER) return syntax_error(r, "a version");
    KEEL_TRY(image_text(r->info, r->lexer.token.text, r->lexer.token.length, &r->info->version));
    ptx_next(&r->lexer);
    KEEL_TRY(expect(r, ".target"));
    ptx_token_t name;
    KEEL_TRY(name_read(r, &name));
    if (name.length > 32) return syntax_error(r, "a shorter name of an architecture before");
    KEEL_TRY(image_format(r->info, &r->info->target, "nvptx:%.*s", (int)name.length, name.text));
    while (ptx_is(&r->lexer, ",")) {
        ptx_next(&r->lexer);
        KEEL_TRY(name_read(r, &name));
    }
    return NULL;
}

// The name of a section may have dots: .section .debug_info { ... }
static keel_status_t section_pass(ptx_reader_t *r)
{
    while (!ptx_is(&r->lexer, "{")) {
        if (at_end(r)) return syntax_error(r, "the contents of a section");
        ptx_next(&r->lexer);
    }
    return block_pass(r);
}

// .file NUMBER "NAME" [, NUMBER, NUMBER], with no mark at its end.
static void file_pass(ptx_reader_t *r)
{
    do ptx_next(&r->lexer);
    while (r->lexer.token.kind == PTX_NUMBER || r->lexer.token.kind == PTX_STRING ||
           ptx_is(&r->lexer, ","));
}

static bool is_one_of(const ptx_lexer_t *lexer, const char *const *words)
{
    while (*words)
        if (ptx_is(lexer, *words++)) return true;
    return false;
}

static keel_status_t directive_read(ptx_reader_t *r)
{
    static const char *const linkage[] = {".visible", ".extern", ".weak", ".common", NULL};
    static const char *const statements[] = {".global",  ".const",  ".tex",           ".surf",
                                             ".sampler", ".pragma", ".alias",         ".param",
                                             ".local",   ".reg",    ".branchtargets", NULL};
    ptx_lexer_t *lexer = &r->lexer;
    if (ptx_is(lexer, ".entry")) return entry_read(r);
    if (ptx_is(lexer, ".func")) return function_pass(r);
    if (ptx_is(lexer, ".shared")) return shared_read(r, NULL);
    if (ptx_is(lexer, ".section")) return section_pass(r);
    if (is_one_of(lexer, statements)) return statement_pass(r);
    if (ptx_is(lexer, ".file")) {
        file_pass(r);
        return NULL;
    }
    if (ptx_is(lexer, ".address_size")) {
        uint64_t bits;
        ptx_next(lexer);
        KEEL_TRY(number_read(r, 64, &bits));
        if (bits == 64) return NULL;
        return KEEL_ERROR(KEEL_UNSUPPORTED, "line %u: its addresses have %llu bits; 64 are taken",
                          lexer->line, (unsigned long long)bits);
    }
    if (is_one_of(lexer, linkage) || ptx_is(lexer, ";")) {
        ptx_next(lexer);
        return NULL;
    }
    return syntax_error(r, "a directive of a module");
}

static int shared_compare(const void *a, const void *b)
{
    const shared_t *x = a, *y = b;
    size_t shorter = x->length < y->length ? x->length : y->length;
    int order = memcmp(x->name, y->name, shorter);
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

// Counts the workgroup memory that a body declares and names.
static keel_status_t body_read(ptx_reader_t *r, uint32_t index)
{
    keel_image_entry_info_t *entry = &r->info->entries[index];
    const body_t *body = &r->bodies[index];
    ptx_lexer_init(&r->lexer, body->text, body->size);
    r->lexer.line = body->line;
    ptx_next(&r->lexer);
    bool begins = false; // a statement
    while (!at_end(r)) {
        const ptx_token_t *token = &r->lexer.token;
        if (begins && ptx_is(&r->lexer, ".shared")) {
            KEEL_TRY(shared_read(r, entry));
            continue;
        }
        begins = token->kind == PTX_MARK && strchr("{};:", token->text[0]);
        shared_t key = {.name = token->text, .length = token->length};
        shared_t *found =
            token->kind == PTX_NAME && r->shared_count
                ? bsearch(&key, r->shared, r->shared_count, sizeof key, shared_compare)
                : NULL;
        if (found && found->user != index + 1) {
            found->user = index + 1;
            uint64_t end = entry->local_memory;
            if (!place(&end, found->size, found->align, UINT32_MAX))
                return syntax_error(r, "less than 4 GiB of workgroup memory before");
            entry->local_memory = (uint32_t)end;
        }
        ptx_next(&r->lexer);
    }
    return NULL;
}

static keel_status_t module_read(ptx_reader_t *r)
{
    KEEL_TRY(header_read(r));
    while (r->lexer.token.kind != PTX_END) KEEL_TRY(directive_read(r));
    if (r->shared_count) qsort(r->shared, r->shared_count, sizeof *r->shared, shared_compare);
    for (uint32_t i = 0; i < r->info->entry_count; i++) KEEL_TRY(body_read(r, i));
    return NULL;
}

bool ptx_recognise(const char *text, size_t size)
{
    ptx_lexer_t lexer;
    ptx_lexer_init(&lexer, text, size < GLANCE ? size : GLANCE);
    ptx_next(&lexer);
    return ptx_is(&lexer, ".version");
}

keel_status_t ptx_read(const void *data, size_t size, image_info_t *info)
{
    ptx_reader_t reader = {.info = info};
    KEEL_TRY(image_begin(info, KEEL_IMAGE_PTX, size));
    ptx_lexer_init(&reader.lexer, data, size);
    ptx_next(&reader.lexer);
    return image_end(info, module_read(&reader));
}
