// SPDX-License-Identifier: Apache-2.0
// More functions for same.h: pairs of 16 bits in a word, bytes, and dot products, for which the
// device has instructions of its own.
#ifndef TESTS_SIM_AMD_KERNELS_PACKED_H_
#define TESTS_SIM_AMD_KERNELS_PACKED_H_

typedef uint16_t pair_t __attribute__((vector_size(4)));
typedef int16_t signed_pair_t __attribute__((vector_size(4)));
typedef _Float16 half_pair_t __attribute__((vector_size(4)));

#define PAIR_WORD(value)                                                                           \
    ({                                                                                             \
        uint32_t pair_word;                                                                        \
        __builtin_memcpy(&pair_word, &(value), 4);                                                 \
        pair_word;                                                                                 \
    })

static inline pair_t to_pair(uint32_t word)
{
    pair_t pair;
    __builtin_memcpy(&pair, &word, 4);
    return pair;
}

static inline signed_pair_t to_signed_pair(uint32_t word)
{
    signed_pair_t pair;
    __builtin_memcpy(&pair, &word, 4);
    return pair;
}

static inline half_pair_t to_halves(uint64_t bits)
{
    return (half_pair_t){(_Float16)to_float((uint32_t)bits),
                         (_Float16)to_float((uint32_t)(bits >> 32))};
}

// Constants have forms that fit into an instruction; each half has a choice of its own.
static void pair_constants(const item_t *in, answer_t *out)
{
    pair_t x = to_pair(in->a), y = to_pair(in->b), swapped = {x[1], x[0]}, low = {y[0], y[0]};
    pair_t p = x + (pair_t){0, 0x3f80}, q = y * (pair_t){3, 3} + (pair_t){1, 2};
    pair_t r = swapped * (pair_t){0x3f80, 0x3f80}, s = low + (pair_t){64, 64};
    pair_t t = x + (pair_t){5, 0}, u = y + (pair_t){0, 5}, v = swapped - (pair_t){0xffff, 0xffff};
    out->r = (uint64_t)PAIR_WORD(p) << 32 | PAIR_WORD(q);
    out->s = PAIR_WORD(r) ^ PAIR_WORD(t);
    out->t = PAIR_WORD(s) ^ PAIR_WORD(u) * 3 ^ PAIR_WORD(v) * 5;
}

static void pair_shifts(const item_t *in, answer_t *out)
{
    pair_t x = to_pair(in->a), by = to_pair(in->b) & 15;
    signed_pair_t y = to_signed_pair(in->a);
    pair_t left = x << by, right = x >> by, two = x << 2;
    signed_pair_t arithmetic = y >> (signed_pair_t)by;
    out->r = (uint64_t)PAIR_WORD(left) << 32 | PAIR_WORD(right);
    out->s = PAIR_WORD(arithmetic);
    out->t = PAIR_WORD(two);
}

static void pair_limits(const item_t *in, answer_t *out)
{
    pair_t x = to_pair(in->a), y = to_pair(in->b), low, high;
    signed_pair_t sx = to_signed_pair(in->a), sy = to_signed_pair(in->b), slow, shigh;
    for (unsigned k = 0; k < 2; k++) {
        low[k] = x[k] < y[k] ? x[k] : y[k];
        high[k] = x[k] > 700 ? x[k] : 700;
        slow[k] = sx[k] < sy[k] ? sx[k] : sy[k];
        shigh[k] = sx[k] > -5 ? sx[k] : -5;
    }
    out->r = (uint64_t)PAIR_WORD(low) << 32 | PAIR_WORD(high);
    out->s = PAIR_WORD(slow);
    out->t = PAIR_WORD(shigh);
}

// Operations on halves round once each; hosts may lack them, and compute in single precision.
#ifdef __AMDGCN__
#define HALVES(x, operator, y) ((x) operator(y))
#else
#define HALVES(x, operator, y)                                                                     \
    ((half_pair_t){(_Float16)((float)(x)[0] operator(float)(y)[0]),                                \
                   (_Float16)((float)(x)[1] operator(float)(y)[1])})
