// SPDX-License-Identifier: Apache-2.0
// Part of <keel/kernel.h>: mathematics. The same code runs on every target, in vectors on a
// processor. Bounds are in units of the last place of the true result, for every target, with or
// without fused operations.
//
//   float and double, exactly rounded:
//     keel_sqrt  keel_fma  keel_abs  keel_floor  keel_ceil  keel_trunc  keel_rint  keel_copysign
//     keel_min  keel_max      the other number if one is not a number
//     keel_clamp(x, low, high)   low if x is not a number
//   float and double:
//     keel_exp  keel_exp2     2 ulp; subnormal results to 1 ulp more
//     keel_log  keel_log2     2 ulp; keel_log2 3 ulp
//     keel_sin  keel_cos      2 ulp and 2e-9 absolutely, double 3 ulp and 1e-22, up to 1e6; beyond
//                             that of no use
//     keel_pow                1 ulp, double 2; for bases >= 0, where -0 is 0; not a number
//                             for others
//     keel_tanh  keel_erf     3 ulp
//     keel_rsqrt              2 ulp
//     keel_mad(a, b, c)       a * b + c with one rounding where that is fast, else with two
//     keel_bits_of(x)         its bits, uint32_t or uint64_t; keel_float_of and keel_double_of
//                             make a number of these
//
// keel_abs, keel_min, keel_max and keel_clamp of integers are integers.
#ifndef KEEL_KERNEL_MATH_H_
#define KEEL_KERNEL_MATH_H_

#include <keel/kernel/double.h>
#include <keel/kernel/integer.h>

