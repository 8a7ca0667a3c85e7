// SPDX-License-Identifier: Apache-2.0
// Instructions as MSL.
#include <string.h>

#include "tools/cc/msl/code.h"

static const char *symbol_of(ir_op_t op)
{
    switch (op) {
    case IR_OP_add:
    case IR_OP_fadd: return "+";
    case IR_OP_sub:
    case IR_OP_fsub: return "-";
    case IR_OP_mul:
    case IR_OP_fmul: return "*";
    case IR_OP_udiv:
    case IR_OP_sdiv:
    case IR_OP_fdiv: return "/";
    case IR_OP_urem:
    case IR_OP_srem: return "%";
    case IR_OP_shl: return "<<";
    case IR_OP_lshr:
    case IR_OP_ashr: return ">>";
    case IR_OP_and: return "&";
    case IR_OP_or: return "|";
    default: return "^";
    }
}

// Small integers become int in arithmetic, where a product may not fit: so they are made unsigned.
static const char *integer_text(code_t *code, const ir_inst_t *inst)
{
    const ir_type_t *type = inst->operands[0]->type;
    bool with_sign = inst->op == IR_OP_sdiv || inst->op == IR_OP_srem || inst->op == IR_OP_ashr;
    const char *a, *b = value_text(code, inst->operands[1]);
    if (with_sign) {
        a = signed_text(code, inst->operands[0]);
        if (inst->op != IR_OP_ashr) b = signed_text(code, inst->operands[1]);
    } else {
        a = value_text(code, inst->operands[0]);
        if (type->bits < 32 && type->bits != 1) a = PRINT(code, "uint(%s)", a);
        if (type->bits < 32 && type->bits != 1) b = PRINT(code, "uint(%s)", b);
    }
    return fitted_text(code, type, PRINT(code, "%s %s %s", a, symbol_of(inst->op), b));
}

static const char *float_text(code_t *code, const ir_inst_t *inst)
{
    const char *a = value_text(code, inst->operands[0]);
    if (inst->op == IR_OP_fneg) return PRINT(code, "-(%s)", a);
    const char *b = value_text(code, inst->operands[1]);
    if (inst->op == IR_OP_frem) return PRINT(code, "fmod(%s, %s)", a, b);
    return PRINT(code, "%s %s %s", a, symbol_of(inst->op), b);
}

static const char *icmp_text(code_t *code, const ir_inst_t *inst)
{
    static const struct {
        const char *word, *symbol;
    } rows[] = {{"eq", "=="}, {"ne", "!="}, {"gt", ">"}, {"ge", ">="}, {"lt", "<"}, {"le", "<="}};
    bool with_sign = inst->word[0] == 's';
    const char *word = strlen(inst->word) == 3 ? inst->word + 1 : inst->word, *symbol = "==";
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (!strcmp(rows[i].word, word)) symbol = rows[i].symbol;
    const char *(*text)(code_t *, const ir_value_t *) = with_sign ? signed_text : value_text;
    const char *a = text(code, inst->operands[0]);
    return PRINT(code, "%s %s %s", a, symbol, text(code, inst->operands[1]));
}

// The comparisons that begin with u hold also if a number is none.
static const char *fcmp_text(code_t *code, const ir_inst_t *inst)
{
    static const struct {
        const char *word, *format;
    } rows[] = {
        {"oeq", "A == B"},
        {"ogt", "A > B"},
        {"oge", "A >= B"},
        {"olt", "A < B"},
        {"ole", "A <= B"},
        {"one", "(A < B || A > B)"},
        {"ord", "(A == A && B == B)"},
        {"uno", "(A != A || B != B)"},
        {"ueq", "!(A < B || A > B)"},
        {"ugt", "!(A <= B)"},
        {"uge", "!(A < B)"},
        {"ult", "!(A >= B)"},
        {"ule", "!(A > B)"},
        {"une", "A != B"},
        {"true", "true"},
        {"false", "false"},
    };
    const char *a = value_text(code, inst->operands[0]), *b = value_text(code, inst->operands[1]);
    text_t made = {0};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].word, inst->word) != 0) continue;
        for (const char *c = rows[i].format; *c; c++) {
            if (*c == 'A' || *c == 'B')
                text_add(&made, "%s", *c == 'A' ? a : b);
            else
                text_add(&made, "%c", *c);
        }
    }
    const char *text = PRINT(code, "%s", text_of(&made));
    text_finish(&made);
    return text;
}

