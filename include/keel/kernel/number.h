// SPDX-License-Identifier: Apache-2.0
// Part of <keel/kernel.h>: numbers of 16 and of 8 bits. All of it is exact: the same bits on every
// target, but for the payload of what is not a number.
//
//   keel_half_t, keel_bfloat_t     16 bits of storage, as in {.bits = 0x3c00}; arithmetic on them
//                                  does not compile: kernels compute in floats
//   keel_half_of(x)                float to half, to the nearest, ties to even; not of a double,
//                                  which would be rounded twice: keel_half_of((float)x) says so
//   keel_float_of_half(h)
//   keel_bfloat_of(x)              the same for bfloat
//   keel_float_of_bfloat(b)
//   keel_dot4_signed(a, b, c)      c + the products of the four bytes of a and of b, modulo 2^32
//   keel_dot4_unsigned(a, b, c)
//   keel_dot2_signed(a, b, c)      the same with the two halves of a and of b
//   keel_dot2_unsigned(a, b, c)
#ifndef KEEL_KERNEL_NUMBER_H_
#define KEEL_KERNEL_NUMBER_H_

typedef struct keel_half_t {
    uint16_t bits;
} keel_half_t;

typedef struct keel_bfloat_t {
    uint16_t bits;
} keel_bfloat_t;

// Nothing, if x is no double.
#define KEEL_NO_DOUBLE_(name, x)                                                                   \
    (void)sizeof(struct {                                                                          \
        _Static_assert(_Generic((x), double: 0, long double: 0, default: 1),                       \
                       name " takes floats, and this is a double: convert it by (float)");         \
        char none;                                                                                 \
    })

#define keel_half_of(x)   (KEEL_NO_DOUBLE_("keel_half_of", x), keel_half_of_float(x))
#define keel_bfloat_of(x) (KEEL_NO_DOUBLE_("keel_bfloat_of", x), keel_bfloat_of_float(x))

#if KEEL_GPU || defined(__aarch64__) || (defined(__F16C__) && defined(__FLT16_MAX__))

KEEL_INLINE_ keel_half_t keel_half_of_float(float x)
{
    _Float16 half = (_Float16)x;
    keel_half_t h;
    __builtin_memcpy(&h, &half, 2);
    return h;
}

KEEL_INLINE_ float keel_float_of_half(keel_half_t h)
{
    _Float16 half;
    __builtin_memcpy(&half, &h, 2);
    return (float)half;
}

#else

KEEL_INLINE_ keel_half_t keel_half_of_float(float x)
{
    uint32_t bits = keel_bits_of_float(x), size = bits & 0x7fffffffu;
    // Normal: the exponent takes another base, the rest is rounded; a carry goes where it should.
    uint32_t normal = (size - 0x38000000u + 0xfffu + (size >> 13 & 1)) >> 13;
    // Subnormal: adding 1/2 shifts the bits to the end, and rounds.
    uint32_t small = keel_bits_of_float(keel_float_of(size) + 0.5f) - 0x3f000000u;
    uint32_t half = size < 0x38800000u ? small : normal;
    half = size >= 0x47800000u ? 0x7c00u : half;
    half = size > 0x7f800000u ? 0x7e00u : half;
    return (keel_half_t){(uint16_t)(half | (bits >> 16 & 0x8000u))};
}

KEEL_INLINE_ float keel_float_of_half(keel_half_t h)
{
    uint32_t size = h.bits & 0x7fffu;
    // 2^112 brings the exponent to its base, subnormals too.
    float x = keel_float_of(size << 13) * 0x1p112f;
    x = size >= 0x7c00u ? keel_float_of(0x7f800000u | (size & 0x3ffu) << 13) : x;
    return keel_float_of(keel_bits_of_float(x) | (uint32_t)(h.bits & 0x8000u) << 16);
}

#endif

KEEL_INLINE_ keel_bfloat_t keel_bfloat_of_float(float x)
{
    uint32_t bits = keel_bits_of_float(x);
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    uint32_t kept = (bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : rounded;
    return (keel_bfloat_t){(uint16_t)kept};
}

KEEL_INLINE_ float keel_float_of_bfloat(keel_bfloat_t b)
{
    return keel_float_of((uint32_t)b.bits << 16);
}

KEEL_INLINE_ int32_t keel_dot4_signed(uint32_t a, uint32_t b, int32_t c)
{
#if KEEL_NVPTX
    int32_t d;
    __asm__("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
#elif defined(__gfx906__) || defined(__gfx908__) || defined(__gfx90a__) || defined(__gfx942__)
    return __builtin_amdgcn_sdot4((int)a, (int)b, c, 0);
#elif KEEL_AMDGCN && __GFX11__ + __GFX12__ > 0
    return __builtin_amdgcn_sudot4(1, (int)a, 1, (int)b, c, 0);
#else
    uint32_t d = (uint32_t)c;
    for (int i = 0; i < 32; i += 8) d += (uint32_t)((int8_t)(a >> i) * (int8_t)(b >> i));
    return (int32_t)d;
#endif
}

KEEL_INLINE_ uint32_t keel_dot4_unsigned(uint32_t a, uint32_t b, uint32_t c)
{
#if KEEL_NVPTX
    uint32_t d;
    __asm__("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
#elif defined(__gfx906__) || defined(__gfx908__) || defined(__gfx90a__) || defined(__gfx942__) ||  \
    (KEEL_AMDGCN && __GFX11__ + __GFX12__ > 0)
    return __builtin_amdgcn_udot4(a, b, c, 0);
#else
    uint32_t d = c;
    for (int i = 0; i < 32; i += 8) d += (uint32_t)(uint8_t)(a >> i) * (uint8_t)(b >> i);
    return d;
#endif
}

KEEL_INLINE_ int32_t keel_dot2_signed(uint32_t a, uint32_t b, int32_t c)
{
    uint32_t low = (uint32_t)((int16_t)a * (int16_t)b);
    return (int32_t)((uint32_t)c + low + (uint32_t)((int16_t)(a >> 16) * (int16_t)(b >> 16)));
}

KEEL_INLINE_ uint32_t keel_dot2_unsigned(uint32_t a, uint32_t b, uint32_t c)
{
    return c + (a & 0xffffu) * (b & 0xffffu) + (a >> 16) * (b >> 16);
}

#endif
