// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static uint64_t random_of(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return bits;
}

// Corners, any bits at all, and numbers of a size that one computes with.
static float number(uint64_t *state)
{
    static const float corners[] = {
        0.0f,       -0.0f,      1.0f,       -1.0f,       0.5f,       INFINITY,
        -INFINITY,  NAN,        0x1p-149f,  0x1p-126f,   0x1.8p-24f, 65504.0f,
        65520.0f,   88.722839f, -87.33655f, -103.97208f, 0x1p-25f,   3.1415927f,
        1.5707964f, 0.625f,     0.9999999f, 1.0000001f,  2.5f,       -2.5f,
    };
    uint64_t random = random_of(state);
    switch (random & 7) {
    case 0: return corners[(random >> 8) % (sizeof corners / sizeof corners[0])];
    case 1: // any but signalling ones, of which minimum and maximum make what they like
        random >>= 16;
        return float_of((uint32_t)random | (isnan(float_of((uint32_t)random)) ? 0x400000u : 0));
    case 2: return (float)(int32_t)(random >> 32) / 256.0f;
    default: return (float)(int32_t)(random >> 32) / 0x1p25f;
    }
}

void items_make(item_t *items, size_t count)
{
    uint64_t state = 1;
    for (size_t i = 0; i < count; i++)
        items[i] = (item_t){number(&state), number(&state), (uint32_t)random_of(&state),
                            (uint32_t)random_of(&state)};
}

static bool same_bits(float x, float y)
{
    return bits_of(x) == bits_of(y) || (isnan(x) && isnan(y));
}

// The distance of y from the true result in units of its last place, less what is allowed besides.
static double distance(float y, double truth, double beside)
{
    float nearest = (float)truth;
    if (isnan(truth) || isinf(nearest) || isinf(y) || isnan(y))
        return same_bits(y, nearest) || (isinf(nearest) && fabsf(y) == 0x1.fffffep127f) ||
                       (isinf(y) && fabs(truth) > 0x1.fffffdp127)
                   ? 0.0
                   : INFINITY;
    int exponent;
    frexp(truth, &exponent);
    double unit = ldexp(1.0, (exponent < -125 ? -125 : exponent) - 24);
    double error = fabs((double)y - truth) - beside;
    return error <= 0 ? 0 : error / unit;
}

static unsigned worst_case(const char *name, const item_t *item, float got, double truth,
                           double bound)
{
    printf("%s of x %a y %a is %a (%.9g), not %.17g within %g ulp\n", name, item->x, item->y, got,
           got, truth, bound);
    return 1;
}

static unsigned judge(const char *name, const item_t *item, float got, double truth, double bound)
{
    return distance(got, truth, 0) <= bound ? 0 : worst_case(name, item, got, truth, bound);
}

static unsigned judge_bits(const char *name, const item_t *item, uint32_t got, uint32_t truth)
{
    if (got == truth) return 0;
    printf("%s of x %a a %08x b %08x is %08x, not %08x\n", name, item->x, item->a, item->b, got,
           truth);
    return 1;
}

static uint32_t half_of(float x)
{
    uint32_t sign = bits_of(x) >> 16 & 0x8000u;
    double size = fabs((double)x);
    if (isnan(x)) return 0x7e00u;
    if (size >= 65520.0) return sign | 0x7c00u;
    int exponent = -13;
    if (size > 0) frexp(size, &exponent);
    if (exponent < -13) exponent = -13;
    double units = rint(ldexp(size, 11 - exponent)); // of the last place, 1024 to 2048 if normal
    return sign | (uint32_t)((exponent + 13) * 1024 + (int)units);
}

static double half_value(uint32_t bits)
{
    int exponent = bits >> 10 & 31, rest = bits & 1023;
    double size = exponent == 31 ? (rest ? NAN : INFINITY)
                  : exponent     ? ldexp(1024 + rest, exponent - 25)
                                 : ldexp(rest, -24);
    return bits & 0x8000u ? -size : size;
}

