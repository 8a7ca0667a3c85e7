// SPDX-License-Identifier: Apache-2.0
// Packed operations: two results from halves, or from the words of a pair, of each source. The
// encoding has one set of selections and signs for the low result and one for the high.
#include "amd/isa/half.h"

typedef struct {
    uint8_t select[2]; // bit per source, for the low and the high result: take the upper part
    uint8_t neg[2];
} choice_t;

static choice_t choice(const insn_t *i)
{
    const modifiers_t *mod = &i->mod; // where decode_vop3p put them
    return (choice_t){{mod->opsel, mod->omod}, {mod->neg, mod->abs}};
}

// One half of a source, in the low bits.
static const uint32_t *half_source(wave_t *w, const insn_t *i, unsigned k, unsigned high)
{
    const uint32_t *source = wave_source(w, i, k);
    if (!source) return NULL;
    choice_t chosen = choice(i);
    bool upper = chosen.select[high] >> k & 1, neg = chosen.neg[high] >> k & 1;
    uint32_t sign = neg && i->op->src[k] == TYPE_f16 ? 0x8000 : 0;
    uint32_t *lanes = w->operand[k];
    EACH_LANE lanes[l] = ((upper ? source[l] >> 16 : source[l]) & 0xffff) ^ sign;
    if (!w->plain_mode) wave_flush(w, lanes, i->op->src[k], false);
    return lanes;
}

static float clamp_unit(float x)
{
    return x > 0 ? (x < 1 ? x : 1) : 0;
}

static const insn_t *run_halves(wave_t *w, const insn_t *i)
{
    uint32_t both[2][LANES];
    lanes_fn *lanes = i->lanes;
    if (i->mod.clamp && i->op->dst != TYPE_f16) {
        if (!(i->op->flags & OP_SATURATES)) return run_unknown(w, i);
        lanes = (i->op + 1)->lanes;
    }
    for (unsigned high = 0; high < 2; high++) {
        const uint32_t *source[3];
        for (unsigned k = 0; k < 3; k++) source[k] = half_source(w, i, k, high);
        lanes(both[high], source[0], source[1], source[2], 0);
        if (!w->plain_mode) wave_flush(w, both[high], i->op->dst, true);
        if (!i->mod.clamp || i->op->dst != TYPE_f16) continue;
        for (unsigned l = 0; l < LANES; l++) {
            PUT_f16(both[high], l, clamp_unit(GET_f16(both[high], l)));
        }
    }
    EACH_LANE w->result[l] = (both[0][l] & 0xffff) | both[1][l] << 16;
    wave_merge(w, i, wave_exec(w));
    return insn_next(i);
}

// The word of a pair of registers, of a pair of scalars, or a constant that is in both.
static const uint32_t *word_source(wave_t *w, const insn_t *i, unsigned k, unsigned high)
{
    const source_t *src = &i->src[k];
    const uint32_t *source = wave_source(w, i, k);
    if (!source) return NULL;
    choice_t chosen = choice(i);
    bool upper = chosen.select[high] >> k & 1, neg = chosen.neg[high] >> k & 1;
    if (upper && src->from != FROM_CONSTANT) source += LANES;
    uint32_t *lanes = w->operand[k]; // may be the source itself, whose words are then not needed
    uint32_t sign = neg ? 0x80000000 : 0;
    EACH_LANE lanes[l] = source[l] ^ sign;
    if (!w->plain_mode) wave_flush(w, lanes, TYPE_f32, false);
    return lanes;
}

static const insn_t *run_words(wave_t *w, const insn_t *i)
{
    for (unsigned high = 0; high < 2; high++) {
        const uint32_t *source[3];
        for (unsigned k = 0; k < 3; k++) source[k] = word_source(w, i, k, high);
        i->lanes(w->result + high * LANES, source[0], source[1], source[2], 0);
        if (!w->plain_mode) wave_flush(w, w->result + high * LANES, TYPE_f32, true);
    }
    wave_merge(w, i, wave_exec(w));
    return insn_next(i);
}

static const insn_t *run_move_words(wave_t *w, const insn_t *i)
{
    // The low result comes from the first source, the high one from the second.
    for (unsigned k = 0; k < 2; k++) {
        const uint32_t *source = wave_source(w, i, k);
        if (i->mod.opsel >> k & 1 && i->src[k].from != FROM_CONSTANT) source += LANES;
        memcpy(w->result + k * LANES, source, 4 * LANES);
    }
    wave_merge(w, i, wave_exec(w));
    return insn_next(i);
}

