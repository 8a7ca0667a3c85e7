// SPDX-License-Identifier: Apache-2.0
// Types: how they are written, and how they lie in memory.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cc/msl/reader.h"

const ir_type_t *type_of(ir_reader_t *r, ir_kind_t kind, uint32_t bits)
{
    ir_type_t *type = arena_new(&r->module->arena, sizeof *type);
    *type = (ir_type_t){.kind = kind, .bits = bits};
    return type;
}

ir_type_t *type_named(ir_reader_t *r, const char *name)
{
    ir_module_t *m = r->module;
    for (uint32_t i = 0; i < m->type_count; i++)
        if (!strcmp(m->types[i]->name, name)) return m->types[i];
    ir_type_t *type = arena_new(&m->arena, sizeof *type);
    *type = (ir_type_t){.kind = IR_OTHER, .name = name};
    m->types = arena_grow(&m->arena, m->types, m->type_count);
    m->types[m->type_count++] = type;
    return type;
}

static const ir_type_t *read_pointer(ir_reader_t *r)
{
    uint32_t space = 0;
    if (ir_reader_take(r, "addrspace")) {
        ir_reader_expect(r, "(");
        space = (uint32_t)ir_reader_number(r);
        ir_reader_expect(r, ")");
    }
    return type_of(r, IR_PTR, space);
}

static const ir_type_t *read_array(ir_reader_t *r, const char *close, ir_kind_t kind)
{
    uint64_t count = ir_reader_number(r);
    ir_reader_expect(r, "x");
    ir_type_t *type = arena_new(&r->module->arena, sizeof *type);
    *type = (ir_type_t){.kind = kind, .count = count, .element = read_type(r)};
    ir_reader_expect(r, close);
    return type;
}

static const ir_type_t *read_struct(ir_reader_t *r, bool packed)
{
    arena_t *arena = &r->module->arena;
    ir_type_t *type = arena_new(arena, sizeof *type);
    *type = (ir_type_t){.kind = IR_STRUCT, .packed = packed};
    while (!ir_reader_is(r, "}") && !r->status) {
        type->fields = arena_grow(arena, (void *)type->fields, type->count);
        type->fields[type->count++] = read_type(r);
        if (!ir_reader_take(r, ",")) break;
    }
    ir_reader_expect(r, "}");
    if (packed) ir_reader_expect(r, ">");
    return type;
}

static const ir_type_t *read_simple(ir_reader_t *r)
{
    static const struct {
        const char *name;
        ir_kind_t kind;
    } rows[] = {{"void", IR_VOID}, {"half", IR_HALF}, {"float", IR_FLOAT}, {"double", IR_DOUBLE}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (ir_reader_take(r, rows[i].name)) return type_of(r, rows[i].kind, 0);
    if (r->token.kind != TOKEN_WORD) ir_reader_stray(r, "a type is expected");
    bool integer = r->token.text[0] == 'i' && isdigit((unsigned char)r->token.text[1]);
    uint32_t bits = integer ? (uint32_t)atoi(r->token.text + 1) : 0;
    ir_reader_next(r);
    return type_of(r, integer ? IR_INT : IR_OTHER, bits);
}

const ir_type_t *read_type(ir_reader_t *r)
{
    if (r->token.kind == TOKEN_LOCAL) return type_named(r, ir_reader_name(r));
    if (ir_reader_take(r, "ptr")) return read_pointer(r);
    if (ir_reader_take(r, "[")) return read_array(r, "]", IR_ARRAY);
    if (ir_reader_take(r, "{")) return read_struct(r, false);
    if (!ir_reader_take(r, "<")) return read_simple(r);
    if (ir_reader_take(r, "{")) return read_struct(r, true);
    return read_array(r, ">", IR_OTHER);
}

static uint64_t round_up(uint64_t size, uint64_t align)
{
    return (size + align - 1) / align * align;
}

uint64_t ir_align(const ir_type_t *type)
{
    uint64_t most = 1;
    switch (type->kind) {
    case IR_INT:
        while (most * 8 < type->bits && most < 8) most *= 2;
        return most;
    case IR_HALF: return 2;
    case IR_FLOAT: return 4;
    case IR_DOUBLE:
    case IR_PTR: return 8;
    case IR_ARRAY: return ir_align(type->element);
    case IR_STRUCT:
        for (uint64_t i = 0; i < type->count && !type->packed; i++)
            if (ir_align(type->fields[i]) > most) most = ir_align(type->fields[i]);
        return most;
    default: return 1;
    }
}

uint64_t ir_offset(const ir_type_t *type, uint64_t field)
{
    uint64_t at = 0;
    for (uint64_t i = 0; i < field; i++) {
        if (!type->packed) at = round_up(at, ir_align(type->fields[i]));
        at += ir_size(type->fields[i]);
    }
    return type->packed || field == type->count ? at : round_up(at, ir_align(type->fields[field]));
}

uint64_t ir_size(const ir_type_t *type)
{
    if (type->kind == IR_ARRAY) return type->count * ir_size(type->element);
    if (type->kind == IR_STRUCT) return round_up(ir_offset(type, type->count), ir_align(type));
    if (type->kind == IR_INT) return round_up((type->bits + 7) / 8, ir_align(type));
    return type->kind == IR_VOID || type->kind == IR_OTHER ? 0 : ir_align(type);
}
