// SPDX-License-Identifier: Apache-2.0
// Values: locals, constants, addresses of variables, and what is computed of constants.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cc/msl/reader.h"

static ir_value_t *value_new(ir_reader_t *r, ir_value_kind_t kind, const ir_type_t *type)
{
    ir_value_t *value = arena_new(&r->module->arena, sizeof *value);
    *value = (ir_value_t){.kind = kind, .type = type};
    return value;
}

// The table is searched from where the name's hash says.
static ir_value_t **local_place(ir_function_t *f, const char *name)
{
    uint32_t hash = 2166136261u;
    for (const char *c = name; *c; c++) hash = (hash ^ (unsigned char)*c) * 16777619u;
    for (uint32_t i = hash % f->local_capacity;; i = (i + 1) % f->local_capacity)
        if (!f->locals[i] || !strcmp(f->locals[i]->name, name)) return &f->locals[i];
}

static void locals_grow(ir_reader_t *r, ir_function_t *f)
{
    uint32_t capacity = f->local_capacity;
    ir_value_t **locals = f->locals;
    f->local_capacity = capacity ? capacity * 4 : 256;
    f->locals = arena_new(&r->module->arena, f->local_capacity * sizeof(void *));
    for (uint32_t i = 0; i < capacity; i++)
        if (locals[i]) *local_place(f, locals[i]->name) = locals[i];
}

ir_value_t *local_named(ir_reader_t *r, const char *name)
{
    ir_function_t *f = r->function;
    if (f->local_count * 2 >= f->local_capacity) locals_grow(r, f);
    ir_value_t **place = local_place(f, name);
    if (!*place) {
        *place = value_new(r, IR_LOCAL, NULL);
        (*place)->name = name;
        f->local_count++;
    }
    return *place;
}

ir_variable_t *variable_named(ir_reader_t *r, const char *name)
{
    ir_module_t *m = r->module;
    for (uint32_t i = 0; i < m->variable_count; i++)
        if (!strcmp(m->variables[i]->name, name)) return m->variables[i];
    ir_variable_t *variable = arena_new(&m->arena, sizeof *variable);
    variable->name = name;
    variable->section = "";
    m->variables = arena_grow(&m->arena, m->variables, m->variable_count);
    m->variables[m->variable_count++] = variable;
    return variable;
}

void inst_operand(ir_reader_t *r, ir_inst_t *inst, ir_value_t *value)
{
    inst->operands = arena_grow(&r->module->arena, inst->operands, inst->operand_count);
    inst->operands[inst->operand_count++] = value;
}

static ir_value_t *read_list(ir_reader_t *r, const ir_type_t *type, const char *close)
{
    ir_value_t *value = value_new(r, IR_LIST, type);
    uint64_t count = 0;
    while (!ir_reader_is(r, close) && !r->status) {
        value->items = arena_grow(&r->module->arena, value->items, count);
        value->items[count++] = read_typed(r);
        if (!ir_reader_take(r, ",")) break;
    }
    ir_reader_expect(r, close);
    if (count != type->count) ir_reader_stray(r, "a constant of another length is expected");
    return value;
}

static ir_value_t *read_bytes(ir_reader_t *r, const ir_type_t *type)
{
    ir_value_t *value = value_new(r, IR_BYTES, type);
    char *bytes = arena_new(&r->module->arena, type->count + 1);
    const char *from = r->token.text, *end = from + r->token.length;
    for (uint64_t i = 0; i < type->count && from < end; i++) {
        bytes[i] = *from++;
        if (bytes[i] != '\\') continue;
        char digits[3] = {from[0], from[1], 0};
        bytes[i] = (char)strtoul(digits, NULL, 16);
        from += 2;
    }
    value->name = bytes;
    ir_reader_next(r);
    return value;
}

// A number with a point: decimal, or the bits of a double, or after 0xH those of a half.
static uint64_t float_bits(const ir_type_t *type, const char *text)
{
    if (text[0] == '0' && text[1] == 'x' && text[2] == 'H') return strtoull(text + 3, NULL, 16);
    uint64_t bits = 0;
    double number = strtod(text, NULL);
    if (text[0] == '0' && text[1] == 'x') {
        bits = strtoull(text, NULL, 16);
        memcpy(&number, &bits, sizeof number);
    }
    memcpy(&bits, &number, sizeof bits);
    if (type->kind != IR_FLOAT) return bits;
    float narrow = (float)number;
    uint32_t word;
    memcpy(&word, &narrow, sizeof word);
    return word;
}

static ir_value_t *read_number(ir_reader_t *r, const ir_type_t *type)
{
    ir_value_t *value = value_new(r, IR_NUMBER, type);
    char *text = arena_copy(&r->module->arena, r->token.text, r->token.length);
    if (type->kind != IR_INT)
        value->number = float_bits(type, text);
    else if (!strcmp(text, "true"))
        value->number = 1;
    else if (strcmp(text, "false") != 0)
        value->number = *text == '-' ? (uint64_t)strtoll(text, NULL, 10) : strtoull(text, NULL, 10);
    if (type->kind == IR_INT && type->bits < 64) value->number &= (UINT64_C(1) << type->bits) - 1;
    ir_reader_next(r);
    return value;
}

