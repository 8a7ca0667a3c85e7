// SPDX-License-Identifier: Apache-2.0
// Vector comparisons: a mask with a bit for each lane.
#include <math.h>

#include "amd/isa/lanes.h"

#define PUT_none(d, l, x) (void)(x)

#define FLOAT_CONDITIONS(X, T)                                                                     \
    X(f, T, 0)                                                                                     \
    X(lt, T, a < b)                                                                                \
    X(eq, T, a == b)                                                                               \
    X(le, T, a <= b)                                                                               \
    X(gt, T, a > b)                                                                                \
    X(lg, T, a<b || a> b)                                                                          \
    X(ge, T, a >= b)                                                                               \
    X(o, T, a == a && b == b)                                                                      \
    X(u, T, a != a || b != b)                                                                      \
    X(nge, T, !(a >= b))                                                                           \
    X(nlg, T, !(a < b || a > b))                                                                   \
    X(ngt, T, !(a > b))                                                                            \
    X(nle, T, !(a <= b))                                                                           \
    X(neq, T, a != b)                                                                              \
    X(nlt, T, !(a < b))                                                                            \
    X(tru, T, 1)

#define INTEGER_CONDITIONS(X, T)                                                                   \
    X(f, T, 0)                                                                                     \
    X(lt, T, a < b)                                                                                \
    X(eq, T, a == b)                                                                               \
    X(le, T, a <= b)                                                                               \
    X(gt, T, a > b)                                                                                \
    X(ne, T, a != b)                                                                               \
    X(ge, T, a >= b)                                                                               \
    X(t, T, 1)

#define EVERYTHING(X)                                                                              \
    FLOAT_CONDITIONS(X, f16)                                                                       \
    FLOAT_CONDITIONS(X, f32)                                                                       \
    FLOAT_CONDITIONS(X, f64)                                                                       \
    INTEGER_CONDITIONS(X, i16)                                                                     \
    INTEGER_CONDITIONS(X, u16)                                                                     \
    INTEGER_CONDITIONS(X, i32)                                                                     \
    INTEGER_CONDITIONS(X, u32)                                                                     \
    INTEGER_CONDITIONS(X, i64)                                                                     \
    INTEGER_CONDITIONS(X, u64)

#define DEFINE(condition, T, expression)                                                           \
    LANE_DEFINE_MASK(condition##_##T, none, T, T, none, OP_MASK_OUT, 0, expression)

EVERYTHING(DEFINE)

enum {
    CLASS_SIGNALING,
    CLASS_QUIET,
    CLASS_NEG_INF,
    CLASS_NEG_NORMAL,
    CLASS_NEG_DENORMAL,
    CLASS_NEG_ZERO,
    CLASS_POS_ZERO,
    CLASS_POS_DENORMAL,
    CLASS_POS_NORMAL,
    CLASS_POS_INF,
};

// The class of a number of which only these facts matter, whatever its width.
static unsigned number_class(bool negative, bool exponent_full, bool exponent_zero,
                             uint64_t fraction, bool quiet)
{
    if (exponent_full) {
        if (fraction) return quiet ? CLASS_QUIET : CLASS_SIGNALING;
        return negative ? CLASS_NEG_INF : CLASS_POS_INF;
    }
    if (!exponent_zero) return negative ? CLASS_NEG_NORMAL : CLASS_POS_NORMAL;
    if (fraction) return negative ? CLASS_NEG_DENORMAL : CLASS_POS_DENORMAL;
    return negative ? CLASS_NEG_ZERO : CLASS_POS_ZERO;
}

static unsigned class_u16(uint16_t x)
{
    unsigned exponent = x >> 10 & 31;
    return number_class(x >> 15, exponent == 31, exponent == 0, x & 0x3ff, x >> 9 & 1);
}

static unsigned class_u32(uint32_t x)
{
    unsigned exponent = x >> 23 & 255;
    return number_class(x >> 31, exponent == 255, exponent == 0, x & 0x7fffff, x >> 22 & 1);
}

static unsigned class_u64(uint64_t x)
{
    unsigned exponent = x >> 52 & 2047;
    return number_class(x >> 63, exponent == 2047, exponent == 0, x & 0xfffffffffffff, x >> 51 & 1);
}

LANE_DEFINE_MASK(class_f16, none, u16, u32, none, OP_MASK_OUT, 0, b >> class_u16(a) & 1)
LANE_DEFINE_MASK(class_f32, none, u32, u32, none, OP_MASK_OUT, 0, b >> class_u32(a) & 1)
LANE_DEFINE_MASK(class_f64, none, u64, u32, none, OP_MASK_OUT, 0, b >> class_u64(a) & 1)

#define TWO_ROWS(condition, T, A, B, flags)                                                        \
    {"v_cmp_" #condition "_" #T,                                                                   \
     run_vector_mask,                                                                              \
     lanes_##condition##_##T,                                                                      \
     TYPE_NONE,                                                                                    \
     {TYPE_##A, TYPE_##B},                                                                         \
     OP_MASK_OUT | (flags),                                                                        \
     0},                                                                                           \
        {"v_cmpx_" #condition "_" #T,                                                              \
         run_vector_mask,                                                                          \
         lanes_##condition##_##T,                                                                  \
         TYPE_NONE,                                                                                \
         {TYPE_##A, TYPE_##B},                                                                     \
         OP_MASK_OUT | OP_EXEC_OUT | (flags),                                                      \
         0},
#define ROWS(condition, T, expression) TWO_ROWS(condition, T, T, T, 0)

static const op_t ops[] = {EVERYTHING(ROWS)                        //
                           TWO_ROWS(class, f16, f16, u32, OP_BITS) //
                           TWO_ROWS(class, f32, f32, u32, OP_BITS) //
                           TWO_ROWS(class, f64, f64, u32, OP_BITS)};
const op_list_t compare_ops = {ops, sizeof ops / sizeof *ops};
