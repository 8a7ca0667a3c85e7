// SPDX-License-Identifier: Apache-2.0
// Reading memory, and read-modify-write operations on memory that the host and other queues may
// touch at the same time.
#ifndef SIM_AMD_ISA_ATOMIC_H_
#define SIM_AMD_ISA_ATOMIC_H_

#include "amd/isa/lanes.h"

// Memory of kernels need not be aligned.
static inline uint32_t peek32(const uint8_t *p)
{
    uint32_t value;
    memcpy(&value, p, sizeof value);
    return value;
}

static inline uint64_t peek64(const uint8_t *p)
{
    uint64_t value;
    memcpy(&value, p, sizeof value);
    return value;
}

// Name, new value from old o and operand x, for T (unsigned) and S (signed).
#define ATOMIC_INTEGER_OPS(X)                                                                      \
    X(swap, x)                                                                                     \
    X(add, o + x)                                                                                  \
    X(sub, o - x)                                                                                  \
    X(rsub, x - o)                                                                                 \
    X(smin, (S)o < (S)x ? o : x)                                                                   \
    X(umin, o < x ? o : x)                                                                         \
    X(smax, (S)o > (S)x ? o : x)                                                                   \
    X(umax, o > x ? o : x)                                                                         \
    X(and, o &x)                                                                                   \
    X(or, o | x)                                                                                   \
    X(xor, o ^ x)                                                                                  \
    X(inc, o >= x ? 0 : o + 1)                                                                     \
    X(dec, o == 0 || o > x ? x : o - 1)

#define ATOMIC_DEFINE(name, bits, new_value)                                                       \
    static inline uint##bits##_t atomic_##name##bits(void *memory, uint##bits##_t x)               \
    {                                                                                              \
        typedef uint##bits##_t T;                                                                  \
        typedef int##bits##_t S;                                                                   \
        T *p = memory, o = __atomic_load_n(p, __ATOMIC_RELAXED), n;                                \
        do {                                                                                       \
            n = (T)(new_value);                                                                    \
            (void)sizeof(S);                                                                       \
        } while (                                                                                  \
            !__atomic_compare_exchange_n(p, &o, n, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));    \
        return o;                                                                                  \
    }
#define ATOMIC_DEFINE32(name, new_value) ATOMIC_DEFINE(name, 32, new_value)
#define ATOMIC_DEFINE64(name, new_value) ATOMIC_DEFINE(name, 64, new_value)
ATOMIC_INTEGER_OPS(ATOMIC_DEFINE32)
ATOMIC_INTEGER_OPS(ATOMIC_DEFINE64)

static inline float atomic_fmin(float a, float b)
{
    return a < b || b != b ? a : b;
}
static inline float atomic_fmax(float a, float b)
{
    return a > b || b != b ? a : b;
}
static inline double atomic_dmin(double a, double b)
{
    return a < b || b != b ? a : b;
}
static inline double atomic_dmax(double a, double b)
{
    return a > b || b != b ? a : b;
}

static inline uint32_t add_halves(uint32_t a, uint32_t b)
{
    uint32_t low = float_to_half(half_to_float((uint16_t)a) + half_to_float((uint16_t)b));
    uint32_t high =
        float_to_half(half_to_float((uint16_t)(a >> 16)) + half_to_float((uint16_t)(b >> 16)));
    return low | high << 16;
}

// The nearest even; no number stays none.
static inline uint32_t float_to_brain(float value)
{
    uint32_t bits = float_bits(value);
    if (value != value) return bits >> 16 | 0x40;
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

static inline uint32_t add_brains(uint32_t a, uint32_t b)
{
    uint32_t low = float_to_brain(bits_float(a << 16) + bits_float(b << 16));
    uint32_t high = float_to_brain(bits_float(a & 0xffff0000) + bits_float(b & 0xffff0000));
    return low | high << 16;
}

ATOMIC_DEFINE(add_f, 32, float_bits(bits_float(o) + bits_float(x)))
ATOMIC_DEFINE(min_f, 32, float_bits(atomic_fmin(bits_float(o), bits_float(x))))
ATOMIC_DEFINE(max_f, 32, float_bits(atomic_fmax(bits_float(o), bits_float(x))))
ATOMIC_DEFINE(pk_add_f16_, 32, add_halves(o, x))
ATOMIC_DEFINE(pk_add_bf16_, 32, add_brains(o, x))
ATOMIC_DEFINE(add_f, 64, double_bits(bits_double(o) + bits_double(x)))
ATOMIC_DEFINE(min_f, 64, double_bits(atomic_dmin(bits_double(o), bits_double(x))))
ATOMIC_DEFINE(max_f, 64, double_bits(atomic_dmax(bits_double(o), bits_double(x))))

static inline uint32_t atomic_cmpswap32(void *memory, uint32_t x, uint32_t compare)
{
    __atomic_compare_exchange_n((uint32_t *)memory, &compare, x, false, __ATOMIC_SEQ_CST,
                                __ATOMIC_SEQ_CST);
    return compare;
}

static inline uint64_t atomic_cmpswap64(void *memory, uint64_t x, uint64_t compare)
{
    __atomic_compare_exchange_n((uint64_t *)memory, &compare, x, false, __ATOMIC_SEQ_CST,
                                __ATOMIC_SEQ_CST);
    return compare;
}

#endif