// A half or a single without denormals, where the mode forbids them going in or coming out.
static uint32_t flushed(const wave_t *w, uint32_t bits, bool half, bool out)
{
    bool kept = w->mode >> ((half ? 6 : 4) + out) & 1;
    bool denormal = !(bits & (half ? 0x7c00 : 0x7f800000));
    return denormal && !kept ? bits & (half ? 0x8000 : 0x80000000) : bits;
}

// Sources of mixed precision: the second set of selections says which are halves.
static float mixed(const wave_t *w, const uint32_t *source, unsigned l, unsigned k, const insn_t *i)
{
    const modifiers_t *mod = &i->mod;
    bool half = mod->omod >> k & 1, upper = mod->opsel >> k & 1;
    uint32_t bits = half ? (upper ? source[l] >> 16 : source[l] & 0xffff) : source[l];
    bits = flushed(w, bits, half, false);
    float value = half ? half_to_float((uint16_t)bits) : bits_float(bits);
    if (mod->abs >> k & 1) value = fabsf(value);
    return mod->neg >> k & 1 ? -value : value;
}

enum { MIX_F32, MIX_LOW, MIX_HIGH, MIX_UNFUSED = 4 };

static const insn_t *run_mix(wave_t *w, const insn_t *i)
{
    const uint32_t *source[3];
    for (unsigned k = 0; k < 3; k++) source[k] = wave_source(w, i, k);
    unsigned kind = i->op->detail & 3;
    bool fused = !(i->op->detail & MIX_UNFUSED);
    const uint32_t *old = w->v[i->dst];
    for (unsigned l = 0; l < LANES; l++) {
        float a = mixed(w, source[0], l, 0, i), b = mixed(w, source[1], l, 1, i);
        float c = mixed(w, source[2], l, 2, i), r = fused ? fmaf(a, b, c) : a * b + c;
        if (i->mod.clamp) r = clamp_unit(r);
        bool single = kind == MIX_F32;
        uint32_t bits = flushed(w, single ? float_bits(r) : float_to_half(r), !single, true);
        w->result[l] = single            ? bits
                       : kind == MIX_LOW ? (old[l] & 0xffff0000) | bits
                                         : (old[l] & 0xffff) | bits << 16;
    }
    wave_merge(w, i, wave_exec(w));
    return insn_next(i);
}

static int64_t dot_fields(uint32_t a, uint32_t b, unsigned width, bool sign)
{
    int64_t sum = 0, top = 1 << (width - 1);
    for (unsigned k = 0; k < 32; k += width) {
        int64_t x = a >> k & ((1u << width) - 1), y = b >> k & ((1u << width) - 1);
        sum += sign ? ((x ^ top) - top) * ((y ^ top) - top) : x * y;
    }
    return sum;
}

static inline uint32_t clamp_i(int64_t x)
{
    return (uint32_t)(x < INT32_MIN ? INT32_MIN : x > INT32_MAX ? INT32_MAX : x);
}

static inline uint32_t clamp_u(int64_t x)
{
    return (uint32_t)(x > UINT32_MAX ? UINT32_MAX : x);
}

static uint32_t fma_halves(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t result = 0;
    for (unsigned k = 0; k < 32; k += 16) {
        float x = half_to_float((uint16_t)(a >> k)), y = half_to_float((uint16_t)(b >> k));
        result |= (uint32_t)float_to_half(fma_h(x, y, half_to_float((uint16_t)(c >> k)))) << k;
    }
    return result;
}

static float dot_halves(uint32_t a, uint32_t b, float c)
{
    float low = half_to_float((uint16_t)a) * half_to_float((uint16_t)b);
    float high = half_to_float((uint16_t)(a >> 16)) * half_to_float((uint16_t)(b >> 16));
    return low + high + c;
}

static inline uint32_t clamp_u16(int32_t x)
{
    return (uint32_t)(x < 0 ? 0 : x > 0xffff ? 0xffff : x);
}

static inline uint32_t clamp_i16(int32_t x)
{
    return (uint16_t)(x < -32768 ? -32768 : x > 32767 ? 32767 : x);
}

#define SAT OP_SATURATES

