// SPDX-License-Identifier: Apache-2.0
// Calls: of what the header of the kernel language declares for Metal, and of LLVM's intrinsics.
#include <stdlib.h>
#include <string.h>

#include "tools/cc/check.h"
#include "tools/cc/msl/code.h"

// An operand of a call, as a text. The first operand is the function.
static const char *argument(code_t *code, const ir_inst_t *inst, uint32_t index)
{
    return index + 1 < inst->operand_count ? value_text(code, inst->operands[index + 1]) : "0";
}

static uint64_t argument_number(const ir_inst_t *inst, uint32_t index)
{
    return index + 1 < inst->operand_count ? inst->operands[index + 1]->number : 0;
}

static const char *undefined(code_t *code, const char *name)
{
    const char *instead = function_instead(name, strlen(name));
    bool here = false;
    for (uint32_t i = 0; i < code->module->function_count; i++)
        here |= !strcmp(code->module->functions[i]->name, name);
    code_fail(
        code,
        here ? KEEL_ERROR(KEEL_UNSUPPORTED,
                          "it calls '%s', which is not inlined: it calls itself, or is "
                          "declared noinline",
                          name)
        : instead
            ? KEEL_ERROR(KEEL_UNSUPPORTED, "nothing defines '%s': a kernel calls %s", name, instead)
            : KEEL_ERROR(KEEL_UNSUPPORTED,
                         "nothing defines '%s': a kernel calls functions of its own source "
                         "and of <keel/kernel.h>",
                         name));
    return "0";
}

// keel_msl_NAME of <keel/kernel/msl.h>.
static const char *own_text(code_t *code, const ir_inst_t *inst, const char *name)
{
    static const char *const axes[] = {"x", "y", "z"};
    const char *axis = axes[argument_number(inst, 0) % 3];
    if (!strcmp(name, "item")) return PRINT(code, "item.%s", axis);
    if (!strcmp(name, "group")) return PRINT(code, "group.%s", axis);
    if (!strcmp(name, "groups")) return PRINT(code, "groups.%s", axis);
    if (!strcmp(name, "lane")) return "lane";
    if (!strcmp(name, "lanes")) return "lanes";
    if (!strcmp(name, "barrier")) return "keel_barrier()";
    if (!strcmp(name, "fence")) return "keel_fence()";
    if (!strcmp(name, "ballot")) return PRINT(code, "keel_ballot(%s)", argument(code, inst, 0));
    if (!strcmp(name, "shuffle"))
        return PRINT(code, "keel_shuffle(%s, %s, lanes)", argument(code, inst, 0),
                     argument(code, inst, 1));
    return undefined(code, name);
}

// How wide the steps of a copy may be: both ends and the length are multiples of it.
static const char *step_of(const ir_inst_t *inst, const uint64_t aligns[2], uint64_t *bytes)
{
    const ir_value_t *length = inst->operands[3];
    *bytes = 1;
    if (length->kind != IR_NUMBER || length->number % 4 || aligns[0] % 4 || aligns[1] % 4)
        return "uchar";
    *bytes = 4;
    return "uint";
}

// The alignments of a call's pointers are not kept, so they come from where the pointers come from:
// a variable of a thread is aligned, the rest is not known.
static uint64_t known_align(const ir_value_t *value)
{
    return value->kind == IR_LOCAL && value->inst && value->inst->op == IR_OP_alloca ? 8 : 1;
}

static const char *copy_text(code_t *code, const ir_inst_t *inst)
{
    const ir_value_t *to = inst->operands[1], *from = inst->operands[2];
    const uint64_t aligns[] = {known_align(to), known_align(from)};
    uint64_t bytes;
    const char *step = step_of(inst, aligns, &bytes);
    const char *target = pointer_to(code, to, step);
    return PRINT(code, "keel_copy(%s, %s, %s / %llu)", target, pointer_to(code, from, step),
                 argument(code, inst, 2), (unsigned long long)bytes);
}

static const char *set_text(code_t *code, const ir_inst_t *inst)
{
    return PRINT(code, "keel_set(%s, %s, %s)", pointer_to(code, inst->operands[1], "uchar"),
                 argument(code, inst, 1), argument(code, inst, 2));
}

