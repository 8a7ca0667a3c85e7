// SPDX-License-Identifier: Apache-2.0
// Vector operations on half precision. Single precision has more than twice the bits, so that a
// sum, product, quotient or root of halves that is rounded twice is rounded right.
#include "amd/isa/half.h"

static inline float med_h(float a, float b, float c)
{
    if (a != a || b != b || c != c) return min_h(min_h(a, b), c);
    return max_h(min_h(a, b), min_h(max_h(a, b), c));
}

static inline uint16_t to_half_down(float x) // towards zero
{
    uint16_t half = float_to_half(x);
    float back = half_to_float(half);
    if (x == x && fabsf(back) > fabsf(x)) half--;
    return half;
}

static inline uint16_t to_u16(float x)
{
    return x >= 65535 ? 65535 : x > 0 ? (uint16_t)x : 0;
}

static inline int16_t to_i16(float x)
{
    if (x != x) return 0;
    return x >= 32767 ? 32767 : x <= -32768 ? -32768 : (int16_t)x;
}

static uint32_t exponent_h(float x)
{
    int exponent = 0;
    if (isfinite(x)) frexpf(x, &exponent);
    return (uint32_t)exponent;
}

static float mantissa_h(float x)
{
    int exponent;
    return isfinite(x) ? frexpf(x, &exponent) : x;
}

static float scale_h(float x, int16_t by)
{
    return ldexpf(x, by < -80 ? -80 : by > 80 ? 80 : by);
}

static float div_fixup_h(float a, float b, float c)
{
    float sign = signbit(b) != signbit(c) ? -1.0f : 1.0f;
    if (c != c) return c;
    if (b != b) return b;
    if ((b == 0 && c == 0) || (isinf(b) && isinf(c))) return -NAN;
    if (b == 0 || isinf(c)) return sign * INFINITY;
    if (isinf(b) || c == 0) return sign * 0.0f;
    return copysignf(a, sign);
}

static inline uint32_t norm_i(float x)
{
    return (uint16_t)(int16_t)rintf(fmaxf(fminf(x == x ? x : 0, 1), -1) * 32767);
}
static inline uint32_t norm_u(float x)
{
    return (uint16_t)rintf(fmaxf(fminf(x == x ? x : 0, 1), 0) * 65535);
}

#define FMAC   OP_READS_DST
#define HIGH   OP_KEEP_HIGH
#define TWO_PI 6.283185307179586

