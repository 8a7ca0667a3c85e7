// SPDX-License-Identifier: Apache-2.0
// The form in which vector operations are written: a name, types, and an expression of one lane's
// a, b and c (and its number l and bit of the mask, m). From a list of these come the functions
// over 64 lanes and the table that describes them.
#ifndef SIM_AMD_ISA_LANES_H_
#define SIM_AMD_ISA_LANES_H_

#include "amd/isa/state.h"

typedef uint32_t __attribute__((may_alias)) alias_u32;
typedef int32_t __attribute__((may_alias)) alias_i32;
typedef float __attribute__((may_alias)) alias_f32;
__extension__ typedef _Float16 half_t;

typedef int lane_none;
typedef uint32_t lane_u32;
typedef int32_t lane_i32;
typedef float lane_f32;
typedef uint64_t lane_u64;
typedef int64_t lane_i64;
typedef double lane_f64;
typedef uint16_t lane_u16;
typedef int16_t lane_i16;
typedef float lane_f16; // computed in single precision, which holds every half exactly
typedef uint32_t lane_f16x2;

static inline float half_to_float(uint16_t bits)
{
    half_t half;
    memcpy(&half, &bits, sizeof half);
    return (float)half;
}

static inline uint16_t float_to_half(float value)
{
    half_t half = (half_t)value;
    uint16_t bits;
    memcpy(&bits, &half, sizeof bits);
    return bits;
}

static inline uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float bits_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t double_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double bits_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#define GET_none(p, l)  0
#define GET_u32(p, l)   ((p)[l])
#define GET_i32(p, l)   (((const alias_i32 *)(p))[l])
#define GET_f32(p, l)   (((const alias_f32 *)(p))[l])
#define GET_u64(p, l)   ((p)[l] | (uint64_t)(p)[(l) + LANES] << 32)
#define GET_i64(p, l)   ((int64_t)GET_u64(p, l))
#define GET_f64(p, l)   bits_double(GET_u64(p, l))
#define GET_u16(p, l)   ((uint16_t)(p)[l])
#define GET_i16(p, l)   ((int16_t)(p)[l])
#define GET_f16(p, l)   half_to_float((uint16_t)(p)[l])
#define GET_f16x2(p, l) ((p)[l])

#define PUT_u32(d, l, x) ((d)[l] = (x))
#define PUT_i32(d, l, x) ((d)[l] = (uint32_t)(x))
#define PUT_f32(d, l, x) (((alias_f32 *)(d))[l] = (x))
#define PUT_u64(d, l, x)                                                                           \
    do {                                                                                           \
        uint64_t wide = (x);                                                                       \
        (d)[l] = (uint32_t)wide;                                                                   \
        (d)[(l) + LANES] = (uint32_t)(wide >> 32);                                                 \
    } while (0)
#define PUT_i64(d, l, x)   PUT_u64(d, l, (uint64_t)(x))
#define PUT_f64(d, l, x)   PUT_u64(d, l, double_bits(x))
#define PUT_u16(d, l, x)   ((d)[l] = (uint16_t)(x))
#define PUT_i16(d, l, x)   ((d)[l] = (uint16_t)(x))
#define PUT_f16(d, l, x)   ((d)[l] = float_to_half(x))
#define PUT_f16x2(d, l, x) ((d)[l] = (x))

// Lanes do not depend on each other, though destination and sources may be the same registers.
#ifdef __clang__
#define EACH_LANE                                                                                  \
    _Pragma("clang loop vectorize(assume_safety)") for (unsigned l = 0; l < LANES; l++)
#else
#define EACH_LANE _Pragma("GCC ivdep") for (unsigned l = 0; l < LANES; l++)
#endif

// x86-64 as such has no shifts by lanes, and registers of half the width that most processors have:
// these functions exist twice. A sanitizer is not ready when the choice is made.
#if defined __x86_64__ && defined __GLIBC__ && !defined __clang__ &&                               \
    !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
#define LANE_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define LANE_CLONES
#endif

#define LANE_FUNCTION(name)                                                                        \
    LANE_CLONES static uint64_t lanes_##name(uint32_t *d, const uint32_t *pa, const uint32_t *pb,  \
                                             const uint32_t *pc, uint64_t mask)

#define LANE_SOURCES(A, B, C)                                                                      \
    lane_##A a = GET_##A(pa, l);                                                                   \
    lane_##B b = GET_##B(pb, l);                                                                   \
    lane_##C c = GET_##C(pc, l);                                                                   \
    (void)a, (void)b, (void)c

// X(name, D, A, B, C, flags, expression)
#define LANE_DEFINE(name, D, A, B, C, flags, ...)                                                  \
    LANE_FUNCTION(name)                                                                            \
    {                                                                                              \
        EACH_LANE                                                                                  \
        {                                                                                          \
            LANE_SOURCES(A, B, C);                                                                 \
            PUT_##D(d, l, (__VA_ARGS__));                                                          \
        }                                                                                          \
        return 0;                                                                                  \
    }

#define LANE_ROW(name, D, A, B, C, flags, ...)                                                     \
    {#name,                                                                                        \
     (flags) & (OP_MASK_IN | OP_MASK_OUT | OP_VCC_IN) ? run_vector_mask : run_vector,              \
     lanes_##name,                                                                                 \
     TYPE_##D,                                                                                     \
     {TYPE_##A, TYPE_##B, TYPE_##C},                                                               \
     (flags),                                                                                      \
     0},

// For operations with a mask the loop is in two: what needs the mask as numbers, and the rest.
// X(name, D, A, B, C, flags, expression, bit of the mask that comes out)
#define LANE_DEFINE_MASK(name, D, A, B, C, flags, expression, out)                                 \
    LANE_FUNCTION(name)                                                                            \
    {                                                                                              \
        uint32_t ins[LANES];                                                                       \
        uint8_t outs[LANES];                                                                       \
        if ((flags) & (OP_MASK_IN | OP_VCC_IN)) lanes_expand(ins, mask);                           \
        EACH_LANE                                                                                  \
        {                                                                                          \
            LANE_SOURCES(A, B, C);                                                                 \
            uint32_t m = (flags) & (OP_MASK_IN | OP_VCC_IN) ? ins[l] & 1 : 0;                      \
            (void)m;                                                                               \
            lane_##D r = (expression);                                                             \
            PUT_##D(d, l, r);                                                                      \
            if ((flags) & OP_MASK_OUT) outs[l] = (out) ? 1 : 0;                                    \
        }                                                                                          \
        return (flags) & OP_MASK_OUT ? lanes_pack(outs) : 0;                                       \
    }
#define LANE_ROW_MASK(name, D, A, B, C, flags, expression, out) LANE_ROW(name, D, A, B, C, flags)

// The low bit of each byte, as a mask.
static inline uint64_t lanes_pack(const uint8_t *bytes)
{
    uint64_t mask = 0;
    for (unsigned k = 0; k < LANES / 8; k++) {
        uint64_t eight;
        memcpy(&eight, bytes + 8 * k, sizeof eight);
        mask |= (eight * 0x0102040810204080 >> 56) << 8 * k;
    }
    return mask;
}

#endif