// Both results of an operation that tells whether it overflowed: two variables.
static const char *overflow_text(code_t *code, const ir_inst_t *inst, const char *name)
{
    const ir_type_t *type = inst->operands[1]->type;
    const char *as = type_text(code, type), *made = inst->made->name;
    text_add(&code->variables, "%s v%s_0;\nbool v%s_1;\n", as, made, made);
    bool with_sign = name[0] == 's' || type->bits < 32 || type_is_odd(type);
    const char *op = strstr(name, "add") ? "+" : strstr(name, "sub") ? "-" : "*";
    const char *a = argument(code, inst, 0), *b = argument(code, inst, 1);
    if (with_sign)
        code_fail(code, KEEL_ERROR(KEEL_UNSUPPORTED,
                                   "it asks whether a signed operation, or one of %u bits, "
                                   "overflows",
                                   type->bits));
    text_add(code->out, "v%s_0 = %s %s %s;\n", made, a, op, b);
    const char *test = *op == '+'         ? PRINT(code, "v%s_0 < %s", made, a)
                       : *op == '-'       ? PRINT(code, "%s < %s", a, b)
                       : type->bits == 64 ? PRINT(code, "keel_high(%s, %s) != 0", a, b)
                                          : PRINT(code, "(ulong(%s) * %s) >> 32 != 0", a, b);
    text_add(code->out, "v%s_1 = %s;\n", made, test);
    return NULL;
}

// min, max, abs and sums that stay at the limits.
static const char *chosen_text(code_t *code, const ir_inst_t *inst, const char *name)
{
    const char *a = argument(code, inst, 0), *b = argument(code, inst, 1);
    const char *type = type_text(code, inst->type);
    if (!strcmp(name, "abs")) {
        const char *s = signed_text(code, inst->operands[1]);
        return fitted_text(code, inst->type, PRINT(code, "%s < 0 ? 0 - %s : %s", s, a, a));
    }
    if (!strcmp(name, "usub.sat"))
        return PRINT(code, "%s(%s < %s ? 0 : %s - %s)", type, a, b, a, b);
    if (!strcmp(name, "uadd.sat"))
        return fitted_text(code, inst->type,
                           PRINT(code, "%s < %s ? ~0ul : ulong(%s + %s)",
                                 fitted_text(code, inst->type, PRINT(code, "%s + %s", a, b)), a, a,
                                 b));
    bool with_sign = name[0] == 's', most = strstr(name, "max");
    const char *x = with_sign ? signed_text(code, inst->operands[1]) : a;
    const char *y = with_sign ? signed_text(code, inst->operands[2]) : b;
    return PRINT(code, "(%s %c %s ? %s : %s)", x, most ? '>' : '<', y, a, b);
}

// Rotations and the like: out of both, one behind the other, in an integer of twice the width.
static const char *funnel_text(code_t *code, const ir_inst_t *inst, bool left)
{
    uint32_t bits = inst->type->bits;
    const char *a = argument(code, inst, 0), *b = argument(code, inst, 1);
    const char *n = argument(code, inst, 2), *wide = bits <= 16 ? "uint" : "ulong";
    if (bits == 32 || bits == 64)
        return PRINT(code, "keel_funnel_%s(%s, %s, %s)", left ? "left" : "right", a, b, n);
    if (bits > 32) {
        code_fail(code, KEEL_ERROR(KEEL_UNSUPPORTED, "it rotates an integer of %u bits", bits));
        return "0";
    }
    const char *both = PRINT(code, "(%s(%s) << %uu | %s(%s))", wide, a, bits, wide, b);
    const char *by = PRINT(code, "(uint(%s) %% %uu)", n, bits);
    return fitted_text(code, inst->type,
                       left ? PRINT(code, "%s << %s >> %uu", both, by, bits)
                            : PRINT(code, "%s >> %s", both, by));
}

