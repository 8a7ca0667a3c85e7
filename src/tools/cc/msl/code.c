// SPDX-License-Identifier: Apache-2.0
// Types, values and places as MSL.
#include "tools/cc/msl/code.h"

#include <stdio.h>
#include <string.h>

void code_fail(code_t *code, keel_status_t status)
{
    if (code->status)
        keel_status_release(status);
    else
        code->status = status;
}

const char *type_text(code_t *code, const ir_type_t *type)
{
    switch (type->kind) {
    case IR_INT:
        if (type->bits > 64) break;
        return type->bits == 1    ? "bool"
               : type->bits <= 8  ? "uchar"
               : type->bits <= 16 ? "ushort"
               : type->bits <= 32 ? "uint"
                                  : "ulong";
    case IR_HALF: return "half";
    case IR_FLOAT: return "float";
    case IR_DOUBLE: code->uses_doubles = true; return "ulong";
    case IR_PTR: return "ulong";
    default: break;
    }
    code_fail(code, KEEL_ERROR(KEEL_UNSUPPORTED,
                               "it has a value of a type that Metal has not: "
                               "%s",
                               type->kind == IR_INT     ? "an integer of more than 64 bits"
                               : type->kind == IR_OTHER ? "a vector, or a long double"
                                                        : "a struct or an array"));
    return "uint";
}

const char *place_name(place_t place)
{
    static const char *const names[] = {"device",   "device", "threadgroup",
                                        "constant", "thread", "device"};
    return names[place];
}

static place_t variable_place(const ir_variable_t *variable)
{
    if (variable->space == 3) return PLACE_GROUP;
    return variable->constant ? PLACE_CONSTANT : PLACE_DEVICE;
}

place_t place_of(const ir_value_t *value)
{
    switch (value->kind) {
    case IR_LOCAL: return (place_t)value->place;
    case IR_VARIABLE: return variable_place(value->variable);
    case IR_COMPUTED:
        return value->inst->op == IR_OP_inttoptr ? PLACE_DEVICE
                                                 : place_of(value->inst->operands[0]);
    default: return PLACE_UNKNOWN;
    }
}

static place_t place_join(place_t a, place_t b)
{
    if (a == PLACE_UNKNOWN || a == b) return b;
    return b == PLACE_UNKNOWN ? a : PLACE_MIXED;
}

// Where the pointer points that an instruction makes, as far as is known.
static place_t place_made(const ir_inst_t *inst)
{
    place_t place = PLACE_UNKNOWN;
    switch (inst->op) {
    case IR_OP_alloca: return PLACE_THREAD;
    case IR_OP_getelementptr:
    case IR_OP_addrspacecast:
    case IR_OP_bitcast:
    case IR_OP_freeze: return place_of(inst->operands[0]);
    case IR_OP_select: return place_join(place_of(inst->operands[1]), place_of(inst->operands[2]));
    case IR_OP_phi:
        for (uint32_t i = 0; i < inst->operand_count; i++)
            place = place_join(place, place_of(inst->operands[i]));
        return place;
    default: return inst->type->bits == 3 ? PLACE_GROUP : PLACE_DEVICE;
    }
}

void places_find(code_t *code)
{
    ir_function_t *f = code->function;
    for (uint32_t i = 0; i < f->param_count; i++) f->params[i]->place = PLACE_CONSTANT;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = 0; b < f->block_count; b++) {
            for (uint32_t i = 0; i < f->blocks[b]->count; i++) {
                const ir_inst_t *inst = f->blocks[b]->insts[i];
                if (!inst->made || inst->made->type->kind != IR_PTR) continue;
                place_t place = place_made(inst);
                changed |= inst->made->place != (int)place;
                inst->made->place = place;
            }
        }
    }
}

// The digits of a number have no point if it is 1, and 1f is no number.
static const char *float_fixed(code_t *code, const char *digits)
{
    return PRINT(code, "%s%sf", digits, strpbrk(digits, ".e") ? "" : ".0");
}

