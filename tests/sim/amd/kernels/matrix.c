// SPDX-License-Identifier: Apache-2.0
// Products of small matrices by matrix instructions. Every kernel has the same arguments: A as
// [block][row][k], B as [block][k][column], D as [block][row][column], with D = A B.
#include "device.h"

__extension__ typedef _Float16 half_t;
typedef float f4 __attribute__((ext_vector_type(4)));
typedef float f16v __attribute__((ext_vector_type(16)));
typedef float f32v __attribute__((ext_vector_type(32)));
typedef int i4 __attribute__((ext_vector_type(4)));
typedef int i16v __attribute__((ext_vector_type(16)));
typedef half_t h4 __attribute__((ext_vector_type(4)));
typedef short s2 __attribute__((ext_vector_type(2)));
typedef short s4 __attribute__((ext_vector_type(4)));
typedef double d4 __attribute__((ext_vector_type(4)));

#define MFMA(name) __builtin_amdgcn_mfma_##name
#define LANE       lane_in_group()

KERNEL void f32_16x16x4(const float *a, const float *b, float *d)
{
    uint32_t n = LANE % 16, k = LANE / 16;
    f4 sum = MFMA(f32_16x16x4f32)(a[4 * n + k], b[16 * k + n], (f4)0, 0, 0, 0);
    for (uint32_t r = 0; r < 4; r++) d[16 * (4 * k + r) + n] = sum[r];
}

KERNEL void f32_32x32x2(const float *a, const float *b, float *d)
{
    uint32_t n = LANE % 32, k = LANE / 32;
    f16v sum = MFMA(f32_32x32x2f32)(a[2 * n + k], b[32 * k + n], (f16v)0, 0, 0, 0);
    for (uint32_t r = 0; r < 16; r++) d[32 * (8 * (r / 4) + 4 * k + r % 4) + n] = sum[r];
}

static inline void store_two_blocks(f32v sum, float *d)
{
    for (uint32_t r = 0; r < 32; r++) {
        uint32_t row = 8 * (r % 16 / 4) + 4 * (LANE / 32) + r % 4;
        d[1024 * (r / 16) + 32 * row + LANE % 32] = sum[r];
    }
}

KERNEL void f32_32x32x1(const float *a, const float *b, float *d)
{
    store_two_blocks(MFMA(f32_32x32x1f32)(a[LANE], b[LANE], (f32v)0, 0, 0, 0), d);
}

// Both products take the second block of A.
KERNEL void f32_shared_a(const float *a, const float *b, float *d)
{
    store_two_blocks(MFMA(f32_32x32x1f32)(a[LANE], b[LANE], (f32v)0, 1, 1, 0), d);
}

// Both products take the first block of B.
KERNEL void f32_shared_b(const float *a, const float *b, float *d)
{
    store_two_blocks(MFMA(f32_32x32x1f32)(a[LANE], b[LANE], (f32v)0, 0, 0, 1), d);
}

KERNEL void f32_16x16x1(const float *a, const float *b, float *d)
{
    f16v sum = MFMA(f32_16x16x1f32)(a[LANE], b[LANE], (f16v)0, 0, 0, 0);
    for (uint32_t r = 0; r < 16; r++) {
        d[256 * (r / 4) + 16 * (4 * (LANE / 16) + r % 4) + LANE % 16] = sum[r];
    }
}

KERNEL void f32_4x4x1(const float *a, const float *b, float *d)
{
    f4 sum = MFMA(f32_4x4x1f32)(a[LANE], b[LANE], (f4)0, 0, 0, 0);
    for (uint32_t r = 0; r < 4; r++) d[16 * (LANE / 4) + 4 * r + LANE % 4] = sum[r];
}

KERNEL void f16_32x32x8(const float *a, const float *b, float *d)
{
    uint32_t n = LANE % 32, k = 4 * (LANE / 32);
    h4 x, y;
    for (uint32_t e = 0; e < 4; e++) {
        x[e] = (half_t)a[8 * n + k + e];
        y[e] = (half_t)b[32 * (k + e) + n];
    }
    f16v sum = MFMA(f32_32x32x8f16)(x, y, (f16v)0, 0, 0, 0);
    for (uint32_t r = 0; r < 16; r++) d[32 * (8 * (r / 4) + k + r % 4) + n] = sum[r];
}