#define HALF_OPS(X)                                                                                \
    X(v_pk_mad_i16, u16, u16, u16, u16, 0, (uint32_t)a *b + c)                                     \
    X(v_pk_mad_u16, u16, u16, u16, u16, 0, (uint32_t)a *b + c)                                     \
    X(v_pk_mul_lo_u16, u16, u16, u16, none, 0, (uint32_t)a *b)                                     \
    X(v_pk_add_i16, u16, i16, i16, none, SAT, a + b)                                               \
    X(v_pk_add_i16_sat, u16, i16, i16, none, 0, clamp_i16(a + b))                                  \
    X(v_pk_sub_i16, u16, i16, i16, none, SAT, a - b)                                               \
    X(v_pk_sub_i16_sat, u16, i16, i16, none, 0, clamp_i16(a - b))                                  \
    X(v_pk_lshlrev_b16, u16, u16, u16, none, 0, (uint32_t)b << (a & 15))                           \
    X(v_pk_lshrrev_b16, u16, u16, u16, none, 0, b >> (a & 15))                                     \
    X(v_pk_ashrrev_i16, i16, u16, i16, none, 0, b >> (a & 15))                                     \
    X(v_pk_max_i16, i16, i16, i16, none, 0, a > b ? a : b)                                         \
    X(v_pk_min_i16, i16, i16, i16, none, 0, a < b ? a : b)                                         \
    X(v_pk_add_u16, u16, u16, u16, none, SAT, a + b)                                               \
    X(v_pk_add_u16_sat, u16, u16, u16, none, 0, clamp_u16(a + b))                                  \
    X(v_pk_sub_u16, u16, u16, u16, none, SAT, a - b)                                               \
    X(v_pk_sub_u16_sat, u16, u16, u16, none, 0, clamp_u16(a - b))                                  \
    X(v_pk_max_u16, u16, u16, u16, none, 0, a > b ? a : b)                                         \
    X(v_pk_min_u16, u16, u16, u16, none, 0, a < b ? a : b)                                         \
    X(v_pk_fma_f16, f16, f16, f16, f16, 0, fma_h(a, b, c))                                         \
    X(v_pk_add_f16, f16, f16, f16, none, 0, a + b)                                                 \
    X(v_pk_mul_f16, f16, f16, f16, none, 0, a *b)                                                  \
    X(v_pk_min_f16, f16, f16, f16, none, 0, min_h(a, b))                                           \
    X(v_pk_max_f16, f16, f16, f16, none, 0, max_h(a, b))

#define WORD_OPS(X)                                                                                \
    X(v_pk_fma_f32, f32, f32, f32, f32, 0, fmaf(a, b, c))                                          \
    X(v_pk_mul_f32, f32, f32, f32, none, 0, a *b)                                                  \
    X(v_pk_add_f32, f32, f32, f32, none, 0, a + b)

// Each is followed by what it is when it saturates.
#define DOT_OPS(X)                                                                                 \
    X(v_dot2_i32_i16, u32, u32, u32, i32, SAT, (uint32_t)(dot_fields(a, b, 16, true) + c))         \
    X(v_dot2_i32_i16_sat, u32, u32, u32, i32, 0, clamp_i(dot_fields(a, b, 16, true) + c))          \
    X(v_dot2_u32_u16, u32, u32, u32, u32, SAT, (uint32_t)(dot_fields(a, b, 16, false) + c))        \
    X(v_dot2_u32_u16_sat, u32, u32, u32, u32, 0, clamp_u(dot_fields(a, b, 16, false) + c))         \
    X(v_dot4_i32_i8, u32, u32, u32, i32, SAT, (uint32_t)(dot_fields(a, b, 8, true) + c))           \
    X(v_dot4_i32_i8_sat, u32, u32, u32, i32, 0, clamp_i(dot_fields(a, b, 8, true) + c))            \
    X(v_dot4_u32_u8, u32, u32, u32, u32, SAT, (uint32_t)(dot_fields(a, b, 8, false) + c))          \
    X(v_dot4_u32_u8_sat, u32, u32, u32, u32, 0, clamp_u(dot_fields(a, b, 8, false) + c))           \
    X(v_dot8_i32_i4, u32, u32, u32, i32, SAT, (uint32_t)(dot_fields(a, b, 4, true) + c))           \
    X(v_dot8_i32_i4_sat, u32, u32, u32, i32, 0, clamp_i(dot_fields(a, b, 4, true) + c))            \
    X(v_dot8_u32_u4, u32, u32, u32, u32, SAT, (uint32_t)(dot_fields(a, b, 4, false) + c))          \
    X(v_dot8_u32_u4_sat, u32, u32, u32, u32, 0, clamp_u(dot_fields(a, b, 4, false) + c))           \
    X(v_dot2_f32_f16, f32, f16x2, f16x2, f32, 0, dot_halves(a, b, c))