static const char *select_text(code_t *code, const ir_inst_t *inst)
{
    const char *texts[3] = {value_text(code, inst->operands[0])};
    bool pointers = inst->type->kind == IR_PTR;
    for (int i = 1; i < 3; i++)
        texts[i] = !pointers ? value_text(code, inst->operands[i])
                   : inst->operands[i]->kind == IR_NOTHING
                       ? PRINT(code, "(%s uchar *)0", place_name((place_t)inst->made->place))
                       : pointer_text(code, inst->operands[i]);
    return PRINT(code, "%s ? %s : %s", texts[0], texts[1], texts[2]);
}

static bool is_small(const ir_value_t *value)
{
    return value->kind == IR_NUMBER || value->kind == IR_NOTHING;
}

static const char *step_text(code_t *code, const ir_value_t *step)
{
    const char *text = signed_text(code, step);
    return step->type->bits == 64 ? text : PRINT(code, "long(%s)", text);
}

// A pointer and steps from it, in bytes.
static const char *steps_text(code_t *code, const ir_inst_t *inst)
{
    const ir_type_t *type = inst->type;
    text_t made = {0};
    long long fixed = 0;
    text_add(&made, "(%s", pointer_text(code, inst->operands[0]));
    for (uint32_t i = 1; i < inst->operand_count; i++) {
        const ir_value_t *step = inst->operands[i];
        bool field = i > 1 && type->kind == IR_STRUCT;
        if (i > 1 && !field) type = type->element ? type->element : type;
        uint64_t size = field ? 0 : ir_size(type);
        if (field && step->number < type->count) {
            fixed += (long long)ir_offset(type, step->number);
            type = type->fields[step->number];
        } else if (is_small(step)) {
            uint32_t above = 64 - step->type->bits;
            fixed += ((long long)(step->number << above) >> above) * (long long)size;
        } else if (size == 1) {
            text_add(&made, " + %s", step_text(code, step));
        } else {
            text_add(&made, " + %s * %llu", step_text(code, step), (unsigned long long)size);
        }
    }
    if (fixed) text_add(&made, " %c %lld", fixed < 0 ? '-' : '+', fixed < 0 ? -fixed : fixed);
    const char *text = PRINT(code, "%s)", text_of(&made));
    text_finish(&made);
    return text;
}

static const char *bitcast_text(code_t *code, const ir_inst_t *inst)
{
    const ir_value_t *from = inst->operands[0];
    if (inst->type->kind == IR_PTR) return pointer_text(code, from);
    if (inst->type->kind == IR_DOUBLE || from->type->kind == IR_DOUBLE) {
        type_text(code, inst->type);
        return value_text(code, from);
    }
    return PRINT(code, "as_type<%s>(%s)", type_text(code, inst->type), value_text(code, from));
}

static const char *conversion_text(code_t *code, const ir_inst_t *inst)
{
    const ir_value_t *from = inst->operands[0];
    const char *type = type_text(code, inst->type);
    switch (inst->op) {
    case IR_OP_bitcast: return bitcast_text(code, inst);
    case IR_OP_addrspacecast: return pointer_text(code, from);
    case IR_OP_inttoptr: return PRINT(code, "(device uchar *)(%s)", value_text(code, from));
    case IR_OP_trunc:
        if (inst->type->bits == 1) return PRINT(code, "bool(%s & 1)", value_text(code, from));
        return fitted_text(code, inst->type, value_text(code, from));
    case IR_OP_sext: return fitted_text(code, inst->type, signed_text(code, from));
    case IR_OP_sitofp: return PRINT(code, "%s(%s)", type, signed_text(code, from));
    case IR_OP_fptosi:
        return PRINT(code, "%s(%s(%s))", type, inst->type->bits > 32 ? "long" : "int",
                     value_text(code, from));
    default: return PRINT(code, "%s(%s)", type, value_text(code, from));
    }
}

// Memory is read and written as unsigned integers, so that its bytes may be seen as other types.
static const char *memory_type(code_t *code, const ir_type_t *type)
{
    uint64_t size = ir_size(type);
    type_text(code, type);
    if (size == 1) return "uchar";
    if (size == 2) return "ushort";
    if (size == 4) return "uint";
    if (size != 8)
        code_fail(code,
                  KEEL_ERROR(KEEL_UNSUPPORTED, "it reads or writes %llu bytes of memory at once",
                             (unsigned long long)size));
    return "ulong";
}

