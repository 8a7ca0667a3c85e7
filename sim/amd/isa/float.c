// SPDX-License-Identifier: Apache-2.0
// Vector operations on single and double precision. Approximations of the hardware (v_rcp_f32,
// v_exp_f32 and their like) are as exact here as the C library is.
#include <math.h>

#include "amd/isa/lanes.h"

static inline float flush(float x)
{
    return float_bits(x) & 0x7f800000 ? x : x * 0.0f;
}

static inline float mad(float a, float b, float c)
{
    return flush(flush(a) * flush(b) + flush(c));
}

// Of a number and no number the number is taken, and of zeros the one with the right sign.
static inline float min_f(float a, float b)
{
    if (a < b || b != b) return a;
    if (b < a || a != a) return b;
    return bits_float(float_bits(a) | float_bits(b));
}

static inline float max_f(float a, float b)
{
    if (a > b || b != b) return a;
    if (b > a || a != a) return b;
    return bits_float(float_bits(a) & float_bits(b));
}

static inline double min_d(double a, double b)
{
    if (a < b || b != b) return a;
    if (b < a || a != a) return b;
    return bits_double(double_bits(a) | double_bits(b));
}

static inline double max_d(double a, double b)
{
    if (a > b || b != b) return a;
    if (b > a || a != a) return b;
    return bits_double(double_bits(a) & double_bits(b));
}

static inline float med_f(float a, float b, float c)
{
    if (a != a || b != b || c != c) return min_f(min_f(a, b), c);
    return max_f(min_f(a, b), min_f(max_f(a, b), c));
}

static inline float legacy(float a, float b)
{
    return a == 0 || b == 0 ? 0 : a * b;
}

static inline uint32_t to_u32(double x)
{
    return x >= 4294967295.0 ? UINT32_MAX : x > 0 ? (uint32_t)x : 0;
}

static inline int32_t to_i32(double x)
{
    if (x != x) return 0;
    return x >= 2147483647.0 ? INT32_MAX : x <= -2147483648.0 ? INT32_MIN : (int32_t)x;
}

static inline uint32_t to_u32f(float x)
{
    return x >= 4294967296.0f ? UINT32_MAX : x > 0 ? (uint32_t)x : 0;
}

static inline int32_t to_i32f(float x)
{
    if (x != x) return 0;
    return x >= 2147483648.0f ? INT32_MAX : x <= -2147483648.0f ? INT32_MIN : (int32_t)x;
}

static inline float fract_f(float x)
{
    return min_f(x - floorf(x), 0x1.fffffep-1f);
}
static inline double fract_d(double x)
{
    return min_d(x - floor(x), 0x1.fffffffffffffp-1);
}

static inline uint32_t exponent_f(float x)
{
    return float_bits(x) >> 23 & 0xff;
}
static inline uint32_t exponent_d(double x)
{
    return (uint32_t)(double_bits(x) >> 52 & 0x7ff);
}

static uint32_t frexp_exponent(double x)
{
    int exponent = 0;
    if (isfinite(x)) frexp(x, &exponent);
    return (uint32_t)exponent;
}

static double frexp_mantissa(double x)
{
    int exponent;
    return isfinite(x) ? frexp(x, &exponent) : x;
}

static float scale_f(float x, uint32_t by)
{
    int32_t power = (int32_t)by;
    return ldexpf(x, power < -400 ? -400 : power > 400 ? 400 : power);
}

static double scale_d(double x, uint32_t by)
{
    int32_t power = (int32_t)by;
    return ldexp(x, power < -3000 ? -3000 : power > 3000 ? 3000 : power);
}

static uint32_t to_byte(uint32_t old, uint32_t select, float x)
{
    unsigned shift = 8 * (select & 3);
    uint32_t byte = x != x || x < 0 ? 0 : x > 255 ? 255 : (uint32_t)rintf(x);
    return (old & ~(0xffu << shift)) | byte << shift;
}

// The bits of 2 / pi behind the point.
static const uint64_t two_over_pi[] = {
    0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
    0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
    0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab,
};

