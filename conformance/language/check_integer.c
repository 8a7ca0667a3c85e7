// SPDX-License-Identifier: Apache-2.0
// Integers and sub-groups, by the slow way that is plain to see.
#include <stdbool.h>
#include <stdio.h>

#include "check.h"

#define SAME(type, field, want)                                                                    \
    do {                                                                                           \
        if (answer->field == (type)(want)) break;                                                  \
        printf(#field " is %llx, not %llx\n", (unsigned long long)answer->field,                   \
               (unsigned long long)(type)(want));                                                  \
        wrong++;                                                                                   \
    } while (0)

static uint32_t bits_count(uint64_t x)
{
    uint32_t count = 0;
    for (int i = 0; i < 64; i++) count += x >> i & 1;
    return count;
}

static uint32_t zeros_before(uint64_t x, uint32_t width)
{
    uint32_t count = 0;
    while (count < width && !(x >> (width - 1 - count) & 1)) count++;
    return count;
}

static uint32_t zeros_behind(uint64_t x, uint32_t width)
{
    uint32_t count = 0;
    while (count < width && !(x >> count & 1)) count++;
    return count;
}

static uint64_t reversed(uint64_t x, uint32_t width)
{
    uint64_t result = 0;
    for (uint32_t i = 0; i < width; i++) result |= (x >> i & 1) << (width - 1 - i);
    return result;
}

static uint64_t rotated(uint64_t x, uint32_t n, uint32_t width)
{
    uint64_t result = 0;
    for (uint32_t i = 0; i < width; i++) result |= (x >> i & 1) << ((i + n) % width);
    return result;
}

// By parts of 32 bits.
static uint64_t upper_half(uint64_t x, uint64_t y)
{
    uint64_t low = (x & UINT32_MAX) * (y & UINT32_MAX), a = (x >> 32) * (y & UINT32_MAX);
    uint64_t b = (x & UINT32_MAX) * (y >> 32), middle = (low >> 32) + (a & UINT32_MAX) + b;
    return (x >> 32) * (y >> 32) + (a >> 32) + (middle >> 32);
}

static int64_t signed_upper_half(int64_t x, int64_t y)
{
    uint64_t upper = upper_half((uint64_t)x, (uint64_t)y);
    return (int64_t)(upper - (x < 0 ? (uint64_t)y : 0) - (y < 0 ? (uint64_t)x : 0));
}

static unsigned judge_short(const item_t *item, const integers_t *answer)
{
    unsigned wrong = 0;
    uint32_t x = integer_of(item), y = item->b, a = item->a;
    int32_t sx = (int32_t)x, sy = (int32_t)y;
    SAME(uint32_t, popcount, bits_count(x));
    SAME(uint32_t, clz, zeros_before(x, 32));
    SAME(uint32_t, ctz, zeros_behind(x, 32));
    SAME(uint32_t, reverse, reversed(x, 32));
    SAME(uint32_t, rotate, rotated(x, y % 32, 32));
    SAME(uint32_t, mulhi, (uint64_t)x *y >> 32);
    SAME(uint32_t, min, x < y ? x : y);
    SAME(uint32_t, max, x < y ? y : x);
    SAME(uint32_t, clamp, x < 1000 ? 1000 : x > 2000000000 ? 2000000000 : x);
    SAME(uint32_t, dot2_signed,
         x + (uint32_t)((int16_t)a * (int16_t)y) +
             (uint32_t)((int16_t)(a >> 16) * (int16_t)(y >> 16)));
    SAME(uint32_t, dot2_unsigned, x + (a & 0xffffu) * (y & 0xffffu) + (a >> 16) * (y >> 16));
    SAME(int32_t, signed_mulhi, (int64_t)sx *sy >> 32);
    SAME(int32_t, signed_min, sx < sy ? sx : sy);
    SAME(int32_t, signed_max, sx < sy ? sy : sx);
    SAME(int32_t, signed_clamp, sx < -5 ? -5 : sx > 5 ? 5 : sx);
    SAME(int32_t, abs, sy < 0 ? 0u - y : y);
    return wrong;
}