void read_steps(ir_reader_t *r, ir_inst_t *inst)
{
    ir_reader_skip_flags(r);
    bool grouped = ir_reader_take(r, "(");
    inst->type = read_type(r);
    while (ir_reader_take(r, ",")) {
        if (ir_reader_is(r, "!")) break;
        inst_operand(r, inst, read_typed(r));
    }
    if (grouped) ir_reader_expect(r, ")");
}

void read_conversion(ir_reader_t *r, ir_inst_t *inst)
{
    ir_reader_skip_flags(r);
    bool grouped = ir_reader_take(r, "(");
    inst_operand(r, inst, read_typed(r));
    ir_reader_expect(r, "to");
    inst->type = read_type(r);
    if (grouped) ir_reader_expect(r, ")");
}

static ir_value_t *read_computed(ir_reader_t *r, const ir_type_t *type, ir_op_t op)
{
    ir_value_t *value = value_new(r, IR_COMPUTED, type);
    ir_inst_t *inst = arena_new(&r->module->arena, sizeof *inst);
    *inst = (ir_inst_t){.op = op, .made = value};
    value->inst = inst;
    ir_reader_next(r);
    if (op == IR_OP_getelementptr) {
        read_steps(r, inst);
    } else if (op >= IR_OP_zext && op <= IR_OP_addrspacecast) {
        read_conversion(r, inst);
    } else {
        ir_reader_skip_flags(r);
        ir_reader_expect(r, "(");
        do inst_operand(r, inst, read_typed(r));
        while (ir_reader_take(r, ","));
        ir_reader_expect(r, ")");
    }
    return value;
}

static ir_value_t *read_global(ir_reader_t *r, const ir_type_t *type)
{
    const char *name = ir_reader_name(r);
    bool variable = false;
    for (uint32_t i = 0; i < r->module->variable_count; i++)
        variable |= !strcmp(r->module->variables[i]->name, name);
    ir_value_t *value = value_new(r, variable ? IR_VARIABLE : IR_NAMED, type);
    value->name = name;
    if (variable) value->variable = variable_named(r, name);
    return value;
}

ir_value_t *read_value(ir_reader_t *r, const ir_type_t *type)
{
    static const char *const nothing[] = {"null", "undef", "poison", "zeroinitializer", "none"};
    if (r->token.kind == TOKEN_LOCAL && r->function) {
        ir_value_t *local = local_named(r, ir_reader_name(r));
        local->type = type;
        return local;
    }
    if (r->token.kind == TOKEN_GLOBAL) return read_global(r, type);
    if (r->token.kind == TOKEN_BYTES) return read_bytes(r, type);
    for (size_t i = 0; i < sizeof nothing / sizeof nothing[0]; i++)
        if (ir_reader_take(r, nothing[i])) return value_new(r, IR_NOTHING, type);
    if (ir_reader_take(r, "[")) return read_list(r, type, "]");
    if (ir_reader_take(r, "{")) return read_list(r, type, "}");
    if (ir_reader_is(r, "<")) {
        ir_reader_next(r);
        if (!ir_reader_take(r, "{")) ir_reader_stray(r, "kernels for Metal have no vectors");
        ir_value_t *value = read_list(r, type, "}");
        ir_reader_expect(r, ">");
        return value;
    }
    ir_op_t op = op_named(&r->token);
    if (op != IR_OP_COUNT) return read_computed(r, type, op);
    if (r->token.kind != TOKEN_WORD) ir_reader_stray(r, "a value is expected");
    return read_number(r, type);
}

// Attributes of arguments stand between the type and the value.
static void skip_attributes(ir_reader_t *r)
{
    static const char *const values[] = {"true",   "false",           "null", "undef",
                                         "poison", "zeroinitializer", "none"};
    while (r->token.kind == TOKEN_WORD && islower((unsigned char)r->token.text[0])) {
        for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
            if (ir_reader_is(r, values[i])) return;
        if (op_named(&r->token) != IR_OP_COUNT) return;
        bool align = ir_reader_is(r, "align");
        ir_reader_next(r);
        if (align && !ir_reader_is(r, "("))
            ir_reader_next(r);
        else if (ir_reader_is(r, "("))
            ir_reader_skip_group(r);
    }
}

ir_value_t *read_typed(ir_reader_t *r)
{
    const ir_type_t *type = read_type(r);
    skip_attributes(r);
    return read_value(r, type);
}

static keel_status_t list_bytes(const ir_value_t *value, unsigned char *to)
{
    const ir_type_t *type = value->type;
    for (uint64_t i = 0; i < type->count; i++) {
        uint64_t at = type->kind == IR_ARRAY ? i * ir_size(type->element) : ir_offset(type, i);
        KEEL_TRY(ir_bytes(value->items[i], to + at));
    }
    return NULL;
}

keel_status_t ir_bytes(const ir_value_t *value, unsigned char *to)
{
    switch (value->kind) {
    case IR_NOTHING: return NULL;
    case IR_NUMBER:
        for (uint64_t i = 0; i < ir_size(value->type) && i < 8; i++)
            to[i] = (unsigned char)(value->number >> 8 * i);
        return NULL;
    case IR_BYTES: memcpy(to, value->name, value->type->count); return NULL;
    case IR_LIST: return list_bytes(value, to);
    default:
        return KEEL_ERROR(KEEL_UNSUPPORTED,
                          "a variable begins with an address, which Metal does not know before it "
                          "runs");
    }
}
