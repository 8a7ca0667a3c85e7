// SPDX-License-Identifier: Apache-2.0
// More functions for same.h: floats of eight bits, for which gfx942 has instructions. Elsewhere
// they are looked for among all codes.
#ifndef TESTS_SIM_AMD_KERNELS_NARROW_H_
#define TESTS_SIM_AMD_KERNELS_NARROW_H_

#ifdef __gfx942__
#define WIDE_FP8(word, n)        __builtin_amdgcn_cvt_f32_fp8((int)(word), n)
#define WIDE_BF8(word, n)        __builtin_amdgcn_cvt_f32_bf8((int)(word), n)
#define NARROW_FP8(x, y, word)   (uint32_t)__builtin_amdgcn_cvt_pk_fp8_f32(x, y, (int)(word), true)
#define NARROW_BF8(x, y, word)   (uint32_t)__builtin_amdgcn_cvt_pk_bf8_f32(x, y, (int)(word), false)
#define CHANCE_FP8(x, any, word) (uint32_t)__builtin_amdgcn_cvt_sr_fp8_f32(x, any, (int)(word), 2)
#define CHANCE_BF8(x, any, word) (uint32_t)__builtin_amdgcn_cvt_sr_bf8_f32(x, any, (int)(word), 1)
#else
// What a code, that may be one above the largest, would stand for.
static inline float code_value(uint32_t code, int mantissa_bits, int bias)
{
    int exponent = (int)(code >> mantissa_bits), unit = 1 << mantissa_bits;
    float value = (float)((int)(code & (uint32_t)(unit - 1)) + (exponent ? unit : 0));
    for (int n = (exponent ? exponent : 1) - mantissa_bits; n > bias; n--) value *= 2;
    for (int n = (exponent ? exponent : 1) - mantissa_bits; n < bias; n++) value /= 2;
    return value;
}

static inline float code_wide(uint32_t code, int mantissa_bits, int bias)
{
    code &= 0xff;
    float value = code_value(code & 0x7f, mantissa_bits, bias);
    return code == 0x80 ? __builtin_nanf("") : code & 0x80 ? -value : value;
}

// The code below a number goes up when the number's distance from it, as a part of the step to the
// next one, and the chance come to a whole. Without a chance: to the nearer one, or the even one.
static inline uint32_t code_narrow(float x, double chance, int mantissa_bits, int bias)
{
    float size = __builtin_fabsf(x);
    if (!(size <= 0x1p127f * 1.5f)) return 0x80;
    uint32_t code = 0;
    for (uint32_t bit = 64; bit; bit >>= 1) {
        if (code_value(code | bit, mantissa_bits, bias) <= size) code |= bit;
    }
    double low = (double)code_value(code, mantissa_bits, bias);
    double step = (double)code_value(code + 1, mantissa_bits, bias) - low;
    double part = ((double)size - low) / step;
    bool up = chance < 0 ? part > 0.5 || (part == 0.5 && code & 1) : part + chance >= 1;
    code += up || part >= 1;
    if (code > 0x7f) return 0x80;
    return code && x < 0 ? code | 0x80 : code;
}

static inline uint32_t put_byte(uint32_t word, unsigned n, uint32_t code)
{
    return (word & ~(0xffu << 8 * n)) | code << 8 * n;
}

#define WIDE_FP8(word, n) code_wide((word) >> 8 * (n), 3, 8)
#define WIDE_BF8(word, n) code_wide((word) >> 8 * (n), 2, 16)
#define NARROW_FP8(x, y, word)                                                                     \
    put_byte(put_byte(word, 2, code_narrow(x, -1, 3, 8)), 3, code_narrow(y, -1, 3, 8))
#define NARROW_BF8(x, y, word)                                                                     \
    put_byte(put_byte(word, 0, code_narrow(x, -1, 2, 16)), 1, code_narrow(y, -1, 2, 16))
#define CHANCE_FP8(x, any, word)                                                                   \
    put_byte(word, 2, code_narrow(x, (double)((any) >> 12) * 0x1p-20, 3, 8))
#define CHANCE_BF8(x, any, word)                                                                   \
    put_byte(word, 1, code_narrow(x, (double)((any) >> 11) * 0x1p-21, 2, 16))
#endif

static void codes_wide(const item_t *in, answer_t *out)
{
    out->r = (uint64_t)float_word(WIDE_FP8(in->a, 0)) << 32 | float_word(WIDE_BF8(in->b, 3));
    out->s = float_word(WIDE_FP8(in->b, 1) + WIDE_FP8(in->b, 2));
    out->t = float_word(WIDE_BF8(in->a, 1) * WIDE_BF8(in->a, 2));
}

static void codes_nearest(const item_t *in, answer_t *out)
{
    float x = to_float(in->a), y = as_float(in->b), z = x * 0.001f;
    out->r = (uint64_t)NARROW_FP8(x, y, in->a) << 32 | NARROW_BF8(x, y, in->b);
    out->s = NARROW_FP8(z, -z, in->b);
    out->t = NARROW_BF8(z * 0.01f, y * 0.5f, in->a);
}

// Numbers whose codes have the full mantissa: of smaller ones, more bits of the chance count.
static void codes_chance(const item_t *in, answer_t *out)
{
    uint32_t any = (uint32_t)in->x;
    float x = as_float((in->a & 0x807fffff) | (120 + (uint32_t)(in->y & 15)) << 23);
    out->r = CHANCE_FP8(x, any, in->b);
    out->s = CHANCE_BF8(x * 0.125f, any, in->b);
    out->t = CHANCE_FP8(x * 0.5f + 1, ~any, in->a);
}

#define NARROW(X)                                                                                  \
    X(codes_wide)                                                                                  \
    X(codes_nearest)                                                                               \
    X(codes_chance)

#endif