static uint32_t bfloat_of(float x)
{
    uint32_t bits = bits_of(x), low = bits & 0xffffu, high = bits >> 16;
    return high + (low > 0x8000u || (low == 0x8000u && (high & 1)));
}

static unsigned judge_small(const item_t *item, const answer_t *answer)
{
    unsigned wrong = 0;
    uint32_t dot = item->a ^ item->b, dot_unsigned = dot;
    for (int i = 0; i < 32; i += 8) {
        dot += (uint32_t)((int8_t)(item->a >> i) * (int8_t)(item->b >> i));
        dot_unsigned += (item->a >> i & 255) * (item->b >> i & 255);
    }
    wrong += judge_bits("dot4_signed", item, answer->dot_signed, dot);
    wrong += judge_bits("dot4_unsigned", item, answer->dot_unsigned, dot_unsigned);
    if (isnan(item->x))
        wrong += !isnan(half_value(answer->half)) || !isnan(float_of(answer->bfloat << 16));
    else {
        wrong += judge_bits("half_of", item, answer->half, half_of(item->x));
        wrong += judge_bits("bfloat_of", item, answer->bfloat, bfloat_of(item->x));
    }
    wrong += judge("float_of_half", item, float_of(answer->from_half), half_value(item->a), 0);
    wrong += judge_bits("float_of_bfloat", item, answer->from_bfloat, item->a << 16);
    return wrong;
}

static unsigned judge_exact(const item_t *item, const answer_t *answer)
{
    float x = item->x, y = item->y;
    unsigned wrong = 0;
    wrong += judge("sqrt", item, answer->sqrt, sqrt(x), 0.5);
    wrong += judge("fma", item, answer->fma, fmaf(x, y, 1.0f), 0);
    wrong += judge("floor", item, answer->floor, floorf(x), 0);
    wrong += judge("ceil", item, answer->ceil, ceilf(x), 0);
    wrong += judge("trunc", item, answer->trunc, truncf(x), 0);
    wrong += judge("rint", item, answer->rint, rintf(x), 0);
    wrong += judge("min", item, answer->min, fminf(x, y), 0);
    wrong += judge("max", item, answer->max, fmaxf(x, y), 0);
    wrong += judge("quotient", item, answer->quotient, x / y, 0);
    return wrong;
}

static unsigned judge_bounded(const item_t *item, const answer_t *answer)
{
    float x = item->x;
    unsigned wrong = 0;
    double small = 1; // what a subnormal result may be off by more
    wrong += judge("exp", item, answer->exp, exp(x), exp(x) < 0x1p-126 ? 2 + small : 2);
    wrong += judge("exp2", item, answer->exp2, exp2(x), exp2(x) < 0x1p-126 ? 2 + small : 2);
    wrong += judge("log", item, answer->log, log(x), 2);
    wrong += judge("log2", item, answer->log2, log2(x), 3);
    if (x >= 0 && !isnan(item->y)) wrong += judge("pow", item, answer->pow, pow(x, item->y), 1);
    wrong += judge("tanh", item, answer->tanh, tanh(x), 3);
    wrong += judge("erf", item, answer->erf, erf(x), 3);
    wrong += judge("rsqrt", item, answer->rsqrt, 1.0 / sqrt(x), 2);
    if (fabsf(x) <= 1e6f) {
        if (distance(answer->sin, sin(x), 2e-9) > 2)
            wrong += worst_case("sin", item, answer->sin, sin(x), 2);
        if (distance(answer->cos, cos(x), 2e-9) > 2)
            wrong += worst_case("cos", item, answer->cos, cos(x), 2);
    }
    return wrong;
}