// In an integer of 32 or 64 bits: shorter ones have zeros above them.
static const char *bits_text(code_t *code, const ir_inst_t *inst, const char *name)
{
    uint32_t bits = inst->type->bits, width = bits <= 32 ? 32 : 64;
    const char *type = type_text(code, inst->type), *wide = width == 32 ? "uint" : "ulong";
    const char *a = PRINT(code, "%s(%s)", wide, argument(code, inst, 0));
    if (!strcmp(name, "ctpop")) return PRINT(code, "%s(popcount(%s))", type, a);
    if (!strcmp(name, "ctlz")) return PRINT(code, "%s(clz(%s) - %uu)", type, a, width - bits);
    if (!strcmp(name, "cttz") && bits == width) return PRINT(code, "%s(ctz(%s))", type, a);
    if (!strcmp(name, "cttz")) return PRINT(code, "%s(ctz(%s | %lluul))", type, a, 1ull << bits);
    if (!strcmp(name, "bitreverse"))
        return PRINT(code, "%s(reverse_bits(%s) >> %uu)", type, a, width - bits);
    if (!strcmp(name, "bswap"))
        return PRINT(code, "%s(keel_swap(%s) >> %u)", type, argument(code, inst, 0), 64 - bits);
    return funnel_text(code, inst, !strcmp(name, "fshl"));
}

static const char *float_function(code_t *code, const ir_inst_t *inst, const char *name)
{
    static const struct {
        const char *name, *called;
        uint32_t arguments;
    } rows[] = {{"fma", "fma", 3},          {"fmuladd", "fma", 3},    {"sqrt", "precise::sqrt", 1},
                {"floor", "floor", 1},      {"ceil", "ceil", 1},      {"trunc", "trunc", 1},
                {"rint", "rint", 1},        {"fabs", "fabs", 1},      {"minnum", "fmin", 2},
                {"nearbyint", "rint", 1},   {"roundeven", "rint", 1}, {"maxnum", "fmax", 2},
                {"copysign", "copysign", 2}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].name, name) != 0) continue;
        bool is_double = inst->type->kind == IR_DOUBLE;
        const char *called = is_double ? PRINT(code, "keel_double_%s", name) : rows[i].called;
        const char *text = PRINT(code, "%s(%s", called, argument(code, inst, 0));
        for (uint32_t k = 1; k < rows[i].arguments; k++)
            text = PRINT(code, "%s, %s", text, argument(code, inst, k));
        return PRINT(code, "%s)", text);
    }
    return NULL;
}

static bool is_one_of(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (!strncmp(name, *names, strlen(*names))) return true;
    return false;
}

// `name` without llvm. and without the types behind it.
static const char *intrinsic_text(code_t *code, const ir_inst_t *inst, const char *name)
{
    static const char *const ignored[] = {"lifetime.",  "assume", "dbg.", "experimental.noalias",
                                          "invariant.", NULL};
    static const char *const chosen[] = {"umin", "umax",     "smin",     "smax",
                                         "abs",  "usub.sat", "uadd.sat", NULL};
    static const char *const bits[] = {"ctpop", "ctlz", "cttz", "bitreverse",
                                       "bswap", "fshl", "fshr", NULL};
    if (is_one_of(name, ignored)) return NULL;
    if (is_one_of(name, (const char *const[]){"memcpy", "memmove", NULL}))
        return copy_text(code, inst);
    if (!strncmp(name, "memset", 6)) return set_text(code, inst);
    if (strstr(name, ".with.overflow")) return overflow_text(code, inst, name);
    const char *dot = strrchr(name, '.');
    char *base = arena_copy(&code->module->arena, name, dot ? (size_t)(dot - name) : strlen(name));
    if (is_one_of(base, chosen)) return chosen_text(code, inst, base);
    if (is_one_of(base, bits)) return bits_text(code, inst, base);
    const char *text = float_function(code, inst, base);
    if (text) return text;
    code_fail(code, KEEL_ERROR(KEEL_UNSUPPORTED, "it needs llvm.%s, which Metal has not", name));
    return "0";
}

