// SPDX-License-Identifier: Apache-2.0
// More functions for same.h: signs, limits and roundings that instructions have for nothing, and
// halves of any kind.
#ifndef TESTS_SIM_AMD_KERNELS_FLOATS_H_
#define TESTS_SIM_AMD_KERNELS_FLOATS_H_

static inline _Float16 as_half(uint32_t bits)
{
    uint16_t word = (uint16_t)bits;
    _Float16 value;
    __builtin_memcpy(&value, &word, 2);
    return value;
}

static inline uint32_t half_word(_Float16 value)
{
    uint16_t bits;
    __builtin_memcpy(&bits, &value, 2);
    return value != value ? 0x7e00 : bits;
}

static void signs_single(const item_t *in, answer_t *out)
{
    float x = as_float(in->a), y = as_float(in->b), z = to_float((uint32_t)in->x);
    float p = __builtin_fabsf(x) - y, q = -x * __builtin_fabsf(z);
    float r = __builtin_fmaf(-x, z, __builtin_fabsf(y)), s = -(x + z), t = -__builtin_fabsf(y) + z;
    uint32_t order = (uint32_t)(__builtin_fabsf(x) < -y) | (uint32_t)(-x >= __builtin_fabsf(z))
                                                               << 1;
    float chosen = order & 1 ? -x : __builtin_fabsf(y);
    out->r = (uint64_t)(float_word(p) ^ float_word(s) * 3) << 32 | (float_word(q) ^ order);
    out->s = float_word(r) ^ float_word(t) * 5;
    out->t = float_word(chosen) ^ float_word(__builtin_copysignf(x, y)) * 7;
}

static void signs_double(const item_t *in, answer_t *out)
{
    double x, y, z = to_double(in->a * 0x9e3779b97f4a7c15);
    __builtin_memcpy(&x, &in->x, 8);
    __builtin_memcpy(&y, &in->y, 8);
    double p = __builtin_fabs(x) - y, q = -x * __builtin_fabs(z);
    double r = __builtin_fma(-x, z, __builtin_fabs(y)), s = __builtin_copysign(x, -y);
    uint32_t order = (uint32_t)(__builtin_fabs(x) < -y) | (uint32_t)(-x >= __builtin_fabs(z)) << 1;
    double chosen = order & 1 ? -x : __builtin_fabs(y);
    out->r = double_words(p) ^ double_words(q) * 3 ^ double_words(r) * 5;
    out->s = order;
    out->t = (uint32_t)(double_words(chosen) >> 32) ^ (uint32_t)(double_words(s) >> 29);
}

static void limits(const item_t *in, answer_t *out)
{
    float x = as_float(in->a), y = as_float(in->b);
    double z;
    __builtin_memcpy(&z, &in->x, 8);
    float unit = x > 0 ? (x < 1 ? x : 1) : 0, range = y < -2 ? -2 : (y > 3 ? 3 : y);
    double wide = z > 0 ? (z < 1 ? z : 1) : 0;
    float doubled = (x + y) * 2, halved = (x - y) * 0.5f, fourfold = (x * 0.25f - y) * 4;
    out->r = double_words(wide) ^ (uint64_t)float_word(fourfold) << 17;
    out->s = float_word(unit) ^ float_word(range) * 3;
    out->t = float_word(doubled) ^ float_word(halved) * 3;
}

static void roundings(const item_t *in, answer_t *out)
{
    float x = as_float(in->a), y = to_float(in->b) * 100;
    double z;
    __builtin_memcpy(&z, &in->x, 8);
    double w = to_double(in->y) * 1000;
    float p = __builtin_floorf(x), q = __builtin_ceilf(y), r = __builtin_truncf(-y);
    double s = __builtin_floor(z), t = __builtin_ceil(w), u = __builtin_trunc(-w);
    float v = __builtin_rintf(y);
    double even = __builtin_rint(w);
    out->r = double_words(s) ^ double_words(t) * 3 ^ double_words(u) * 5 ^ double_words(even) * 7;
    out->s = float_word(p) ^ float_word(q) * 3;
    out->t = float_word(r) ^ float_word(v) * 3;
}

static void halves_any(const item_t *in, answer_t *out)
{
    _Float16 x = as_half(in->a), y = as_half(in->b), z = as_half(in->a >> 16);
    _Float16 p = x + y, q = x * z, r = -x - y;
    uint32_t order = (uint32_t)(x < y) | (uint32_t)(x == z) << 1 | (uint32_t)(-x >= y) << 2 |
                     (uint32_t)(x != x) << 3;
    _Float16 least = x < y ? x : y, chosen = order & 1 ? -z : z;
    out->r =
        (uint64_t)half_word(p) << 48 | (uint64_t)half_word(q) << 32 | half_word(r) << 16 | order;
    out->s = half_word(least) | half_word(chosen) << 16;
    out->t = float_word((float)x) ^ (uint32_t)(double_words((double)z) >> 32);
}

static void halves_converted(const item_t *in, answer_t *out)
{
    double wide;
    __builtin_memcpy(&wide, &in->x, 8);
    double middle = to_double(in->y);
    float y = to_float(in->b) * 1000;
    _Float16 small = (_Float16)(int16_t)in->a, large = (_Float16)(uint16_t)in->b;
    _Float16 signed_word = (_Float16)(int32_t)(in->a >> 12), from_wide = (_Float16)wide;
    _Float16 from_middle = (_Float16)middle, from_single = (_Float16)as_float(in->a);
    _Float16 number = (_Float16)y;
    out->r = (uint64_t)half_word(small) << 48 | (uint64_t)half_word(large) << 32 |
             half_word(signed_word) << 16 | half_word(from_wide);
    out->s = half_word(from_middle) | half_word(from_single) << 16;
    out->t = (uint32_t)(int32_t)number ^ (uint32_t)(uint16_t)(int16_t)number << 13;
}

#define FLOATS(X)                                                                                  \
    X(signs_single)                                                                                \
    X(signs_double)                                                                                \
    X(limits)                                                                                      \
    X(roundings)                                                                                   \
    X(halves_any)                                                                                  \
    X(halves_converted)

#endif
