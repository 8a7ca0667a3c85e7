// SPDX-License-Identifier: Apache-2.0
// Part of <keel/kernel.h>: integers of 32 and of 64 bits, signed or not. All of it is exact.
//
//   keel_popcount(x)            how many bits are set
//   keel_clz(x)  keel_ctz(x)    how many zeros lead, and how many end it; of 0 all bits
//   keel_reverse(x)             the bits in the other direction, unsigned
//   keel_rotate(x, n)           to the left by n modulo the width, unsigned
//   keel_mulhi(x, y)            the upper half of the product
//
// keel_min, keel_max, keel_clamp and keel_abs of math.h are for integers, too.
#ifndef KEEL_KERNEL_INTEGER_H_
#define KEEL_KERNEL_INTEGER_H_

// The functions for the types that integers are computed with.
// clang-format off
#define KEEL_INTEGERS_(name)                                                                       \
    int: keel_##name##_i32,                                                                        \
    unsigned: keel_##name##_u32,                                                                   \
    long: keel_##name##_i64,                                                                       \
    unsigned long: keel_##name##_u64,                                                              \
    long long: keel_##name##_i64,                                                                  \
    unsigned long long: keel_##name##_u64
// clang-format on
#define KEEL_BITS_(name, x)                                                                        \
    _Generic((x) + 0,                                                                              \
        int: keel_##name##_u32,                                                                    \
        unsigned: keel_##name##_u32,                                                               \
        long: keel_##name##_u64,                                                                   \
        unsigned long: keel_##name##_u64,                                                          \
        long long: keel_##name##_u64,                                                              \
        unsigned long long: keel_##name##_u64)

#define keel_popcount(x)  KEEL_BITS_(popcount, x)(x)
#define keel_clz(x)       KEEL_BITS_(clz, x)(x)
#define keel_ctz(x)       KEEL_BITS_(ctz, x)(x)
#define keel_reverse(x)   KEEL_BITS_(reverse, x)(x)
#define keel_rotate(x, n) KEEL_BITS_(rotate, x)(x, n)
#define keel_mulhi(x, y)  _Generic((x) + (y), KEEL_INTEGERS_(mulhi))(x, y)

KEEL_INLINE_ uint32_t keel_popcount_u32(uint32_t x)
{
    return (uint32_t)__builtin_popcount(x);
}

KEEL_INLINE_ uint32_t keel_popcount_u64(uint64_t x)
{
    return (uint32_t)__builtin_popcountll(x);
}

KEEL_INLINE_ uint32_t keel_clz_u32(uint32_t x)
{
    return x ? (uint32_t)__builtin_clz(x) : 32;
}

KEEL_INLINE_ uint32_t keel_clz_u64(uint64_t x)
{
    return x ? (uint32_t)__builtin_clzll(x) : 64;
}

KEEL_INLINE_ uint32_t keel_ctz_u32(uint32_t x)
{
    return x ? (uint32_t)__builtin_ctz(x) : 32;
}

KEEL_INLINE_ uint32_t keel_ctz_u64(uint64_t x)
{
    return x ? (uint32_t)__builtin_ctzll(x) : 64;
}

KEEL_INLINE_ uint32_t keel_reverse_u32(uint32_t x)
{
#if defined(__clang__)
    return __builtin_bitreverse32(x);
#else
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(x);
#endif
}

KEEL_INLINE_ uint64_t keel_reverse_u64(uint64_t x)
{
    return (uint64_t)keel_reverse_u32((uint32_t)x) << 32 | keel_reverse_u32((uint32_t)(x >> 32));
}

KEEL_INLINE_ uint32_t keel_rotate_u32(uint32_t x, uint32_t n)
{
    return x << (n & 31) | x >> (-n & 31);
}

KEEL_INLINE_ uint64_t keel_rotate_u64(uint64_t x, uint32_t n)
{
    return x << (n & 63) | x >> (-n & 63);
}

KEEL_INLINE_ uint32_t keel_mulhi_u32(uint32_t x, uint32_t y)
{
    return (uint32_t)((uint64_t)x * y >> 32);
}

KEEL_INLINE_ int32_t keel_mulhi_i32(int32_t x, int32_t y)
{
    return (int32_t)((int64_t)x * y >> 32);
}

#if KEEL_MSL // integers have 64 bits at most

KEEL_INLINE_ uint64_t keel_mulhi_u64(uint64_t x, uint64_t y)
{
    uint64_t low = (x & 0xffffffffu) * (y & 0xffffffffu);
    uint64_t one = (x >> 32) * (y & 0xffffffffu) + (low >> 32);
    uint64_t two = (x & 0xffffffffu) * (y >> 32) + (one & 0xffffffffu);
    return (x >> 32) * (y >> 32) + (one >> 32) + (two >> 32);
}

KEEL_INLINE_ int64_t keel_mulhi_i64(int64_t x, int64_t y)
{
    uint64_t high = keel_mulhi_u64((uint64_t)x, (uint64_t)y);
    return (int64_t)(high - (x < 0 ? (uint64_t)y : 0) - (y < 0 ? (uint64_t)x : 0));
}

#else

KEEL_INLINE_ uint64_t keel_mulhi_u64(uint64_t x, uint64_t y)
{
    return (uint64_t)((unsigned __int128)x * y >> 64);
}

KEEL_INLINE_ int64_t keel_mulhi_i64(int64_t x, int64_t y)
{
    return (int64_t)((__int128)x * y >> 64);
}

#endif

#define KEEL_CHOOSE_(name, type)                                                                   \
    KEEL_INLINE_ type keel_min_##name(type x, type y)                                              \
    {                                                                                              \
        return y < x ? y : x;                                                                      \
    }                                                                                              \
    KEEL_INLINE_ type keel_max_##name(type x, type y)                                              \
    {                                                                                              \
        return y > x ? y : x;                                                                      \
    }
KEEL_CHOOSE_(i32, int32_t)
KEEL_CHOOSE_(u32, uint32_t)
KEEL_CHOOSE_(i64, int64_t)
KEEL_CHOOSE_(u64, uint64_t)

// That of the least number is itself.
KEEL_INLINE_ int32_t keel_abs_i32(int32_t x)
{
    return x < 0 ? (int32_t)(0u - (uint32_t)x) : x;
}

KEEL_INLINE_ uint32_t keel_abs_u32(uint32_t x)
{
    return x;
}

KEEL_INLINE_ int64_t keel_abs_i64(int64_t x)
{
    return x < 0 ? (int64_t)(UINT64_C(0) - (uint64_t)x) : x;
}

KEEL_INLINE_ uint64_t keel_abs_u64(uint64_t x)
{
    return x;
}

#endif
