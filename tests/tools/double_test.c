// SPDX-License-Identifier: Apache-2.0
// The arithmetic of doubles that kernels for Metal have, compared with the machine's, bit by bit.
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "unit.h"

// The text is C where these stand for the types of MSL.
#define ulong    uint64_t
#define uint     uint32_t
#define long     int64_t
#define inline   static inline __attribute__((unused))
#define MSL(...) __VA_ARGS__
#include "src/tools/cc/msl/double.inc"
#undef inline
#undef long
#undef uint
#undef ulong

#define NONE 0x7ff8000000000000u

static uint64_t seed = 88172645463325252u;

static uint64_t random_bits(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return x != x ? NONE : bits;
}

static double double_of(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// Numbers of all sizes, more often those where something happens.
static uint64_t pick(void)
{
    static const uint64_t special[] = {0,
                                       1,
                                       NONE,
                                       0x7ff0000000000000,
                                       0x7fefffffffffffff,
                                       0x3ff0000000000000,
                                       0x0010000000000000,
                                       0x000fffffffffffff};
    uint64_t bits = random_bits(), sign = random_bits() & UINT64_C(1) << 63;
    uint64_t fraction = bits & 0x800fffffffffffff;
    switch (random_bits() % 6) {
    case 0: return double_of(bits) == double_of(bits) ? bits : NONE;
    case 1: return fraction | (1013 + random_bits() % 20) << 52;
    case 2: return fraction;
    case 3: return special[random_bits() % 8] ^ (bits & 1 ? 0 : sign);
    case 4: return (bits & 0xffe0000000000000) | (random_bits() & 3);
    default: return fraction | (973 + random_bits() % 100) << 52;
    }
}

static unsigned wrong;

static void same(const char *what, uint64_t got, uint64_t want, uint64_t a, uint64_t b)
{
    if (keel_double_none(want)) want = NONE;
    if (keel_double_none(got)) got = NONE;
    if (got == want || wrong++ > 10) return;
    print_error("%s of %a and %a is %a, not %a\n", what, double_of(a), double_of(b), double_of(got),
                double_of(want));
}

static void is_as_the_machine_computes(void **state)
{
    for (int i = 0; i < 300000; i++) {
        uint64_t a = pick(), b = pick();
        double x = double_of(a), y = double_of(b);
        uint64_t c = i % 3 ? pick() : bits_of(-x * y); // so that almost nothing is left
        same("sum", keel_double_add(a, b), bits_of(x + y), a, b);
        same("difference", keel_double_sub(a, b), bits_of(x - y), a, b);
        same("product", keel_double_mul(a, b), bits_of(x * y), a, b);
        same("quotient", keel_double_div(a, b), bits_of(x / y), a, b);
        same("root", keel_double_sqrt(a), bits_of(sqrt(x)), a, b);
        same("fma", keel_double_fma(a, b, c), bits_of(fma(x, y, double_of(c))), a, b);
        same("rint", keel_double_rint(a), bits_of(rint(x)), a, b);
        same("floor", keel_double_floor(a), bits_of(floor(x)), a, b);
        same("ceil", keel_double_ceil(a), bits_of(ceil(x)), a, b);
        same("trunc", keel_double_trunc(a), bits_of(trunc(x)), a, b);
    }
    assert_int_equal(wrong, 0);
}

static void compares(void **state)
{
    for (int i = 0; i < 300000; i++) {
        uint64_t a = pick(), b = i % 4 ? pick() : a;
        double x = double_of(a), y = double_of(b);
        same("below", keel_double_below(a, b), x < y, a, b);
        same("at most", keel_double_at_most(a, b), x <= y, a, b);
        same("equal", keel_double_equal(a, b), x == y, a, b);
        same("apart", keel_double_apart(a, b), x < y || x > y, a, b);
        same("unordered", keel_double_unordered(a, b), x != x || y != y, a, b);
        if (x == y) continue; // zeros of two signs: either is right
        same("min", keel_double_minnum(a, b), bits_of(fmin(x, y)), a, b);
        same("max", keel_double_maxnum(a, b), bits_of(fmax(x, y)), a, b);
    }
    assert_int_equal(wrong, 0);
}

static void converts(void **state)
{
    for (int i = 0; i < 300000; i++) {
        uint64_t a = pick(), b = random_bits() >> random_bits() % 64;
        double x = double_of(a);
        float narrow = (float)x, given;
        uint32_t word = (uint32_t)b, narrow_bits;
        memcpy(&given, &word, sizeof given);
        memcpy(&narrow_bits, &narrow, sizeof narrow_bits);
        if (narrow == narrow) same("float", keel_double_to_float(a), narrow_bits, a, b);
        same("of a float", keel_double_of_float(word), bits_of((double)given), a, b);
        same("of an integer", keel_double_of_ulong(b), bits_of((double)b), a, b);
        same("of a signed integer", keel_double_of_long((int64_t)b), bits_of((double)(int64_t)b), a,
             b);
        if (fabs(x) < 0x1p62) assert_int_equal((int64_t)keel_double_to_long(a), (int64_t)x);
        if (x >= 0 && x < 0x1p63) assert_int_equal(keel_double_to_ulong(a), (uint64_t)x);
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_as_the_machine_computes),
        cmocka_unit_test(compares),
        cmocka_unit_test(converts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