const char *call_text(code_t *code, const ir_inst_t *inst)
{
    static const char own[] = "keel_msl_", intrinsic[] = "llvm.";
    const ir_value_t *callee = inst->operands[0];
    if (callee->kind != IR_NAMED) {
        code_fail(code, KEEL_ERROR(KEEL_UNSUPPORTED, "it calls a function by its address"));
        return "0";
    }
    if (!strncmp(callee->name, own, sizeof own - 1))
        return own_text(code, inst, callee->name + sizeof own - 1);
    if (!strncmp(callee->name, intrinsic, sizeof intrinsic - 1))
        return intrinsic_text(code, inst, callee->name + sizeof intrinsic - 1);
    if (!strcmp(callee->name, "memcpy") || !strcmp(callee->name, "memmove"))
        return copy_text(code, inst);
    if (!strcmp(callee->name, "memset")) return set_text(code, inst);
    return undefined(code, callee->name);
}

static const char *float_atomic(code_t *code, const ir_inst_t *inst)
{
    const char *at = pointer_to(code, inst->operands[0], "atomic_uint");
    return PRINT(code, "keel_atomic_%s(%s, %s)", inst->word, at,
                 value_text(code, inst->operands[1]));
}

// Two variables: what was there, and whether it was what was expected.
static const char *exchange_text(code_t *code, const ir_inst_t *inst)
{
    const char *made = inst->made->name;
    const char *at = pointer_to(code, inst->operands[0], "atomic_uint");
    const char *expected = value_text(code, inst->operands[1]);
    text_add(&code->variables, "uint v%s_0;\nbool v%s_1;\n", made, made);
    text_add(code->out, "v%s_0 = keel_atomic_compare(%s, %s, %s);\nv%s_1 = v%s_0 == %s;\n", made,
             at, expected, value_text(code, inst->operands[2]), made, made, expected);
    return NULL;
}

const char *atomic_text(code_t *code, const ir_inst_t *inst)
{
    static const struct {
        const char *word, *name;
    } rows[] = {{"xchg", "exchange"}, {"add", "fetch_add"}, {"sub", "fetch_sub"},
                {"and", "fetch_and"}, {"or", "fetch_or"},   {"xor", "fetch_xor"},
                {"min", "fetch_min"}, {"max", "fetch_max"}, {"umin", "fetch_min"},
                {"umax", "fetch_max"}};
    bool is_load = inst->op == IR_OP_load, is_store = inst->op == IR_OP_store;
    const ir_type_t *type = is_load    ? inst->type
                            : is_store ? inst->operands[0]->type
                                       : inst->operands[1]->type;
    const ir_value_t *at = inst->operands[is_store ? 1 : 0];
    if (ir_size(type) != 4)
        code_fail(code, KEEL_ERROR(KEEL_UNSUPPORTED, "Metal has no atomics of %llu bits",
                                   (unsigned long long)ir_size(type) * 8));
    if (place_of(at) == PLACE_THREAD || place_of(at) == PLACE_CONSTANT)
        code_fail(code, KEEL_ERROR(KEEL_UNSUPPORTED, "atomics are for bindings and workgroup "
                                                     "memory"));
    if (is_load) {
        const char *text = PRINT(code, "atomic_load_explicit(%s, memory_order_relaxed)",
                                 pointer_to(code, at, "atomic_uint"));
        return type->kind == IR_FLOAT ? PRINT(code, "as_type<float>(%s)", text) : text;
    }
    if (is_store)
        return PRINT(code, "atomic_store_explicit(%s, %s, memory_order_relaxed)",
                     pointer_to(code, at, "atomic_uint"),
                     type->kind == IR_FLOAT
                         ? PRINT(code, "as_type<uint>(%s)", value_text(code, inst->operands[0]))
                         : value_text(code, inst->operands[0]));
    if (inst->op == IR_OP_cmpxchg) return exchange_text(code, inst);
    if (inst->word[0] == 'f') return float_atomic(code, inst);
    bool with_sign = !strcmp(inst->word, "min") || !strcmp(inst->word, "max");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (!strcmp(rows[i].word, inst->word))
            return PRINT(code, "uint(atomic_%s_explicit(%s, %s, memory_order_relaxed))",
                         rows[i].name,
                         pointer_to(code, at, with_sign ? "atomic_int" : "atomic_uint"),
                         with_sign ? signed_text(code, inst->operands[1])
                                   : value_text(code, inst->operands[1]));
    code_fail(code, KEEL_ERROR(KEEL_UNSUPPORTED, "Metal has no atomic operation %s", inst->word));
    return "0";
}