// A piece of 53 bits of 2 / pi for the reduction of large angles, which begins where the exponent
// of the angle says.
static double trig_piece(double angle, uint32_t piece)
{
    enum { BITS = 1201, WIDTH = 53 };
    int exponent = (int)exponent_d(angle);
    unsigned shift = (piece & 31) * WIDTH + (exponent > 1077 ? (unsigned)exponent - 1077 : 0);
    uint64_t bits = 0;
    for (unsigned k = shift; k < shift + WIDTH; k++) {
        bits = bits << 1 | (k < BITS ? two_over_pi[k / 64] >> (63 - k % 64) & 1 : 0);
    }
    return ldexp((double)bits, -(int)(WIDTH + shift) + (exponent >= 1968 ? 128 : 0));
}

// Of a direction, the face of a cube that it goes through and where.
enum { FACE_X, FACE_Y, FACE_Z };

static unsigned cube_axis(float x, float y, float z)
{
    if (fabsf(z) >= fabsf(x) && fabsf(z) >= fabsf(y)) return FACE_Z;
    return fabsf(y) >= fabsf(x) ? FACE_Y : FACE_X;
}

static float cube_major(float x, float y, float z)
{
    unsigned axis = cube_axis(x, y, z);
    return axis == FACE_Z ? z : axis == FACE_Y ? y : x;
}

static float cube_id(float x, float y, float z)
{
    return 2 * (float)cube_axis(x, y, z) + (cube_major(x, y, z) < 0 ? 1 : 0);
}

static float cube_s(float x, float y, float z)
{
    unsigned axis = cube_axis(x, y, z);
    if (axis == FACE_Y) return x;
    return axis == FACE_Z ? (z < 0 ? -x : x) : x < 0 ? z : -z;
}

static float cube_t(float x, float y, float z)
{
    return cube_axis(x, y, z) == FACE_Y ? (y < 0 ? -z : z) : -y;
}

#define FMAC   OP_READS_DST
#define TWO_PI 6.283185307179586