static const char *load_text(code_t *code, const ir_inst_t *inst)
{
    const ir_type_t *type = inst->type;
    uint64_t size = ir_size(type);
    const char *as = memory_type(code, type), *text;
    if (inst->is_atomic) return atomic_text(code, inst);
    const char *qualified = inst->is_volatile ? PRINT(code, "volatile %s", as) : as;
    if (inst->align < size)
        text = PRINT(code, "keel_get_%s(%s)", as, pointer_to(code, inst->operands[0], "uchar"));
    else
        text = PRINT(code, "*%s", pointer_to(code, inst->operands[0], qualified));
    if (type->kind == IR_PTR) return PRINT(code, "(device uchar *)(%s)", text);
    if (type->kind == IR_HALF || type->kind == IR_FLOAT)
        return PRINT(code, "as_type<%s>(%s)", type_text(code, type), text);
    return type->kind == IR_INT ? fitted_text(code, type, text) : text;
}

void store_write(code_t *code, const ir_inst_t *inst)
{
    const ir_value_t *value = inst->operands[0], *to = inst->operands[1];
    uint64_t size = ir_size(value->type);
    const char *as = memory_type(code, value->type), *text = value_text(code, value);
    if (place_of(to) == PLACE_CONSTANT)
        code_fail(code,
                  KEEL_ERROR(KEEL_UNSUPPORTED, "it writes to its arguments or to a constant"));
    if (value->type->kind == IR_PTR && place_of(value) != PLACE_DEVICE &&
        place_of(value) != PLACE_UNKNOWN)
        code_fail(code, KEEL_ERROR(KEEL_UNSUPPORTED,
                                   "it keeps a pointer in memory that does not point to memory of "
                                   "the device: Metal cannot follow it"));
    if (value->type->kind == IR_HALF || value->type->kind == IR_FLOAT)
        text = PRINT(code, "as_type<%s>(%s)", as, text);
    if (inst->is_atomic)
        text_add(code->out, "%s;\n", atomic_text(code, inst));
    else if (inst->align < size)
        text_add(code->out, "keel_put_%s(%s, %s);\n", as, pointer_to(code, to, "uchar"), text);
    else
        text_add(code->out, "*%s = %s;\n",
                 pointer_to(code, to, inst->is_volatile ? PRINT(code, "volatile %s", as) : as),
                 text);
}

// Room for a variable, as words of 8 bytes.
static const char *alloca_text(code_t *code, const ir_inst_t *inst)
{
    uint64_t words = (ir_size(inst->type) + 7) / 8;
    text_add(&code->variables, "ulong room%s[%llu];\n", inst->made->name,
             (unsigned long long)(words ? words : 1));
    return PRINT(code, "(thread uchar *)room%s", inst->made->name);
}

// What cmpxchg and operations with overflow make are two variables.
static const char *extract_text(code_t *code, const ir_inst_t *inst)
{
    if (inst->operands[0]->kind != IR_LOCAL)
        code_fail(code, KEEL_ERROR(KEEL_UNSUPPORTED, "it has structs as values"));
    return PRINT(code, "v%s_%u", inst->operands[0]->name, inst->index);
}

static bool with_doubles(const ir_inst_t *inst)
{
    if (inst->op == IR_OP_load || inst->op == IR_OP_select || inst->op == IR_OP_bitcast ||
        inst->op == IR_OP_freeze || inst->op == IR_OP_call)
        return false;
    for (uint32_t i = 0; i < inst->operand_count; i++)
        if (inst->operands[i]->type->kind == IR_DOUBLE) return true;
    return inst->type && inst->type->kind == IR_DOUBLE;
}

const char *inst_text(code_t *code, const ir_inst_t *inst)
{
    if (with_doubles(inst)) return double_text(code, inst);
    switch (inst->op) {
    case IR_OP_icmp: return icmp_text(code, inst);
    case IR_OP_fcmp: return fcmp_text(code, inst);
    case IR_OP_select: return select_text(code, inst);
    case IR_OP_load: return load_text(code, inst);
    case IR_OP_alloca: return alloca_text(code, inst);
    case IR_OP_getelementptr: return steps_text(code, inst);
    case IR_OP_call: return call_text(code, inst);
    case IR_OP_atomicrmw:
    case IR_OP_cmpxchg: return atomic_text(code, inst);
    case IR_OP_extractvalue: return extract_text(code, inst);
    case IR_OP_freeze:
        return inst->type->kind == IR_PTR ? pointer_text(code, inst->operands[0])
                                          : value_text(code, inst->operands[0]);
    default: break;
    }
    if (inst->op >= IR_OP_zext && inst->op <= IR_OP_addrspacecast)
        return conversion_text(code, inst);
    if (inst->op >= IR_OP_fadd && inst->op <= IR_OP_fneg) return float_text(code, inst);
    return integer_text(code, inst);
}