KERNEL void f16_16x16x16(const float *a, const float *b, float *d)
{
    uint32_t n = LANE % 16, k = 4 * (LANE / 16);
    h4 x, y;
    for (uint32_t e = 0; e < 4; e++) {
        x[e] = (half_t)a[16 * n + k + e];
        y[e] = (half_t)b[16 * (k + e) + n];
    }
    f4 sum = MFMA(f32_16x16x16f16)(x, y, (f4)0, 0, 0, 0);
    for (uint32_t r = 0; r < 4; r++) d[16 * (k + r) + n] = sum[r];
}

// The upper half of a float.
static inline short brain(float x)
{
    uint32_t bits;
    __builtin_memcpy(&bits, &x, 4);
    return (short)(bits >> 16);
}

KERNEL void bf16_16x16x8(const float *a, const float *b, float *d)
{
    uint32_t n = LANE % 16, k = 2 * (LANE / 16);
    s2 x, y;
    for (uint32_t e = 0; e < 2; e++) {
        x[e] = brain(a[8 * n + k + e]);
        y[e] = brain(b[16 * (k + e) + n]);
    }
    f4 sum = MFMA(f32_16x16x8bf16)(x, y, (f4)0, 0, 0, 0);
    for (uint32_t r = 0; r < 4; r++) d[16 * (4 * (LANE / 16) + r) + n] = sum[r];
}

static inline int bytes(const float *from, uint32_t stride)
{
    uint32_t word = 0;
    for (uint32_t e = 0; e < 4; e++) word |= (uint32_t)(uint8_t)(int)from[stride * e] << 8 * e;
    return (int)word;
}

KERNEL void i8_32x32x8(const float *a, const float *b, float *d)
{
    uint32_t n = LANE % 32, k = 4 * (LANE / 32);
    i16v sum =
        MFMA(i32_32x32x8i8)(bytes(a + 8 * n + k, 1), bytes(b + 32 * k + n, 32), (i16v)0, 0, 0, 0);
    for (uint32_t r = 0; r < 16; r++) d[32 * (8 * (r / 4) + k + r % 4) + n] = (float)sum[r];
}

KERNEL void i8_16x16x16(const float *a, const float *b, float *d)
{
    uint32_t n = LANE % 16, k = 4 * (LANE / 16);
    i4 sum =
        MFMA(i32_16x16x16i8)(bytes(a + 16 * n + k, 1), bytes(b + 16 * k + n, 16), (i4)0, 0, 0, 0);
    for (uint32_t r = 0; r < 4; r++) d[16 * (k + r) + n] = (float)sum[r];
}

#ifdef __gfx90a__
KERNEL void bf16_16x16x16_1k(const float *a, const float *b, float *d)
{
    uint32_t n = LANE % 16, k = 4 * (LANE / 16);
    s4 x, y;
    for (uint32_t e = 0; e < 4; e++) {
        x[e] = brain(a[16 * n + k + e]);
        y[e] = brain(b[16 * (k + e) + n]);
    }
    f4 sum = MFMA(f32_16x16x16bf16_1k)(x, y, (f4)0, 0, 0, 0);
    for (uint32_t r = 0; r < 4; r++) d[16 * (k + r) + n] = sum[r];
}

KERNEL void f64_16x16x4(const float *a, const float *b, float *d)
{
    uint32_t n = LANE % 16, k = LANE / 16;
    d4 sum = MFMA(f64_16x16x4f64)((double)a[4 * n + k], (double)b[16 * k + n], (d4)0, 0, 0, 0);
    for (uint32_t r = 0; r < 4; r++) d[16 * (4 * r + k) + n] = (float)sum[r];
}

KERNEL void f64_4x4x4(const float *a, const float *b, float *d)
{
    uint32_t n = LANE % 4, block = LANE / 4 % 4, k = LANE / 16;
    double x = (double)a[16 * block + 4 * n + k], y = (double)b[16 * block + 4 * k + n];
    d[16 * block + 4 * k + n] = (float)MFMA(f64_4x4x4f64)(x, y, 0.0, 0, 0, 0);
}
#endif