#define OPS(X)                                                                                     \
    X(v_cvt_f16_f32, f16, f32, none, none, 0, a)                                                   \
    X(v_cvt_f32_f16, f32, f16, none, none, 0, a)                                                   \
    X(v_cvt_f16_u16, f16, u16, none, none, 0, (float)a)                                            \
    X(v_cvt_f16_i16, f16, i16, none, none, 0, (float)a)                                            \
    X(v_cvt_u16_f16, u16, f16, none, none, 0, to_u16(a))                                           \
    X(v_cvt_i16_f16, i16, f16, none, none, 0, to_i16(a))                                           \
    X(v_cvt_pkrtz_f16_f32, u32, f32, f32, none, 0,                                                 \
      to_half_down(a) | (uint32_t)to_half_down(b) << 16)                                           \
    X(v_cvt_pknorm_i16_f32, u32, f32, f32, none, 0, norm_i(a) | norm_i(b) << 16)                   \
    X(v_cvt_pknorm_u16_f32, u32, f32, f32, none, 0, norm_u(a) | norm_u(b) << 16)                   \
    X(v_cvt_pknorm_i16_f16, u32, f16, f16, none, 0, norm_i(a) | norm_i(b) << 16)                   \
    X(v_cvt_pknorm_u16_f16, u32, f16, f16, none, 0, norm_u(a) | norm_u(b) << 16)                   \
    X(v_cvt_norm_i16_f16, u16, f16, none, none, 0, norm_i(a))                                      \
    X(v_cvt_norm_u16_f16, u16, f16, none, none, 0, norm_u(a))                                      \
    X(v_pack_b32_f16, u32, u16, u16, none, 0, a | (uint32_t)b << 16)                               \
    X(v_add_f16, f16, f16, f16, none, 0, a + b)                                                    \
    X(v_sub_f16, f16, f16, f16, none, 0, a - b)                                                    \
    X(v_subrev_f16, f16, f16, f16, none, 0, b - a)                                                 \
    X(v_mul_f16, f16, f16, f16, none, 0, a *b)                                                     \
    X(v_max_f16, f16, f16, f16, none, 0, max_h(a, b))                                              \
    X(v_min_f16, f16, f16, f16, none, 0, min_h(a, b))                                              \
    X(v_ldexp_f16, f16, f16, i16, none, 0, scale_h(a, b))                                          \
    X(v_mac_f16, f16, f16, f16, f16, FMAC | HIGH, half_to_float(float_to_half(a * b)) + c)         \
    X(v_madmk_f16, f16, f16, f16, f16, OP_LITERAL_B | HIGH,                                        \
      half_to_float(float_to_half(a * b)) + c)                                                     \
    X(v_madak_f16, f16, f16, f16, f16, OP_LITERAL_C | HIGH,                                        \
      half_to_float(float_to_half(a * b)) + c)                                                     \
    X(v_mad_f16, f16, f16, f16, f16, HIGH, half_to_float(float_to_half(a *b)) + c)                 \
    X(v_mad_legacy_f16, f16, f16, f16, f16, 0, half_to_float(float_to_half(a *b)) + c)             \
    X(v_fma_f16, f16, f16, f16, f16, HIGH, fma_h(a, b, c))                                         \
    X(v_fma_legacy_f16, f16, f16, f16, f16, 0, fma_h(a, b, c))                                     \
    X(v_div_fixup_f16, f16, f16, f16, f16, HIGH, div_fixup_h(a, b, c))                             \
    X(v_div_fixup_legacy_f16, f16, f16, f16, f16, 0, div_fixup_h(a, b, c))                         \
    X(v_min3_f16, f16, f16, f16, f16, HIGH, min_h(min_h(a, b), c))                                 \
    X(v_max3_f16, f16, f16, f16, f16, HIGH, max_h(max_h(a, b), c))                                 \
    X(v_med3_f16, f16, f16, f16, f16, HIGH, med_h(a, b, c))                                        \
    X(v_rcp_f16, f16, f16, none, none, 0, 1 / a)                                                   \
    X(v_sqrt_f16, f16, f16, none, none, 0, sqrtf(a))                                               \
    X(v_rsq_f16, f16, f16, none, none, 0, 1 / sqrtf(a))                                            \
    X(v_log_f16, f16, f16, none, none, 0, log2f(a))                                                \
    X(v_exp_f16, f16, f16, none, none, 0, exp2f(a))                                                \
    X(v_frexp_mant_f16, f16, f16, none, none, 0, mantissa_h(a))                                    \
    X(v_frexp_exp_i16_f16, u16, f16, none, none, 0, exponent_h(a))                                 \
    X(v_floor_f16, f16, f16, none, none, 0, floorf(a))                                             \
    X(v_ceil_f16, f16, f16, none, none, 0, ceilf(a))                                               \
    X(v_trunc_f16, f16, f16, none, none, 0, truncf(a))                                             \
    X(v_rndne_f16, f16, f16, none, none, 0, __builtin_roundevenf(a))                               \
    X(v_fract_f16, f16, f16, none, none, 0, min_h(a - floorf(a), 0x1.ffcp-1f))                     \
    X(v_sin_f16, f16, f16, none, none, 0, (float)sin((double)a *TWO_PI))                           \
    X(v_cos_f16, f16, f16, none, none, 0, (float)cos((double)a *TWO_PI))

OPS(LANE_DEFINE)

static const op_t ops[] = {OPS(LANE_ROW)};
const op_list_t half_ops = {ops, sizeof ops / sizeof *ops};