#define KEEL_EXACT_(name, x) _Generic((x), double: __builtin_##name, default: __builtin_##name##f)
#define KEEL_NUMBER_OF_(name, builtin, x)                                                          \
    _Generic((x), double: __builtin_##builtin, float: __builtin_##builtin##f, KEEL_INTEGERS_(name))
#define KEEL_MATH_(name, x)                                                                        \
    _Generic((x), double: keel_##name##_double, default: keel_##name##_float)

#define keel_sqrt(x)             KEEL_EXACT_(sqrt, x)(x)
#define keel_abs(x)              KEEL_NUMBER_OF_(abs, fabs, (x) + 0)(x)
#define keel_floor(x)            KEEL_EXACT_(floor, x)(x)
#define keel_ceil(x)             KEEL_EXACT_(ceil, x)(x)
#define keel_trunc(x)            KEEL_EXACT_(trunc, x)(x)
#define keel_rint(x)             KEEL_EXACT_(rint, x)(x)
#define keel_min(x, y)           KEEL_NUMBER_OF_(min, fmin, (x) + (y))(x, y)
#define keel_max(x, y)           KEEL_NUMBER_OF_(max, fmax, (x) + (y))(x, y)
#define keel_clamp(x, low, high) keel_min(keel_max(x, low), high)
#define keel_copysign(x, y)      KEEL_EXACT_(copysign, x)(x, y)
#define keel_fma(x, y, z)        KEEL_EXACT_(fma, (x) + (y) + (z))(x, y, z)
#define keel_exp(x)              KEEL_MATH_(exp, x)(x)
#define keel_exp2(x)             KEEL_MATH_(exp2, x)(x)
#define keel_log(x)              KEEL_MATH_(log, x)(x)
#define keel_log2(x)             KEEL_MATH_(log2, x)(x)
#define keel_sin(x)              KEEL_MATH_(sin, x)(x)
#define keel_cos(x)              KEEL_MATH_(cos, x)(x)
#define keel_tanh(x)             KEEL_MATH_(tanh, x)(x)
#define keel_rsqrt(x)            KEEL_MATH_(rsqrt, x)(x)
#define keel_mad(a, b, c)        KEEL_MATH_(mad, (a) + (b) + (c))(a, b, c)
#define keel_pow(x, y)           KEEL_MATH_(pow, (x) + (y))(x, y)
#define keel_erf(x)              KEEL_MATH_(erf, x)(x)
#define keel_bits_of(x)          KEEL_MATH_(bits_of, x)(x)

// Numbers as bits.
KEEL_INLINE_ uint32_t keel_bits_of_float(float x)
{
    uint32_t bits;
    __builtin_memcpy(&bits, &x, 4);
    return bits;
}

KEEL_INLINE_ float keel_float_of(uint32_t bits)
{
    float x;
    __builtin_memcpy(&x, &bits, 4);
    return x;
}

KEEL_INLINE_ float keel_mad_float(float a, float b, float c)
{
#if KEEL_GPU || defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

KEEL_INLINE_ float keel_rsqrt_float(float x)
{
    return 1.0f / __builtin_sqrtf(x);
}

// y * 2^n for -252 <= n <= 254, in two steps that neither overflow nor vanish too early.
KEEL_INLINE_ float keel_scale_(float y, int32_t n)
{
    int32_t half = n >> 1;
    y *= keel_float_of((uint32_t)(half + 127) << 23);
    return y * keel_float_of((uint32_t)(n - half + 127) << 23);
}

// x rounded to an integer, by adding and taking away a number whose last place is 1. *n is garbage
// where x is not a number.
KEEL_INLINE_ float keel_round_(float x, int32_t *n)
{
    float shifted = x + 0x1.8p23f;
    *n = (int32_t)(keel_bits_of_float(shifted) - 0x4b400000u);
    return shifted - 0x1.8p23f;
}

KEEL_INLINE_ float keel_clamp_(float x, float low, float high) // keeps what is not a number
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

KEEL_INLINE_ float keel_exp_float(float x)
{
    int32_t n;
    x = keel_clamp_(x, -104.0f, 89.0f);
    float k = keel_round_(x * 1.44269504f, &n);
    float r = keel_mad_float(k, -0x1.63p-1f, x); // ln 2 in two parts: the first product is exact
    r = keel_mad_float(k, 0x1.bd0106p-13f, r);
    float p = keel_mad_float(1.381455629e-03f, r, 8.368716024e-03f);
    p = keel_mad_float(p, r, 4.166838861e-02f);
    p = keel_mad_float(p, r, 1.666652063e-01f);
    p = keel_mad_float(p, r, 4.999999345e-01f);
    return keel_scale_(1.0f + keel_mad_float(r * r, p, r), n);
}

KEEL_INLINE_ float keel_exp2_float(float x)
{
    int32_t n;
    x = keel_clamp_(x, -151.0f, 129.0f);
    float f = x - keel_round_(x, &n);
    float p = keel_mad_float(1.535369751e-04f, f, 1.339889682e-03f);
    p = keel_mad_float(p, f, 9.618436207e-03f);
    p = keel_mad_float(p, f, 5.550332396e-02f);
    p = keel_mad_float(p, f, 2.402264792e-01f);
    p = keel_mad_float(p, f, 6.931472029e-01f);
    return keel_scale_(keel_mad_float(p, f, 1.0f), n);
}

// x = (1 + *m) * 2^*e with 1 + *m between the roots of 1/2 and 2, for positive finite x.
KEEL_INLINE_ void keel_split_(float x, float *m, float *e)
{
    int small = x < 0x1p-126f;
    uint32_t bits = keel_bits_of_float(small ? x * 0x1p23f : x) - 0x3f3504f3u;
    *e = (float)((int32_t)bits >> 23) - (small ? 23.0f : 0.0f);
    *m = keel_float_of((bits & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
}

// log(1 + m) - m + m * m / 2
KEEL_INLINE_ float keel_log_tail_(float m)
{
    float p = keel_mad_float(6.749430822e-02f, m, -1.167835101e-01f);
    p = keel_mad_float(p, m, 1.188831908e-01f);
    p = keel_mad_float(p, m, -1.240508789e-01f);
    p = keel_mad_float(p, m, 1.421945483e-01f);
    p = keel_mad_float(p, m, -1.666802561e-01f);
    p = keel_mad_float(p, m, 2.000212578e-01f);
    p = keel_mad_float(p, m, -2.500000904e-01f);
    p = keel_mad_float(p, m, 3.333331246e-01f);
    return p * m * (m * m);
}

// What a logarithm is at the ends: y where there is one.
KEEL_INLINE_ float keel_log_ends_(float x, float y)
{
    y = x == 0.0f ? -__builtin_inff() : y;
    y = x == __builtin_inff() ? x : y;
    return x >= 0.0f ? y : __builtin_nanf("");
}

KEEL_INLINE_ float keel_log_float(float x)
{
    float m, e;
    keel_split_(x, &m, &e);
    float tail = keel_mad_float(e, -0x1.bd0106p-13f, keel_log_tail_(m));
    float y = keel_mad_float(-0.5f * m, m, tail) + m;
    return keel_log_ends_(x, keel_mad_float(e, 0x1.63p-1f, y));
}

KEEL_INLINE_ float keel_log2_float(float x)
{
    float m, e;
    keel_split_(x, &m, &e);
    float tail = keel_mad_float(-0.5f * m, m, keel_log_tail_(m));
    // (m + tail) / ln 2, where 1 / ln 2 is 1 + 0.4427
    float y = keel_mad_float(tail, 0.44269504f, m * 0.44269504f) + tail + m;
    return keel_log_ends_(x, y + e);
}

// In double precision: an error of the logarithm would be multiplied by y.
KEEL_INLINE_ double keel_log2_long_(float x)
{
    float m, e;
    keel_split_(x, &m, &e);
    double s = (double)m / ((double)m + 2.0), z = s * s;
    double p = 1.0 / 15;
    p = p * z + 1.0 / 13;
    p = p * z + 1.0 / 11;
    p = p * z + 1.0 / 9;
    p = p * z + 1.0 / 7;
    p = p * z + 1.0 / 5;
    p = p * z + 1.0 / 3;
    p = p * z + 1.0;
    return (double)e + s * p * 2.8853900817779268147;
}

KEEL_INLINE_ float keel_exp2_long_(double x)
{
    x = x < -200.0 ? -200.0 : x;
    x = x > 200.0 ? 200.0 : x;
    double shifted = x + 0x1.8p52, k = shifted - 0x1.8p52, f = (x - k) * 0.69314718055994530942;
    int32_t n = x == x ? (int32_t)k : 0;
    double p = 1.0 / 40320;
    p = p * f + 1.0 / 5040;
    p = p * f + 1.0 / 720;
    p = p * f + 1.0 / 120;
    p = p * f + 1.0 / 24;
    p = p * f + 1.0 / 6;
    p = p * f + 0.5;
    p = p * f + 1.0;
    p = p * f + 1.0;
    uint64_t bits = (uint64_t)(n + 1023) << 52;
    double scale;
    __builtin_memcpy(&scale, &bits, 8);
    return (float)(p * scale);
}

KEEL_INLINE_ float keel_pow_float(float x, float y)
{
    double product = keel_log2_long_(x) * (double)y;
    product = x == __builtin_inff() ? (double)y * (double)__builtin_inff() : product;
    product = x == 0.0f ? (double)y * -(double)__builtin_inff() : product;
    float power = keel_exp2_long_(product);
    power = x >= 0.0f ? power : __builtin_nanf("");
    return y == 0.0f || x == 1.0f ? 1.0f : power;
}

// x less the nearest multiple of pi / 2, whose number is *quadrant modulo 4.
KEEL_INLINE_ float keel_quadrant_(float x, uint32_t *quadrant)
{
    double shifted = (double)x * 0.63661977236758134308 + 0x1.8p52, k = shifted - 0x1.8p52;
    uint64_t bits;
    __builtin_memcpy(&bits, &shifted, 8);
    *quadrant = (uint32_t)bits;
    // pi / 2 in two parts: the first product is exact.
    return (float)(((double)x - k * 0x1.921fb544p0) - k * 0x1.0b4611a626331p-34);
}

KEEL_INLINE_ float keel_sine_(float r, uint32_t quadrant)
{
    float z = r * r;
    float s = keel_mad_float(-1.951084606e-04f, z, 8.332131496e-03f);
    s = keel_mad_float(keel_mad_float(s, z, -1.666665422e-01f), z * r, r);
    float c = keel_mad_float(2.443119629e-05f, z, -1.388730590e-03f);
    c = keel_mad_float(keel_mad_float(c, z, 4.166664565e-02f), z * z,
                       keel_mad_float(z, -0.5f, 1.0f));
    float y = quadrant & 1 ? c : s;
    return quadrant & 2 ? -y : y;
}

KEEL_INLINE_ float keel_sin_float(float x)
{
    uint32_t quadrant;
    float r = keel_quadrant_(x, &quadrant);
    return keel_sine_(r, quadrant);
}

KEEL_INLINE_ float keel_cos_float(float x)
{
    uint32_t quadrant;
    float r = keel_quadrant_(x, &quadrant);
    return keel_sine_(r, quadrant + 1);
}

KEEL_INLINE_ float keel_tanh_float(float x)
{
    float size = __builtin_fabsf(x), z = x * x;
    float p = keel_mad_float(-5.716843287e-03f, z, 2.065038981e-02f);
    p = keel_mad_float(p, z, -5.374343070e-02f);
    p = keel_mad_float(p, z, 1.333149036e-01f);
    p = keel_mad_float(p, z, -3.333328388e-01f);
    float small = keel_mad_float(p * z, x, x);
    float large = 1.0f - 2.0f / (keel_exp_float(2.0f * size) + 1.0f);
    return size < 0.625f ? small : __builtin_copysignf(large, x);
}

KEEL_INLINE_ float keel_erf_float(float x)
{
    float size = __builtin_fabsf(x), z = x * x;
    float p = keel_mad_float(7.889038198e-05f, z, -8.020816936e-04f);
    p = keel_mad_float(p, z, 5.189532608e-03f);
    p = keel_mad_float(p, z, -2.685444318e-02f);
    p = keel_mad_float(p, z, 1.128360014e-01f);
    p = keel_mad_float(p, z, -3.761262713e-01f);
    p = keel_mad_float(p, z, 1.128379166e+00f);
    float t = keel_clamp_(size, 0.0f, 4.0f); // log(1 - erf)
    float q = keel_mad_float(-2.168851471e-05f, t, 4.413565629e-04f);
    q = keel_mad_float(q, t, -4.204664418e-03f);
    q = keel_mad_float(q, t, 2.520853966e-02f);
    q = keel_mad_float(q, t, -1.084190352e-01f);
    q = keel_mad_float(q, t, -6.332194582e-01f);
    q = keel_mad_float(q, t, -1.129578649e+00f);
    q = keel_mad_float(q, t, 1.880887964e-04f);
    return size < 1.0f ? p * x : __builtin_copysignf(1.0f - keel_exp_float(q), x);
}

#endif
