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

// x = (1 + *m) * 2^*e with 1 + *m between the roots of 1/2 and 2, for positive finite x.
KEEL_INLINE_ void keel_split_double_(double x, double *m, double *e)
{
    int small = x < 0x1p-1022;
    uint64_t bits = keel_bits_of_double(small ? x * 0x1p52 : x) - 0x3fe6a09e667f3bcdu;
    *e = (double)(int32_t)((int64_t)bits >> 52) - (small ? 52.0 : 0.0);
    *m = keel_double_of((bits & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
}

// The same; returns m - log(1 + m).
KEEL_INLINE_ double keel_log_rest_double_(double x, double *m, double *e)
{
    keel_split_double_(x, m, e);
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

KEEL_INLINE_ double keel_erf_double(double x)
{
    double size = __builtin_fabs(x), z = x * x;
    double p = 5.9571761477489114e-11;
    p = keel_mad_double(p, z, -1.13728488567916737e-9);
    p = keel_mad_double(p, z, 1.46597752740474358e-8);
    p = keel_mad_double(p, z, -1.6350312701054695e-7);
    p = keel_mad_double(p, z, 1.6461000484121368e-6);
    p = keel_mad_double(p, z, -1.49255952668311816e-5);
    p = keel_mad_double(p, z, 1.20553311116427109e-4);
    p = keel_mad_double(p, z, -8.54832698083378991e-4);
    p = keel_mad_double(p, z, 5.22397762481801447e-3);
    p = keel_mad_double(p, z, -2.68661706450767932e-2);
    p = keel_mad_double(p, z, 1.12837916709548787e-1);
    p = keel_mad_double(p, z, -3.76126389031837481e-1);
    p = keel_mad_double(p, z, 1.12837916709551257);
    // e^(x^2) * (1 - erf x) for x from 1 to 6, where t runs from 1 to -1
    double s = keel_clamp_double_(size, 1.0, 6.0), t = 14.4 / (s + 3.0) - 2.6;
    double q = 6.0857915906870914641e-12;
    q = keel_mad_double(q, t, -6.0474059459917040209e-12);
    q = keel_mad_double(q, t, -2.5715114296032549869e-10);
    q = keel_mad_double(q, t, 2.6381508985080732577e-10);
    q = keel_mad_double(q, t, 1.1339538061744706644e-8);
    q = keel_mad_double(q, t, 4.5267007642487407301e-9);
    q = keel_mad_double(q, t, -5.5412744784677132391e-7);
    q = keel_mad_double(q, t, -2.4255574719050316468e-6);
    q = keel_mad_double(q, t, 1.9563583246137113891e-5);
    q = keel_mad_double(q, t, 3.3160296057641249655e-4);
    q = keel_mad_double(q, t, 2.4793146970781856542e-3);
    q = keel_mad_double(q, t, 1.2713147695692197103e-2);
    q = keel_mad_double(q, t, 4.9698445403394641352e-2);
    q = keel_mad_double(q, t, 1.543611742943691723e-1);
    q = keel_mad_double(q, t, 2.079832913334288618e-1);
    double large = __builtin_copysign(1.0 - q * keel_exp_double(-s * s), x);
    return size < 1.0 ? p * x : large;
}

// A number of twice the places: h + e, where e is below the last place of h.
typedef struct keel_pair_t_ {
    double h, e;
} keel_pair_t_;

// a + b without an error.
KEEL_INLINE_ keel_pair_t_ keel_pair_sum_(double a, double b)
{
    double h = a + b, part = h - a;
    return (keel_pair_t_){h, (a - (h - part)) + (b - part)};
}

// a * b without an error, for numbers that are not huge.
KEEL_INLINE_ keel_pair_t_ keel_pair_product_(double a, double b)
{
    double h = a * b;
#if KEEL_GPU || defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return (keel_pair_t_){h, __builtin_fma(a, b, -h)};
#else
    // Each in two parts of 26 bits, whose products are exact.
    double wide = a * 0x1.0000002p27, upper = wide - (wide - a), lower = a - upper;
    double wide_b = b * 0x1.0000002p27, upper_b = wide_b - (wide_b - b), lower_b = b - upper_b;
    double e = upper * upper_b - h + upper * lower_b + lower * upper_b + lower * lower_b;
    return (keel_pair_t_){h, e};
#endif
}

KEEL_INLINE_ keel_pair_t_ keel_pair_times_(keel_pair_t_ a, keel_pair_t_ b)
{
    keel_pair_t_ p = keel_pair_product_(a.h, b.h);
    return keel_pair_sum_(p.h, p.e + (a.h * b.e + a.e * b.h));
}

// The logarithm of a positive finite x, whose error a power multiplies by y: 2^-62 of it.
KEEL_INLINE_ keel_pair_t_ keel_log2_pair_(double x)
{
    double m, exponent;
    keel_split_double_(x, &m, &exponent);
    keel_pair_t_ d = keel_pair_sum_(2.0, m), s = {m / d.h, 0};
    keel_pair_t_ p = keel_pair_product_(s.h, d.h);
    s.e = (m - p.h - p.e - s.h * d.e) / d.h;
    keel_pair_t_ z = keel_pair_times_(s, s); // log(1 + m) is 2 s (1 + z / 3 + z^2 / 5 ...)
    double r = 1.0 / 25;
    r = keel_mad_double(r, z.h, 1.0 / 23);
    r = keel_mad_double(r, z.h, 1.0 / 21);
    r = keel_mad_double(r, z.h, 1.0 / 19);
    r = keel_mad_double(r, z.h, 1.0 / 17);
    r = keel_mad_double(r, z.h, 1.0 / 15);
    r = keel_mad_double(r, z.h, 1.0 / 13);
    r = keel_mad_double(r, z.h, 1.0 / 11);
    r = keel_mad_double(r, z.h, 1.0 / 9);
    r = keel_mad_double(r, z.h, 1.0 / 7);
    r = keel_mad_double(r, z.h, 1.0 / 5);
    keel_pair_t_ third = keel_pair_sum_(0x1.5555555555555p-2, r * z.h);
    third.e += 0x1.5555555555555p-56;
    keel_pair_t_ tail = keel_pair_times_(keel_pair_times_(z, third), s);
    keel_pair_t_ log = keel_pair_sum_(s.h, tail.h);
    log.e += tail.e + s.e;
    log = keel_pair_times_(log, (keel_pair_t_){0x1.71547652b82fep1, 0x1.777d0ffda0d24p-55});
    keel_pair_t_ sum = keel_pair_sum_(exponent, log.h);
    return keel_pair_sum_(sum.h, sum.e + log.e);
}

KEEL_INLINE_ double keel_pow_double(double x, double y)
{
    keel_pair_t_ log = keel_log2_pair_(x), p = keel_pair_product_(log.h, y);
    p.h = x == __builtin_inf() ? y * __builtin_inf() : p.h;
    p.h = x == 0.0 ? y * -__builtin_inf() : p.h;
    double most = keel_clamp_double_(p.h, -1080.0, 1030.0);
    double rest = most == p.h ? p.e + log.e * y : 0.0;
    uint64_t n;
    double f = most - keel_round_double_(most, &n);
    double power = keel_exp_near_0_((f + rest) * 0x1.62e42fefa39efp-1);
    power = keel_scale_double_(power, (int32_t)(uint32_t)n);
    power = x >= 0.0 ? power : __builtin_nan("");
    return y == 0.0 || x == 1.0 ? 1.0 : power;
}

#endif