#endif

static void half_pairs(const item_t *in, answer_t *out)
{
    half_pair_t x = to_halves(in->x), y = to_halves(in->y), swapped = {y[1], y[0]};
    half_pair_t negated = {-x[0], x[1]}, one = {1, 1}, some = {(_Float16)0.5, -2}, low = {4, 0};
    half_pair_t p = HALVES(x, *, swapped), q = HALVES(negated, +, y), r = HALVES(x, *, some);
    half_pair_t s = HALVES(y, -, one), t = HALVES(x, +, low);
    out->r = (uint64_t)PAIR_WORD(p) << 32 | PAIR_WORD(q);
    out->s = PAIR_WORD(r) ^ PAIR_WORD(t) * 3;
    out->t = PAIR_WORD(s);
}

static void mixed_sums(const item_t *in, answer_t *out)
{
    half_pair_t x = to_halves(in->x), y = to_halves(in->y);
    float f = to_float(in->a);
    _Float16 low = (_Float16)__builtin_fmaf((float)x[1], f, (float)y[0]);
    _Float16 high = (_Float16)__builtin_fmaf(-(float)x[0], (float)y[1], f);
    half_pair_t both = {low, high};
    out->r = PAIR_WORD(both);
    out->s = float_word(__builtin_fmaf((float)x[0], f, -(float)y[1]));
    out->t = float_word(__builtin_fmaf((float)x[1], 2.0f, __builtin_fabsf((float)y[0])));
}

static void bytes(const item_t *in, answer_t *out)
{
    uint32_t a = in->a, b = in->b;
    uint8_t p = (uint8_t)((a >> 8) + (b >> 24)), q = (uint8_t)((a >> 16) * (b & 255));
    int8_t r = (int8_t)((int8_t)(a >> 24) - (int8_t)(b >> 8));
    float f = (float)(uint8_t)(a >> 8) + (float)(uint8_t)(b >> 16) * (float)(uint8_t)(a >> 24);
    out->r = (uint64_t)p << 40 | (uint64_t)q << 8 | (uint64_t)(uint8_t)r << 56;
    out->s = ((a >> 16) & (b & 0xffff)) | (uint32_t)(int16_t)(a ^ b) << 3;
    out->t = float_word(f) + (uint32_t)__builtin_popcount((uint16_t)a) * (uint16_t)(b >> 16);
}

#if defined __gfx906__ || defined __gfx908__ || defined __gfx90a__ || defined __gfx942__
typedef short dot_pair_t __attribute__((ext_vector_type(2)));
typedef unsigned short dot_unsigned_t __attribute__((ext_vector_type(2)));
typedef _Float16 dot_half_t __attribute__((ext_vector_type(2)));
#define DOT2_SIGNED(a, b, c)                                                                       \
    __builtin_amdgcn_sdot2(__builtin_bit_cast(dot_pair_t, a), __builtin_bit_cast(dot_pair_t, b),   \
                           (int)(c), false)
#define DOT2_UNSIGNED(a, b, c)                                                                     \
    __builtin_amdgcn_udot2(__builtin_bit_cast(dot_unsigned_t, a),                                  \
                           __builtin_bit_cast(dot_unsigned_t, b), c, false)
#define DOT2_HALVES(a, b, c)                                                                       \
    __builtin_amdgcn_fdot2(__builtin_bit_cast(dot_half_t, a), __builtin_bit_cast(dot_half_t, b),   \
                           c, false)