#define OPS(X)                                                                                     \
    X(v_add_f32, f32, f32, f32, none, 0, a + b)                                                    \
    X(v_sub_f32, f32, f32, f32, none, 0, a - b)                                                    \
    X(v_subrev_f32, f32, f32, f32, none, 0, b - a)                                                 \
    X(v_mul_f32, f32, f32, f32, none, 0, a *b)                                                     \
    X(v_mul_legacy_f32, f32, f32, f32, none, 0, legacy(a, b))                                      \
    X(v_min_f32, f32, f32, f32, none, 0, min_f(a, b))                                              \
    X(v_max_f32, f32, f32, f32, none, 0, max_f(a, b))                                              \
    X(v_mac_f32, f32, f32, f32, f32, FMAC, mad(a, b, c))                                           \
    X(v_mad_f32, f32, f32, f32, f32, 0, mad(a, b, c))                                              \
    X(v_mad_legacy_f32, f32, f32, f32, f32, 0, legacy(a, b) + c)                                   \
    X(v_madmk_f32, f32, f32, f32, f32, OP_LITERAL_B, mad(a, b, c))                                 \
    X(v_madak_f32, f32, f32, f32, f32, OP_LITERAL_C, mad(a, b, c))                                 \
    X(v_fmac_f32, f32, f32, f32, f32, FMAC, fmaf(a, b, c))                                         \
    X(v_fmamk_f32, f32, f32, f32, f32, OP_LITERAL_B, fmaf(a, b, c))                                \
    X(v_fmaak_f32, f32, f32, f32, f32, OP_LITERAL_C, fmaf(a, b, c))                                \
    X(v_fma_f32, f32, f32, f32, f32, 0, fmaf(a, b, c))                                             \
    X(v_min3_f32, f32, f32, f32, f32, 0, min_f(min_f(a, b), c))                                    \
    X(v_max3_f32, f32, f32, f32, f32, 0, max_f(max_f(a, b), c))                                    \
    X(v_med3_f32, f32, f32, f32, f32, 0, med_f(a, b, c))                                           \
    X(v_cvt_f32_i32, f32, i32, none, none, 0, (float)a)                                            \
    X(v_cvt_f32_u32, f32, u32, none, none, 0, (float)a)                                            \
    X(v_cvt_u32_f32, u32, f32, none, none, 0, to_u32f(a))                                          \
    X(v_cvt_i32_f32, i32, f32, none, none, 0, to_i32f(a))                                          \
    X(v_cvt_rpi_i32_f32, i32, f32, none, none, 0, to_i32(floor((double)a + 0.5)))                  \
    X(v_cvt_flr_i32_f32, i32, f32, none, none, 0, to_i32f(floorf(a)))                              \
    X(v_cvt_f32_ubyte0, f32, u32, none, none, 0, (float)(a & 0xff))                                \
    X(v_cvt_f32_ubyte1, f32, u32, none, none, 0, (float)(a >> 8 & 0xff))                           \
    X(v_cvt_f32_ubyte2, f32, u32, none, none, 0, (float)(a >> 16 & 0xff))                          \
    X(v_cvt_f32_ubyte3, f32, u32, none, none, 0, (float)(a >> 24))                                 \
    X(v_cvt_pk_u8_f32, u32, f32, u32, u32, 0, to_byte(c, b, a))                                    \
    X(v_cvt_off_f32_i4, f32, u32, none, none, 0, (float)((int32_t)(a << 28) >> 28) / 16)           \
    X(v_fract_f32, f32, f32, none, none, 0, fract_f(a))                                            \
    X(v_trunc_f32, f32, f32, none, none, 0, truncf(a))                                             \
    X(v_ceil_f32, f32, f32, none, none, 0, ceilf(a))                                               \
    X(v_rndne_f32, f32, f32, none, none, 0, __builtin_roundevenf(a))                               \
    X(v_floor_f32, f32, f32, none, none, 0, floorf(a))                                             \
    X(v_exp_f32, f32, f32, none, none, 0, exp2f(a))                                                \
    X(v_log_f32, f32, f32, none, none, 0, log2f(a))                                                \
    X(v_exp_legacy_f32, f32, f32, none, none, 0, exp2f(a))                                         \
    X(v_log_legacy_f32, f32, f32, none, none, 0, log2f(a))                                         \
    X(v_rcp_f32, f32, f32, none, none, 0, 1 / a)                                                   \
    X(v_rcp_iflag_f32, f32, f32, none, none, 0, 1 / a)                                             \
    X(v_rsq_f32, f32, f32, none, none, 0, (float)(1 / sqrt((double)a)))                            \
    X(v_sqrt_f32, f32, f32, none, none, 0, sqrtf(a))                                               \
    X(v_sin_f32, f32, f32, none, none, 0, (float)sin((double)a *TWO_PI))                           \
    X(v_cos_f32, f32, f32, none, none, 0, (float)cos((double)a *TWO_PI))                           \
    X(v_frexp_exp_i32_f32, u32, f32, none, none, 0, frexp_exponent((double)a))                     \
    X(v_frexp_mant_f32, f32, f32, none, none, 0, (float)frexp_mantissa((double)a))                 \
    X(v_ldexp_f32, f32, f32, u32, none, 0, scale_f(a, b))                                          \
    X(v_cvt_f32_f64, f32, f64, none, none, 0, (float)a)                                            \
    X(v_cvt_f64_f32, f64, f32, none, none, 0, (double)a)                                           \
    X(v_cvt_i32_f64, i32, f64, none, none, 0, to_i32(a))                                           \
    X(v_cvt_u32_f64, u32, f64, none, none, 0, to_u32(a))                                           \
    X(v_cvt_f64_i32, f64, i32, none, none, 0, (double)a)                                           \
    X(v_cvt_f64_u32, f64, u32, none, none, 0, (double)a)                                           \
    X(v_add_f64, f64, f64, f64, none, 0, a + b)                                                    \
    X(v_mul_f64, f64, f64, f64, none, 0, a *b)                                                     \
    X(v_min_f64, f64, f64, f64, none, 0, min_d(a, b))                                              \
    X(v_max_f64, f64, f64, f64, none, 0, max_d(a, b))                                              \
    X(v_fma_f64, f64, f64, f64, f64, 0, fma(a, b, c))                                              \
    X(v_fmac_f64, f64, f64, f64, f64, FMAC, fma(a, b, c))                                          \
    X(v_trunc_f64, f64, f64, none, none, 0, trunc(a))                                              \
    X(v_ceil_f64, f64, f64, none, none, 0, ceil(a))                                                \
    X(v_rndne_f64, f64, f64, none, none, 0, __builtin_roundeven(a))                                \
    X(v_floor_f64, f64, f64, none, none, 0, floor(a))                                              \
    X(v_fract_f64, f64, f64, none, none, 0, fract_d(a))                                            \
    X(v_rcp_f64, f64, f64, none, none, 0, 1 / a)                                                   \
    X(v_rsq_f64, f64, f64, none, none, 0, 1 / sqrt(a))                                             \
    X(v_sqrt_f64, f64, f64, none, none, 0, sqrt(a))                                                \
    X(v_frexp_exp_i32_f64, u32, f64, none, none, 0, frexp_exponent(a))                             \
    X(v_frexp_mant_f64, f64, f64, none, none, 0, frexp_mantissa(a))                                \
    X(v_ldexp_f64, f64, f64, u32, none, 0, scale_d(a, b))                                          \
    X(v_trig_preop_f64, f64, f64, u32, none, 0, trig_piece(a, b))                                  \
    X(v_cubeid_f32, f32, f32, f32, f32, 0, cube_id(a, b, c))                                       \
    X(v_cubesc_f32, f32, f32, f32, f32, 0, cube_s(a, b, c))                                        \
    X(v_cubetc_f32, f32, f32, f32, f32, 0, cube_t(a, b, c))                                        \
    X(v_cubema_f32, f32, f32, f32, f32, 0, 2 * cube_major(a, b, c))                                \
    X(v_cvt_pkaccum_u8_f32, u32, f32, u32, u32, FMAC, to_byte(c, b, a))

