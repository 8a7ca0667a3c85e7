// SPDX-License-Identifier: Apache-2.0
// What numbers.c computes, and whether it is within the bounds that <keel/kernel.h> promises.
#ifndef TESTS_KERNEL_NUMBERS_H_
#define TESTS_KERNEL_NUMBERS_H_

#include <stdint.h>

typedef struct item_t {
    float x, y;
    uint32_t a, b;
} item_t;

typedef struct answer_t {
    float sqrt, exp, exp2, log, log2, pow, sin, cos, tanh, erf, rsqrt;
    float fma, floor, ceil, trunc, rint, min, max, quotient;
    uint32_t half, from_half, bfloat, from_bfloat, dot_signed, dot_unsigned;
} answer_t;

typedef struct doubles_t {
    double exp, exp2, log, log2, pow, power, sin, cos, tanh, erf, rsqrt, mad;
    uint64_t bits;
    double sqrt, fma, floor, rint, min, max, clamp, quotient;
} doubles_t;

// Of what integer_of and long_of make of an item.
typedef struct integers_t {
    uint32_t popcount, clz, ctz, reverse, rotate, mulhi, min, max, clamp, dot2_signed,
        dot2_unsigned;
    uint32_t long_popcount, long_clz, long_ctz;
    int32_t signed_mulhi, signed_min, signed_max, signed_clamp, abs;
    uint64_t long_reverse, long_rotate, long_mulhi, long_min, long_max;
    int64_t signed_long_mulhi, signed_long_min, signed_long_max, long_abs;
} integers_t;

// Numbers of all lengths, with a zero now and then.
static inline uint32_t integer_of(const item_t *item)
{
    return item->b & 7 ? item->a >> (item->b >> 27) : 0;
}

static inline uint64_t long_of(const item_t *item)
{
    return item->b & 7 ? ((uint64_t)item->a << 32 | item->b) >> (item->b >> 26) : 0;
}

static inline double double_of(const item_t *item)
{
    return item->x * (1.0 + item->a * 0x1p-52);
}

// Between 1/2 and 2, mostly near 1, so that powers of it are numbers.
static inline double positive_of(const item_t *item)
{
    return 1.0 + (int32_t)item->a * 0x1p-32 / (1u << (item->b & 31));
}

// What each item of a sub-group got for a word x.
typedef struct subgroup_t {
    uint32_t size, item, shuffled, scan, any, all; // any and all: of some x
    int32_t least;
    float float_scan, float_sum; // of x modulo 64
    uint64_t ballot, long_scan;  // of the lowest bit; of x
    int64_t long_most;           // of -x
    double double_sum;           // of x
} subgroup_t;

enum { ATOMIC_ITEMS = 1024 };

// What atomics.c leaves behind; the comments say for which of the numbers.
typedef struct tally_t {
    uint32_t sum, least, most, common, any, odd; // add, min, max, and, or, xor
    uint32_t first;                              // compare: 7 of all got in
    uint32_t swapped; // exchange: the last word, and this the others' sum
    uint32_t local_sum, subgroup_sum, subgroup_most;
    int32_t least_signed, most_signed;
    float float_sum, float_least, float_most;
    double double_sum;
    int64_t long_sum, long_least, long_most;
    uint64_t long_any;
    uint32_t narrow; // the target has no atomics of 64 bits: Metal
} tally_t;

// Words, more than 48 KiB of them; on Metal all that there is. The entry point says how many.
#if defined(KEEL_MSL) && KEEL_MSL
enum { REVERSED = 8192 };
#else
enum { REVERSED = 16000 };
#endif

enum { TRANSPOSED = 48 }; // rows and columns

enum { REMEMBERED = 224, REMEMBERING = 1024 }; // words of an item, items: almost 1 MiB

#endif
