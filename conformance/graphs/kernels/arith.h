// SPDX-License-Identifier: Apache-2.0
// What the test kernels compute for one word; the model computes the same.
#ifndef GRAPHS_KERNELS_ARITH_H_
#define GRAPHS_KERNELS_ARITH_H_

#include <stdint.h>

enum { ARITH_GROUP = 4 }; // words per workgroup

typedef struct arith_constants_t {
    uint32_t constant;
    uint32_t modulus; // modulo: of the result; abort: what to return
    uint32_t spin;    // turns of a loop that does nothing, to vary how long a group takes
} arith_constants_t;

static inline uint32_t arith_scale(uint32_t x, uint32_t constant, uint32_t index)
{
    return x * 0x9e3779b1u + constant + index;
}

static inline uint32_t arith_move(uint32_t x, uint32_t constant)
{
    return (x << 7 | x >> 25) ^ constant;
}

static inline uint32_t arith_mix(uint32_t a, uint32_t b, uint32_t c, uint32_t constant)
{
    return c * 3u + (a ^ (b << 11 | b >> 21)) + constant;
}

static inline uint32_t arith_modulo(uint32_t x, uint32_t constant, uint32_t modulus)
{
    x = (x + constant) * 0x85ebca6bu;
    return modulus ? (x ^ x >> 15) % modulus : x;
}

static inline uint32_t arith_decrement(uint32_t x)
{
    return x ? x - 1 : 0;
}

#endif
