// SPDX-License-Identifier: Apache-2.0
// Part of <keel/kernel.h>: mathematics of double precision, for math.h.
#ifndef KEEL_KERNEL_DOUBLE_H_
#define KEEL_KERNEL_DOUBLE_H_

KEEL_INLINE_ uint64_t keel_bits_of_double(double x)
{
    uint64_t bits;
    __builtin_memcpy(&bits, &x, 8);
    return bits;
}

KEEL_INLINE_ double keel_double_of(uint64_t bits)
{
    double x;
    __builtin_memcpy(&x, &bits, 8);
    return x;
}

KEEL_INLINE_ double keel_mad_double(double a, double b, double c)
{
#if KEEL_GPU || defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return __builtin_fma(a, b, c);
#else
    return a * b + c;
#endif
}

// x rounded to an integer, whose low bits are *n; garbage where x is not a number.
KEEL_INLINE_ double keel_round_double_(double x, uint64_t *n)
{
    double shifted = x + 0x1.8p52;
    *n = keel_bits_of_double(shifted);
    return shifted - 0x1.8p52;
}

// y * 2^n for -2044 <= n <= 2046, in two steps that neither overflow nor vanish too early.
KEEL_INLINE_ double keel_scale_double_(double y, int32_t n)
{
    int32_t half = n >> 1;
    y *= keel_double_of((uint64_t)(half + 1023) << 52);
    return y * keel_double_of((uint64_t)(n - half + 1023) << 52);
}

// e^r for |r| up to half of ln 2, by its series.
KEEL_INLINE_ double keel_exp_near_0_(double r)
{
    double p = 1.0 / 6227020800;
    p = keel_mad_double(p, r, 1.0 / 479001600);
    p = keel_mad_double(p, r, 1.0 / 39916800);
    p = keel_mad_double(p, r, 1.0 / 3628800);
    p = keel_mad_double(p, r, 1.0 / 362880);
    p = keel_mad_double(p, r, 1.0 / 40320);
    p = keel_mad_double(p, r, 1.0 / 5040);
    p = keel_mad_double(p, r, 1.0 / 720);
    p = keel_mad_double(p, r, 1.0 / 120);
    p = keel_mad_double(p, r, 1.0 / 24);
    p = keel_mad_double(p, r, 1.0 / 6);
    p = keel_mad_double(p, r, 0.5);
    return 1.0 + keel_mad_double(r * r, p, r);
}