static const char *number_text(code_t *code, const ir_value_t *value)
{
    unsigned long long bits = value->number;
    float number;
    uint32_t word = (uint32_t)bits;
    memcpy(&number, &word, sizeof number);
    switch (value->type->kind) {
    case IR_INT:
        if (value->type->bits == 1) return bits ? "true" : "false";
        if (value->type->bits > 32) return PRINT(code, "%lluul", bits);
        return PRINT(code, "%lluu", bits);
    case IR_HALF: return PRINT(code, "as_type<half>(ushort(%lluu))", bits);
    case IR_FLOAT:
        if (number - number == 0 && (word << 1 == 0 || (word >> 23 & 255)))
            return float_fixed(code, PRINT(code, "%.9g", (double)number));
        return PRINT(code, "as_type<float>(%uu)", word);
    default: return PRINT(code, "%lluul", bits); // of a double
    }
}

const char *value_text(code_t *code, const ir_value_t *value)
{
    if (value->type->kind == IR_PTR) return PRINT(code, "(ulong)%s", pointer_text(code, value));
    switch (value->kind) {
    case IR_LOCAL: return PRINT(code, "v%s", value->name);
    case IR_NUMBER: return number_text(code, value);
    case IR_NOTHING: return PRINT(code, "%s(0)", type_text(code, value->type));
    case IR_COMPUTED: return code->inst_text(code, value->inst);
    default:
        code_fail(code, KEEL_ERROR(KEEL_UNSUPPORTED, "it takes the address of a function"));
        return "0";
    }
}

const char *signed_text(code_t *code, const ir_value_t *value)
{
    uint32_t bits = value->type->bits;
    const char *text = value_text(code, value);
    if (bits == 1) return PRINT(code, "(%s ? -1 : 0)", text);
    if (bits == 8 || bits == 16)
        return PRINT(code, "int(%s(%s))", bits == 8 ? "char" : "short", text);
    if (bits == 32) return PRINT(code, "int(%s)", text);
    if (bits == 64) return PRINT(code, "long(%s)", text);
    uint32_t unused = (bits < 32 ? 32 : 64) - bits; // the sign goes to the top and comes back
    const char *wide = bits < 32 ? "int" : "long";
    return PRINT(code, "(%s(u%s(%s) << %u) >> %u)", wide, wide, text, unused, unused);
}

bool type_is_odd(const ir_type_t *type)
{
    uint32_t bits = type->bits;
    return type->kind == IR_INT && bits != 1 && bits != 8 && bits != 16 && bits != 32 && bits != 64;
}

const char *fitted_text(code_t *code, const ir_type_t *type, const char *text)
{
    const char *name = type_text(code, type);
    if (!type_is_odd(type)) return PRINT(code, "%s(%s)", name, text);
    return PRINT(code, "%s((%s) & %lluul)", name, text, (1ull << type->bits) - 1);
}

static const char *variable_text(code_t *code, ir_variable_t *variable)
{
    variable->used = true;
    if (variable->space == 3) return PRINT(code, "(threadgroup uchar *)%s", variable->name);
    if (variable->constant) return PRINT(code, "(constant uchar *)keel_table_%s", variable->name);
    if (!variable->defined)
        code_fail(code, KEEL_ERROR(KEEL_UNSUPPORTED, "nothing defines '%s'", variable->name));
    return PRINT(code, "(keel_variables + %llu)", (unsigned long long)variable->offset);
}

const char *pointer_text(code_t *code, const ir_value_t *value)
{
    switch (value->kind) {
    case IR_LOCAL: return PRINT(code, "v%s", value->name);
    case IR_NOTHING: return PRINT(code, "(%s uchar *)0", place_name(place_of(value)));
    case IR_VARIABLE: return variable_text(code, value->variable);
    case IR_COMPUTED: return code->inst_text(code, value->inst);
    default: return value_text(code, value);
    }
}

const char *pointer_to(code_t *code, const ir_value_t *value, const char *type)
{
    place_t place = place_of(value);
    if (place == PLACE_MIXED)
        code_fail(code, KEEL_ERROR(KEEL_UNSUPPORTED,
                                   "a pointer points now into one kind of memory, now into "
                                   "another, and Metal must know which"));
    return PRINT(code, "(%s %s *)(%s)", place_name(place), type, pointer_text(code, value));
}