// Those whose third source is the destination are not of the packed encoding.
#define DST OP_READS_DST
#define PLAIN_OPS(X)                                                                               \
    X(v_dot2c_f32_f16, f32, f16x2, f16x2, f32, DST, dot_halves(a, b, c))                           \
    X(v_dot2c_i32_i16, u32, u32, u32, u32, DST, (uint32_t)dot_fields(a, b, 16, true) + c)          \
    X(v_dot4c_i32_i8, u32, u32, u32, u32, DST, (uint32_t)dot_fields(a, b, 8, true) + c)            \
    X(v_dot8c_i32_i4, u32, u32, u32, u32, DST, (uint32_t)dot_fields(a, b, 4, true) + c)            \
    X(v_pk_fmac_f16, f16x2, f16x2, f16x2, f16x2, DST, fma_halves(a, b, c))

HALF_OPS(LANE_DEFINE)
WORD_OPS(LANE_DEFINE)
DOT_OPS(LANE_DEFINE)
PLAIN_OPS(LANE_DEFINE)

// A factor whose halves are chosen, and for floats negated, each by itself; or the summand.
static const uint32_t *dot_source(wave_t *w, const insn_t *i, unsigned k)
{
    const uint32_t *source = wave_source(w, i, k);
    choice_t chosen = choice(i);
    bool summand = k == 2, low_up = !summand && chosen.select[0] >> k & 1;
    bool high_up = summand || chosen.select[1] >> k & 1;
    uint32_t *lanes = w->operand[k], low_sign = summand ? 0x80000000 : 0x8000, signs = 0;
    if (i->op->dst == TYPE_f32) {
        signs |= chosen.neg[0] >> k & 1 ? low_sign : 0;
        signs |= !summand && chosen.neg[1] >> k & 1 ? 0x80000000 : 0;
    }
    EACH_LANE
    {
        uint32_t x = source[l], low = low_up ? x >> 16 : x & 0xffff;
        lanes[l] = (low | (high_up ? x & 0xffff0000 : x << 16)) ^ signs;
    }
    if (!w->plain_mode) wave_flush(w, lanes, i->op->src[k], false);
    return lanes;
}

static const insn_t *run_dot(wave_t *w, const insn_t *i)
{
    bool saturates = i->mod.clamp && i->op->flags & OP_SATURATES;
    lanes_fn *lanes = saturates ? (i->op + 1)->lanes : i->lanes;
    const uint32_t *source[3];
    for (unsigned k = 0; k < 3; k++) source[k] = dot_source(w, i, k);
    lanes(w->result, source[0], source[1], source[2], 0);
    if (!w->plain_mode) wave_flush(w, w->result, i->op->dst, true);
    if (i->mod.clamp && !saturates) {
        for (unsigned l = 0; l < LANES; l++)
            PUT_f32(w->result, l, clamp_unit(GET_f32(w->result, l)));
    }
    wave_merge(w, i, wave_exec(w));
    return insn_next(i);
}

#define HALF_ROW(name, D, A, B, C, flags, ...)                                                     \
    {#name, run_halves, lanes_##name, TYPE_##D, {TYPE_##A, TYPE_##B, TYPE_##C}, (flags), 0},
#define WORD_ROW(name, D, A, B, C, flags, ...)                                                     \
    {#name, run_words, lanes_##name, TYPE_u64, {TYPE_u64, TYPE_u64, WORD_##C}, OP_FLOAT, 0},
#define WORD_f32  TYPE_u64
#define WORD_none TYPE_NONE
#define DOT_ROW(name, D, A, B, C, flags, ...)                                                      \
    {#name, run_dot, lanes_##name, TYPE_##D, {TYPE_##A, TYPE_##B, TYPE_##C}, (flags), 0},
#define MIX_ROW(name, kind)                                                                        \
    {name, run_mix, NULL, TYPE_f32, {TYPE_u32, TYPE_u32, TYPE_u32}, OP_FLOAT, kind}

static const op_t ops[] = {
    HALF_OPS(HALF_ROW) WORD_OPS(WORD_ROW) DOT_OPS(DOT_ROW) PLAIN_OPS(LANE_ROW) //
    {"v_pk_mov_b32", run_move_words, NULL, TYPE_u64, {TYPE_u64, TYPE_u64}, 0, 0},
    MIX_ROW("v_fma_mix_f32", MIX_F32),
    MIX_ROW("v_fma_mixlo_f16", MIX_LOW),
    MIX_ROW("v_fma_mixhi_f16", MIX_HIGH),
    MIX_ROW("v_mad_mix_f32", MIX_F32 | MIX_UNFUSED),
    MIX_ROW("v_mad_mixlo_f16", MIX_LOW | MIX_UNFUSED),
    MIX_ROW("v_mad_mixhi_f16", MIX_HIGH | MIX_UNFUSED),
};
const op_list_t packed_ops = {ops, sizeof ops / sizeof *ops};
