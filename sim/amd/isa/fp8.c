// SPDX-License-Identifier: Apache-2.0
// Conversions between single precision and floats of eight bits. They round to the nearest even or
// by chance, whatever the mode says. What is too large becomes no number, or the largest number
// where the mode has FP16_OVFL; infinities become no number in any case.
#include "amd/isa/fp8.h"

enum { MODE_FP16_OVFL = 1 << 23, SINGLE_MANTISSA = 23, SINGLE_BIAS = 127 };

// Of a float that is a number: its mantissa, the bits of it that do not fit into the format, and
// the code that a mantissa without any stands for.
typedef struct {
    uint64_t mantissa;
    unsigned surplus;
    uint32_t code;
} parts_t;

static parts_t parts(uint32_t bits, const fp8_t *format)
{
    enum { SURPLUS_MAX = 62 }; // more of them are nothing, too
    int field = (int)(bits >> SINGLE_MANTISSA & 0xff);
    int exponent = (field ? field : 1) - SINGLE_BIAS, below = format->least - exponent;
    uint64_t mantissa = (bits & 0x7fffff) | (field ? 0x800000 : 0);
    int surplus = SINGLE_MANTISSA - format->mantissa + (below > 0 ? below : 0);
    uint32_t code = below > 0 ? 0 : (uint32_t)-below << format->mantissa;
    return (parts_t){mantissa, (unsigned)(surplus < SURPLUS_MAX ? surplus : SURPLUS_MAX), code};
}

// The code of a magnitude, with its sign; mode decides what is too large.
static uint32_t finish(uint32_t sign, uint64_t magnitude, uint64_t mode)
{
    if (magnitude > FP8_MAX) return mode & MODE_FP16_OVFL ? sign | FP8_MAX : FP8_NAN;
    return magnitude ? sign | (uint32_t)magnitude : 0;
}

static uint32_t narrow(float x, const fp8_t *format, uint64_t mode)
{
    if (!isfinite(x)) return FP8_NAN;
    parts_t p = parts(float_bits(x), format);
    uint64_t kept = p.mantissa >> p.surplus, half = 1ull << (p.surplus - 1);
    uint64_t rest = p.mantissa & (2 * half - 1);
    kept += rest > half || (rest == half && kept & 1);
    return finish(float_bits(x) >> 24 & 0x80, p.code + kept, mode);
}

// The upper bits of the random number are added to those that do not fit.
static uint32_t narrow_by_chance(float x, uint32_t random, const fp8_t *format, uint64_t mode)
{
    if (!isfinite(x)) return FP8_NAN;
    parts_t p = parts(float_bits(x), format);
    uint64_t chance =
        p.surplus < 32 ? random >> (32 - p.surplus) : (uint64_t)random << (p.surplus - 32);
    uint64_t kept = (p.mantissa + chance) >> p.surplus;
    return finish(float_bits(x) >> 24 & 0x80, p.code + kept, mode);
}

static uint64_t widen_two(uint32_t codes, const fp8_t *format)
{
    uint64_t high = float_bits(fp8_widen(codes >> 8, format));
    return high << 32 | float_bits(fp8_widen(codes, format));
}

static uint32_t narrow_two(float a, float b, const fp8_t *format, uint64_t mode)
{
    return narrow(a, format, mode) | narrow(b, format, mode) << 8;
}

#define WIDE OP_OF_BYTES
#define PAIR (OP_KEEP_HIGH | OP_MODE_IN)
#define BYTE (OP_KEEP_BYTES | OP_MODE_IN)

#define OPS(X)                                                                                     \
    X(v_cvt_f32_fp8, f32, u32, none, none, WIDE, fp8_widen(a, &fp8_format))                        \
    X(v_cvt_f32_bf8, f32, u32, none, none, WIDE, fp8_widen(a, &bf8_format))                        \
    X(v_cvt_pk_f32_fp8, u64, u32, none, none, WIDE, widen_two(a, &fp8_format))                     \
    X(v_cvt_pk_f32_bf8, u64, u32, none, none, WIDE, widen_two(a, &bf8_format))                     \
    X(v_cvt_pk_fp8_f32, u16, f32, f32, none, PAIR, narrow_two(a, b, &fp8_format, mask))            \
    X(v_cvt_pk_bf8_f32, u16, f32, f32, none, PAIR, narrow_two(a, b, &bf8_format, mask))            \
    X(v_cvt_sr_fp8_f32, u32, f32, u32, none, BYTE, narrow_by_chance(a, b, &fp8_format, mask))      \
    X(v_cvt_sr_bf8_f32, u32, f32, u32, none, BYTE, narrow_by_chance(a, b, &bf8_format, mask))

OPS(LANE_DEFINE)

static const op_t ops[] = {OPS(LANE_ROW)};
const op_list_t fp8_ops = {ops, sizeof ops / sizeof *ops};