KEEL_INLINE_ double keel_clamp_double_(double x, double low, double high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

KEEL_INLINE_ double keel_exp_double(double x)
{
    uint64_t n;
    x = keel_clamp_double_(x, -746.0, 710.0);
    double k = keel_round_double_(x * 0x1.71547652b82fep0, &n);
    double r = keel_mad_double(k, -0x1.62e42fefa38p-1, x); // the product is exact
    r = keel_mad_double(k, -0x1.ef35793c7673p-45, r);
    return keel_scale_double_(keel_exp_near_0_(r), (int32_t)(uint32_t)n);
}

KEEL_INLINE_ double keel_exp2_double(double x)
{
    uint64_t n;
    x = keel_clamp_double_(x, -1076.0, 1025.0);
    double r = (x - keel_round_double_(x, &n)) * 0x1.62e42fefa39efp-1;
    return keel_scale_double_(keel_exp_near_0_(r), (int32_t)(uint32_t)n);
}

// x = (1 + *m) * 2^*e with 1 + *m between the roots of 1/2 and 2, for positive finite x; returns
// m - log(1 + m).
KEEL_INLINE_ double keel_log_rest_double_(double x, double *m, double *e)
{
    int small = x < 0x1p-1022;
    uint64_t bits = keel_bits_of_double(small ? x * 0x1p52 : x) - 0x3fe6a09e667f3bcdu;
    *e = (double)(int32_t)((int64_t)bits >> 52) - (small ? 52.0 : 0.0);
    *m = keel_double_of((bits & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
    double s = *m / (2.0 + *m), z = s * s; // log(1 + m) is 2 s (1 + z / 3 + z^2 / 5 ...)
    double p = 2.0 / 23;
    p = keel_mad_double(p, z, 2.0 / 21);
    p = keel_mad_double(p, z, 2.0 / 19);
    p = keel_mad_double(p, z, 2.0 / 17);
    p = keel_mad_double(p, z, 2.0 / 15);
    p = keel_mad_double(p, z, 2.0 / 13);
    p = keel_mad_double(p, z, 2.0 / 11);
    p = keel_mad_double(p, z, 2.0 / 9);
    p = keel_mad_double(p, z, 2.0 / 7);
    p = keel_mad_double(p, z, 2.0 / 5);
    p = keel_mad_double(p, z, 2.0 / 3);
    return s * (*m - p * z);
}

KEEL_INLINE_ double keel_log_ends_double_(double x, double y)
{
    y = x == 0.0 ? -__builtin_inf() : y;
    y = x == __builtin_inf() ? x : y;
    return x >= 0.0 ? y : __builtin_nan("");
}

KEEL_INLINE_ double keel_log_double(double x)
{
    double m, e, rest = keel_log_rest_double_(x, &m, &e);
    double y = m - keel_mad_double(e, -0x1.ef35793c7673p-45, rest);
    return keel_log_ends_double_(x, keel_mad_double(e, 0x1.62e42fefa38p-1, y));
}

KEEL_INLINE_ double keel_log2_double(double x)
{
    double m, e, rest = keel_log_rest_double_(x, &m, &e);
    // (m - rest) / ln 2, where 1 / ln 2 is 1 + 0.4427
    double y = (m - rest) * 0x1.c551d94ae0bf8p-2 - rest + m;
    return keel_log_ends_double_(x, y + e);
}

// x less the nearest multiple of pi / 2, whose number is *quadrant modulo 4.
KEEL_INLINE_ double keel_quadrant_double_(double x, uint32_t *quadrant)
{
    uint64_t n;
    double k = keel_round_double_(x * 0x1.45f306dc9c883p-1, &n);
    *quadrant = (uint32_t)n;
    // pi / 2 in three parts: the first two products are exact.
    double r = keel_mad_double(k, -0x1.921fb544p0, x);
    r = keel_mad_double(k, -0x1.0b4611a6p-34, r);
    return keel_mad_double(k, -0x1.3198a2e037073p-69, r);
}

KEEL_INLINE_ double keel_sine_double_(double r, uint32_t quadrant)
{
    double z = r * r;
    double s = 1.0 / 355687428096000;
    s = keel_mad_double(s, z, -1.0 / 1307674368000);
    s = keel_mad_double(s, z, 1.0 / 6227020800);
    s = keel_mad_double(s, z, -1.0 / 39916800);
    s = keel_mad_double(s, z, 1.0 / 362880);
    s = keel_mad_double(s, z, -1.0 / 5040);
    s = keel_mad_double(s, z, 1.0 / 120);
    s = keel_mad_double(s, z, -1.0 / 6);
    s = keel_mad_double(s, z * r, r);
    double c = 1.0 / 20922789888000;
    c = keel_mad_double(c, z, -1.0 / 87178291200);
    c = keel_mad_double(c, z, 1.0 / 479001600);
    c = keel_mad_double(c, z, -1.0 / 3628800);
    c = keel_mad_double(c, z, 1.0 / 40320);
    c = keel_mad_double(c, z, -1.0 / 720);
    c = keel_mad_double(c, z, 1.0 / 24);
    c = keel_mad_double(c, z * z, keel_mad_double(z, -0.5, 1.0));
    double y = quadrant & 1 ? c : s;
    return quadrant & 2 ? -y : y;
}

KEEL_INLINE_ double keel_sin_double(double x)
{
    uint32_t quadrant;
    double r = keel_quadrant_double_(x, &quadrant);
    return keel_sine_double_(r, quadrant);
}

KEEL_INLINE_ double keel_cos_double(double x)
{
    uint32_t quadrant;
    double r = keel_quadrant_double_(x, &quadrant);
    return keel_sine_double_(r, quadrant + 1);
}

KEEL_INLINE_ double keel_rsqrt_double(double x)
{
    return 1.0 / __builtin_sqrt(x);
}

KEEL_INLINE_ double keel_tanh_double(double x)
{
    double size = __builtin_fabs(x), z = x * x;
    // Lambert's fraction x / (1 + z / (3 + z / (5 + ... z / 15))), as x less a small part of it.
    double p = keel_mad_double(z + 594.0, z, 45045.0);
    p = keel_mad_double(p, z, 675675.0);
    double q = keel_mad_double(z + 630.0, z, 51975.0);
    q = keel_mad_double(q, z, 945945.0);
    q = keel_mad_double(q, z, 2027025.0);
    double small = x - x * (z * p / q);
    double large = 1.0 - 2.0 / (keel_exp_double(2.0 * size) + 1.0);
    return size < 0.625 ? small : __builtin_copysign(large, x);
}

#endif