static unsigned judge_long(const item_t *item, const integers_t *answer)
{
    unsigned wrong = 0;
    uint64_t x = long_of(item), y = (uint64_t)item->b << 32 | item->a;
    int64_t sx = (int64_t)x, sy = (int64_t)y;
    SAME(uint32_t, long_popcount, bits_count(x));
    SAME(uint32_t, long_clz, zeros_before(x, 64));
    SAME(uint32_t, long_ctz, zeros_behind(x, 64));
    SAME(uint64_t, long_reverse, reversed(x, 64));
    SAME(uint64_t, long_rotate, rotated(x, item->b % 64, 64));
    SAME(uint64_t, long_mulhi, upper_half(x, y));
    SAME(uint64_t, long_min, x < y ? x : y);
    SAME(uint64_t, long_max, x < y ? y : x);
    SAME(int64_t, signed_long_mulhi, signed_upper_half(sx, sy));
    SAME(int64_t, signed_long_min, sx < sy ? sx : sy);
    SAME(int64_t, signed_long_max, sx < sy ? sy : sx);
    SAME(int64_t, long_abs, sy < 0 ? 0 - y : y);
    return wrong;
}

unsigned integers_judge(const item_t *items, const integers_t *answers, size_t count)
{
    unsigned wrong = 0;
    for (size_t i = 0; i < count && wrong < 20; i++) {
        unsigned here = judge_short(&items[i], &answers[i]) + judge_long(&items[i], &answers[i]);
        if (here) printf("of a %08x b %08x\n", items[i].a, items[i].b);
        wrong += here;
    }
    return wrong;
}

// One sub-group, whose items have these words.
static unsigned judge_subgroup(const uint32_t *words, const subgroup_t *answers, uint32_t size)
{
    unsigned wrong = 0;
    subgroup_t want = {.size = size, .all = 1, .least = INT32_MAX, .long_most = INT64_MIN};
    for (uint32_t i = 0; i < size; i++) {
        uint32_t x = words[i];
        want.any |= x % 128 == 16;
        want.all &= x % 256 != 17;
        want.float_sum += (float)(x % 64);
        want.double_sum += x;
        want.ballot |= (uint64_t)(x & 1) << i;
        if ((int32_t)x < want.least) want.least = (int32_t)x;
        if (-(int64_t)x > want.long_most) want.long_most = -(int64_t)x;
    }
    for (uint32_t i = 0; i < size; i++) {
        const subgroup_t *answer = &answers[i];
        want.scan += words[i];
        want.long_scan += words[i];
        want.float_scan += (float)(words[i] % 64);
        SAME(uint32_t, size, size);
        SAME(uint32_t, item, i);
        SAME(uint32_t, shuffled, words[size - 1 - i]);
        SAME(uint32_t, scan, want.scan);
        SAME(uint32_t, any, want.any);
        SAME(uint32_t, all, want.all);
        SAME(int32_t, least, want.least);
        SAME(float, float_scan, want.float_scan);
        SAME(float, float_sum, want.float_sum);
        SAME(uint64_t, ballot, want.ballot);
        SAME(uint64_t, long_scan, want.long_scan);
        SAME(int64_t, long_most, want.long_most);
        SAME(double, double_sum, want.double_sum);
    }
    return wrong;
}

unsigned subgroups_judge(const uint32_t words[ATOMIC_ITEMS], const subgroup_t out[ATOMIC_ITEMS])
{
    unsigned wrong = 0;
    uint32_t size = out[0].size;
    if (size < 1 || size > 64 || size & (size - 1)) {
        printf("a sub-group has %u items\n", size);
        return 1;
    }
    for (uint32_t i = 0; i < ATOMIC_ITEMS && wrong < 20; i += size)
        wrong += judge_subgroup(words + i, out + i, size);
    return wrong;
}