#define DOT4_SIGNED(a, b, c)   __builtin_amdgcn_sdot4((int)(a), (int)(b), (int)(c), false)
#define DOT4_UNSIGNED(a, b, c) __builtin_amdgcn_udot4(a, b, c, false)
#define DOT4_CLAMPED(a, b, c)  __builtin_amdgcn_sdot4((int)(a), (int)(b), (int)(c), true)
#define DOT8_SIGNED(a, b, c)   __builtin_amdgcn_sdot8((int)(a), (int)(b), (int)(c), false)
#define DOT8_UNSIGNED(a, b, c) __builtin_amdgcn_udot8(a, b, c, false)
#else
static inline int64_t dot(uint32_t a, uint32_t b, unsigned width, bool is_signed)
{
    int64_t sum = 0, sign = is_signed ? 1 << (width - 1) : 0;
    for (unsigned k = 0; k < 32; k += width) {
        int64_t mask = (1 << width) - 1, x = a >> k & mask, y = b >> k & mask;
        sum += ((x ^ sign) - sign) * ((y ^ sign) - sign);
    }
    return sum;
}
static inline int32_t dot_clamp(int64_t sum)
{
    return sum < INT32_MIN ? INT32_MIN : sum > INT32_MAX ? INT32_MAX : (int32_t)sum;
}
#define DOT2_SIGNED(a, b, c)   ((uint32_t)dot(PAIR_WORD(a), PAIR_WORD(b), 16, true) + (c))
#define DOT2_UNSIGNED(a, b, c) ((uint32_t)dot(PAIR_WORD(a), PAIR_WORD(b), 16, false) + (c))
#define DOT2_HALVES(a, b, c)   ((float)(a)[0] * (float)(b)[0] + (float)(a)[1] * (float)(b)[1] + (c))
#define DOT4_SIGNED(a, b, c)   ((uint32_t)dot(a, b, 8, true) + (c))
#define DOT4_UNSIGNED(a, b, c) ((uint32_t)dot(a, b, 8, false) + (c))
#define DOT4_CLAMPED(a, b, c)  dot_clamp(dot(a, b, 8, true) + (int32_t)(c))
#define DOT8_SIGNED(a, b, c)   ((uint32_t)dot(a, b, 4, true) + (c))
#define DOT8_UNSIGNED(a, b, c) ((uint32_t)dot(a, b, 4, false) + (c))
#endif

static void dots_integer(const item_t *in, answer_t *out)
{
    uint32_t a = in->a, b = in->b, c = (uint32_t)in->x;
    pair_t x = to_pair(a), y = to_pair(b), swapped = {x[1], x[0]}, three = {3, 3}, ones = {~0, ~0};
    uint32_t p = (uint32_t)DOT2_SIGNED(x, three, c) ^ (uint32_t)DOT2_SIGNED(y, ones, c) * 3;
    uint32_t q = (uint32_t)DOT2_SIGNED(swapped, y, c) + DOT2_UNSIGNED(x, y, c) * 7;
    out->r = (uint64_t)p << 32 | q;
    out->s = (uint32_t)DOT4_SIGNED(a, b, c) ^ DOT4_UNSIGNED(a, b, c) * 5 ^
             (uint32_t)DOT4_CLAMPED(a, b, c) * 9;
    out->t = (uint32_t)DOT8_SIGNED(a, b, c) ^ DOT8_UNSIGNED(a, b, c) * 5;
}

static void dots_half(const item_t *in, answer_t *out)
{
    half_pair_t x = to_halves(in->x), y = to_halves(in->y), swapped = {x[1], x[0]};
    half_pair_t ones = {1, 1}, low = {2, 0}, negated = {-x[0], x[1]};
    float c = to_float(in->a), minus = -c;
    out->r =
        (uint64_t)float_word(DOT2_HALVES(x, y, c)) << 32 | float_word(DOT2_HALVES(x, ones, minus));
    out->s = float_word(DOT2_HALVES(swapped, y, minus)) ^ float_word(DOT2_HALVES(y, low, c)) * 3;
    out->t = float_word(DOT2_HALVES(negated, y, c));
}

#define PACKED(X)                                                                                  \
    X(pair_constants)                                                                              \
    X(pair_shifts)                                                                                 \
    X(pair_limits)                                                                                 \
    X(half_pairs)                                                                                  \
    X(mixed_sums)                                                                                  \
    X(bytes)                                                                                       \
    X(dots_integer)                                                                                \
    X(dots_half)

#endif