OPS(LANE_DEFINE)

// Division in steps: v_div_scale brings numerator and denominator into a range where the steps of
// Newton's method neither overflow nor lose bits, v_div_fmas undoes it, v_div_fixup sees to zeros,
// infinities and the sign. Sources: what is scaled (one of the two), denominator, numerator.
typedef struct {
    int gap;   // exponents further apart give a quotient near the largest number
    int shift; // power of two to scale by
    int tiny;  // numerators up to this exponent lose bits
} division_t;
static const division_t single_division = {96, 64, 23}, double_division = {768, 128, 53};

static double div_scale(const division_t *kind, const double x[3], const int exponents[2],
                        const bool denormal[3], bool *out)
{
    double scaled = x[0];
    int shift = 0;
    bool is_denominator = x[0] == x[1];
    *out = false;
    if (x[2] == 0 || x[1] == 0) return NAN;
    if (exponents[1] - exponents[0] >= kind->gap) {
        *out = true;
        if (is_denominator) shift = kind->shift;
    } else if (denormal[0]) {
        shift = kind->shift;
    } else if (denormal[1] && denormal[2]) {
        // The manual has the other sign here, with which the denominator would overflow.
        *out = true;
        if (is_denominator) shift = -kind->shift;
    } else if (denormal[1]) {
        shift = -kind->shift;
    } else if (denormal[2]) {
        *out = true;
        if (x[0] == x[2]) shift = kind->shift;
    } else if (exponents[1] <= kind->tiny) {
        shift = kind->shift;
    }
    return shift ? ldexp(scaled, shift) : scaled;
}

static bool is_denormal_f(float x)
{
    return x != 0 && !exponent_f(x);
}
static bool is_denormal_d(double x)
{
    return x != 0 && !exponent_d(x);
}

static float div_scale_f(float a, float b, float c, uint8_t *out)
{
    const int exponents[2] = {(int)exponent_f(b), (int)exponent_f(c)};
    const bool denormal[3] = {is_denormal_f(b), is_denormal_f(1 / b), is_denormal_f(c / b)};
    bool flag;
    double scaled =
        div_scale(&single_division, (const double[]){a, b, c}, exponents, denormal, &flag);
    *out = flag;
    return (float)scaled;
}

