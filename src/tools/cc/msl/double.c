// SPDX-License-Identifier: Apache-2.0
// Operations on doubles, which Metal has not: calls of the functions of double.inc, where a double
// is its bits.
#include <string.h>

#include "tools/cc/msl/code.h"

static const char *compare_text(code_t *code, const ir_inst_t *inst)
{
    static const struct {
        const char *word, *function;
        bool swapped, negated;
    } rows[] = {
        {"oeq", "equal", false, false},    {"ogt", "below", true, false},
        {"oge", "at_most", true, false},   {"olt", "below", false, false},
        {"ole", "at_most", false, false},  {"one", "apart", false, false},
        {"ord", "unordered", false, true}, {"uno", "unordered", false, false},
        {"ueq", "apart", false, true},     {"ugt", "at_most", false, true},
        {"uge", "below", false, true},     {"ult", "at_most", true, true},
        {"ule", "below", true, true},      {"une", "equal", false, true},
    };
    const char *a = value_text(code, inst->operands[0]), *b = value_text(code, inst->operands[1]);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (!strcmp(rows[i].word, inst->word))
            return PRINT(code, "%skeel_double_%s(%s, %s)", rows[i].negated ? "!" : "",
                         rows[i].function, rows[i].swapped ? b : a, rows[i].swapped ? a : b);
    return strcmp(inst->word, "true") ? "false" : "true";
}

// To a double, or from one.
static const char *convert_text(code_t *code, const ir_inst_t *inst)
{
    const ir_value_t *from = inst->operands[0];
    const char *text = value_text(code, from);
    switch (inst->op) {
    case IR_OP_fpext: return PRINT(code, "keel_double_of_float(as_type<uint>(float(%s)))", text);
    case IR_OP_sitofp: return PRINT(code, "keel_double_of_long(long(%s))", signed_text(code, from));
    case IR_OP_uitofp: return PRINT(code, "keel_double_of_ulong(ulong(%s))", text);
    case IR_OP_fptosi:
    case IR_OP_fptoui:
        return PRINT(code, "%s(keel_double_to_%s(%s))", type_text(code, inst->type),
                     inst->op == IR_OP_fptosi ? "long" : "ulong", text);
    default: break;
    }
    if (inst->type->kind != IR_FLOAT)
        code_fail(code, KEEL_ERROR(KEEL_UNSUPPORTED, "it makes a half of a double"));
    return PRINT(code, "as_type<float>(keel_double_to_float(%s))", text);
}

const char *double_text(code_t *code, const ir_inst_t *inst)
{
    code->uses_doubles = true;
    const char *name = NULL;
    switch (inst->op) {
    case IR_OP_fcmp: return compare_text(code, inst);
    case IR_OP_fadd: name = "add"; break;
    case IR_OP_fsub: name = "sub"; break;
    case IR_OP_fmul: name = "mul"; break;
    case IR_OP_fdiv: name = "div"; break;
    case IR_OP_fneg: return PRINT(code, "%s ^ (1ul << 63)", value_text(code, inst->operands[0]));
    case IR_OP_atomicrmw: return atomic_text(code, inst);
    default: break;
    }
    if (!name && inst->op >= IR_OP_zext && inst->op <= IR_OP_addrspacecast)
        return convert_text(code, inst);
    if (!name) {
        code_fail(code, KEEL_ERROR(KEEL_UNSUPPORTED, "it takes the remainder of doubles"));
        return "0";
    }
    const char *a = value_text(code, inst->operands[0]);
    return PRINT(code, "keel_double_%s(%s, %s)", name, a, value_text(code, inst->operands[1]));
}
