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

enum { ATOMIC_ITEMS = 1024 };

// What atomics.c leaves behind; the comments say for which of the numbers.
typedef struct tally_t {
    uint32_t sum, least, most, common, any, odd; // add, min, max, and, or, xor
    uint32_t first;                              // compare: 7 of all got in
    uint32_t swapped; // exchange: the last word, and this the others' sum
    uint32_t local_sum, subgroup_sum, subgroup_most;
    int32_t least_signed, most_signed;
    float float_sum;
    int64_t long_sum, long_least, long_most;
    uint64_t long_any;
} tally_t;

enum { TRANSPOSED = 48 }; // rows and columns

#endif