static double div_scale_d(double a, double b, double c, uint8_t *out)
{
    const int exponents[2] = {(int)exponent_d(b), (int)exponent_d(c)};
    const bool denormal[3] = {is_denormal_d(b), is_denormal_d(1 / b), is_denormal_d(c / b)};
    bool flag;
    double scaled =
        div_scale(&double_division, (const double[]){a, b, c}, exponents, denormal, &flag);
    *out = flag;
    return scaled;
}

LANE_FUNCTION(v_div_scale_f32)
{
    uint8_t outs[LANES];
    for (unsigned l = 0; l < LANES; l++) {
        PUT_f32(d, l, div_scale_f(GET_f32(pa, l), GET_f32(pb, l), GET_f32(pc, l), &outs[l]));
    }
    return lanes_pack(outs);
}

LANE_FUNCTION(v_div_scale_f64)
{
    uint8_t outs[LANES];
    for (unsigned l = 0; l < LANES; l++) {
        PUT_f64(d, l, div_scale_d(GET_f64(pa, l), GET_f64(pb, l), GET_f64(pc, l), &outs[l]));
    }
    return lanes_pack(outs);
}

// Rounded once, after scaling, since the result may be denormal.
static inline float div_fmas_f(float a, float b, float c, uint32_t scaled)
{
    if (!scaled) return fmaf(a, b, c);
    double r = fma((double)a, (double)b, (double)c);
    return (float)(exponent_f(c) > 127 ? r * 0x1p64 : r * 0x1p-64);
}

static inline double div_fmas_d(double a, double b, double c, uint32_t scaled)
{
    if (!scaled) return fma(a, b, c);
    long double r = fmal((long double)a, (long double)b, (long double)c);
    return (double)(exponent_d(c) > 1023 ? r * 0x1p128L : r * 0x1p-128L);
}

// a: quotient so far, b: denominator, c: numerator.
static double div_fixup(double a, double b, double c, int exponent_gap, int lowest)
{
    bool negative = signbit(b) != signbit(c);
    double sign = negative ? -1.0 : 1.0;
    if (c != c) return c;
    if (b != b) return b;
    if ((b == 0 && c == 0) || (isinf(b) && isinf(c))) return -(double)NAN;
    if (b == 0 || isinf(c)) return sign * INFINITY;
    if (isinf(b) || c == 0) return sign * 0.0;
    if (exponent_gap < lowest) return sign * 0.0;
    if (a != a) return sign * INFINITY; // the steps before overflowed
    return copysign(a, sign);
}

static float div_fixup_f(float a, float b, float c)
{
    return (float)div_fixup((double)a, (double)b, (double)c,
                            (int)exponent_f(c) - (int)exponent_f(b), -150);
}

static double div_fixup_d(double a, double b, double c)
{
    return div_fixup(a, b, c, (int)exponent_d(c) - (int)exponent_d(b), -1075);
}

#define MASK_OPS(X)                                                                                \
    X(v_div_fmas_f32, f32, f32, f32, f32, OP_VCC_IN, div_fmas_f(a, b, c, m), 0)                    \
    X(v_div_fmas_f64, f64, f64, f64, f64, OP_VCC_IN, div_fmas_d(a, b, c, m), 0)

MASK_OPS(LANE_DEFINE_MASK)

#define FIXUP_OPS(X)                                                                               \
    X(v_div_fixup_f32, f32, f32, f32, f32, 0, div_fixup_f(a, b, c))                                \
    X(v_div_fixup_f64, f64, f64, f64, f64, 0, div_fixup_d(a, b, c))

FIXUP_OPS(LANE_DEFINE)

static const op_t ops[] = {OPS(LANE_ROW) MASK_OPS(LANE_ROW_MASK) FIXUP_OPS(LANE_ROW)  //
                           LANE_ROW(v_div_scale_f32, f32, f32, f32, f32, OP_MASK_OUT) //
                           LANE_ROW(v_div_scale_f64, f64, f64, f64, f64, OP_MASK_OUT)};
const op_list_t float_ops = {ops, sizeof ops / sizeof *ops};