unsigned items_judge(const item_t *items, const answer_t *answers, size_t count)
{
    unsigned wrong = 0;
    for (size_t i = 0; i < count && wrong < 20; i++)
        wrong += judge_small(&items[i], &answers[i]) + judge_exact(&items[i], &answers[i]) +
                 judge_bounded(&items[i], &answers[i]);
    return wrong;
}

void words_make(uint32_t words[ATOMIC_ITEMS])
{
    uint64_t state = 2;
    for (int i = 0; i < ATOMIC_ITEMS; i++) words[i] = (uint32_t)random_of(&state) | 0x10u;
}

void tally_begin(tally_t *tally)
{
    *tally = (tally_t){.least = ~0u,
                       .common = ~0u,
                       .least_signed = INT32_MAX,
                       .long_least = 0,
                       .most_signed = INT32_MIN};
}

#define SAME(field)                                                                                \
    do {                                                                                           \
        if (tally->field != want.field) {                                                          \
            printf(#field " is %.17g, not %.17g\n", (double)tally->field, (double)want.field);     \
            wrong++;                                                                               \
        }                                                                                          \
    } while (0)

unsigned tally_judge(const uint32_t words[ATOMIC_ITEMS], const tally_t *tally)
{
    unsigned wrong = 0;
    tally_t want;
    tally_begin(&want);
    for (int i = 0; i < ATOMIC_ITEMS; i++) {
        uint32_t x = words[i];
        want.sum += x;
        want.common &= x;
        want.any |= x;
        want.odd ^= x;
        if (x < want.least) want.least = x;
        if (x > want.most) want.most = x;
        if ((int32_t)x < want.least_signed) want.least_signed = (int32_t)x;
        if ((int32_t)x > want.most_signed) want.most_signed = (int32_t)x;
        if (-(int64_t)x < want.long_least) want.long_least = -(int64_t)x;
        if ((int64_t)x << 20 > want.long_most) want.long_most = (int64_t)x << 20;
        want.long_sum =
            (int64_t)((uint64_t)want.long_sum + ((uint64_t)x << 8) + ((uint64_t)x << 40));
        want.long_any |= (uint64_t)x << 32;
        want.float_sum += (float)(x % 4);
        want.float_least = fminf(want.float_least, (float)(int32_t)x);
        want.float_most = fmaxf(want.float_most, (float)(int32_t)x);
        want.double_sum += x;
    }
    // Every word was exchanged for another but the last, which lies there.
    want.long_sum = (int64_t)((uint64_t)want.long_sum - ((uint64_t)tally->swapped << 40));
    want.local_sum = want.subgroup_sum = want.sum;
    want.subgroup_most = want.most;
    want.first = 7;
    SAME(sum);
    SAME(least);
    SAME(most);
    SAME(common);
    SAME(any);
    SAME(odd);
    SAME(first);
    SAME(local_sum);
    SAME(subgroup_sum);
    SAME(subgroup_most);
    SAME(least_signed);
    SAME(most_signed);
    SAME(float_sum);
    SAME(float_least);
    SAME(float_most);
    if (tally->narrow) return wrong;
    SAME(double_sum);
    SAME(long_sum);
    SAME(long_least);
    SAME(long_most);
    SAME(long_any);
    return wrong;
}

void matrix_make(float matrix[TRANSPOSED * TRANSPOSED])
{
    for (int i = 0; i < TRANSPOSED * TRANSPOSED; i++) matrix[i] = (float)i;
}

unsigned matrix_judge(const float in[TRANSPOSED * TRANSPOSED],
                      const float out[TRANSPOSED * TRANSPOSED])
{
    unsigned wrong = 0;
    for (int y = 0; y < TRANSPOSED; y++) {
        for (int x = 0; x < TRANSPOSED; x++) {
            float want = in[x * TRANSPOSED + y] + (float)(y % 16 * 16 + x % 16);
            if (out[y * TRANSPOSED + x] != want) wrong++;
        }
    }
    if (wrong) printf("%u elements are not transposed\n", wrong);
    return wrong;
}
