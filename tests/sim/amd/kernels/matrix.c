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

#ifndef __gfx942__
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

#endif

static inline int bytes(const float *from, uint32_t stride)
{
    uint32_t word = 0;
    for (uint32_t e = 0; e < 4; e++) word |= (uint32_t)(uint8_t)(int)from[stride * e] << 8 * e;
    return (int)word;
}

#ifndef __gfx942__
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

#endif

#ifndef __gfx908__
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

#ifdef __gfx942__
typedef float f2 __attribute__((ext_vector_type(2)));
typedef half_t h8 __attribute__((ext_vector_type(8)));
typedef short s8 __attribute__((ext_vector_type(8)));
typedef int i2 __attribute__((ext_vector_type(2)));

#define SMFMAC(name) __builtin_amdgcn_smfmac_##name

// Where a lane's part of a matrix with m rows begins, when it has so many elements of a row of A
// or a column of B.
#define PART_A(m, k, each) (a + (k) * (LANE % (m)) + (each) * (LANE / (m)))
#define PART_B(m, each)    (b + (m) * (each) * (LANE / (m)) + LANE % (m))

#define STORE_16(sum)                                                                              \
    for (uint32_t r = 0; r < 4; r++) d[16 * (4 * (LANE / 16) + r) + LANE % 16] = (float)(sum)[r]
#define STORE_32(sum)                                                                              \
    for (uint32_t r = 0; r < 16; r++)                                                              \
    d[32 * (8 * (r / 4) + 4 * (LANE / 32) + r % 4) + LANE % 32] = (float)(sum)[r]

KERNEL void xf32_16x16x8(const float *a, const float *b, float *d)
{
    const float *x = PART_A(16, 8, 2), *y = PART_B(16, 2);
    f4 sum = MFMA(f32_16x16x8_xf32)((f2){x[0], x[1]}, (f2){y[0], y[16]}, (f4)0, 0, 0, 0);
    STORE_16(sum);
}

KERNEL void xf32_32x32x4(const float *a, const float *b, float *d)
{
    const float *x = PART_A(32, 4, 2), *y = PART_B(32, 2);
    f16v sum = MFMA(f32_32x32x4_xf32)((f2){x[0], x[1]}, (f2){y[0], y[32]}, (f16v)0, 0, 0, 0);
    STORE_32(sum);
}

// Only the upper ten bits of the mantissas count, rounded.
KERNEL void xf32_rounds(const float *a, const float *b, float *d)
{
    const float *x = PART_A(16, 8, 2), *y = PART_B(16, 2);
    f2 near = {x[0] * 0x1.001p0f, x[1] * 0x1.ffep-1f}, below = {y[0] * 0x1.ffep-1f, y[16]};
    f4 sum = MFMA(f32_16x16x8_xf32)(near, below, (f4)0, 0, 0, 0);
    STORE_16(sum);
}

#define LONG(kind, from, stride)                                                                   \
    (long)((uint64_t)(uint32_t)kind((from) + 4 * (stride), stride) << 32 |                         \
           (uint32_t)kind(from, stride))

KERNEL void i8_16x16x32(const float *a, const float *b, float *d)
{
    i4 sum = MFMA(i32_16x16x32_i8)(LONG(bytes, PART_A(16, 32, 8), 1),
                                   LONG(bytes, PART_B(16, 8), 16), (i4)0, 0, 0, 0);
    STORE_16(sum);
}

KERNEL void i8_32x32x16(const float *a, const float *b, float *d)
{
    i16v sum = MFMA(i32_32x32x16_i8)(LONG(bytes, PART_A(32, 16, 8), 1),
                                     LONG(bytes, PART_B(32, 8), 32), (i16v)0, 0, 0, 0);
    STORE_32(sum);
}

static inline int fp8(const float *from, uint32_t stride)
{
    int word = __builtin_amdgcn_cvt_pk_fp8_f32(from[0], from[stride], 0, false);
    return __builtin_amdgcn_cvt_pk_fp8_f32(from[2 * stride], from[3 * stride], word, true);
}

static inline int bf8(const float *from, uint32_t stride)
{
    int word = __builtin_amdgcn_cvt_pk_bf8_f32(from[0], from[stride], 0, false);
    return __builtin_amdgcn_cvt_pk_bf8_f32(from[2 * stride], from[3 * stride], word, true);
}

#define NARROW_16(x, y)                                                                            \
    KERNEL void x##_##y##_16x16x32(const float *a, const float *b, float *d)                       \
    {                                                                                              \
        f4 sum = MFMA(f32_16x16x32_##x##_##y)(LONG(x, PART_A(16, 32, 8), 1),                       \
                                              LONG(y, PART_B(16, 8), 16), (f4)0, 0, 0, 0);         \
        STORE_16(sum);                                                                             \
    }
#define NARROW_32(x, y)                                                                            \
    KERNEL void x##_##y##_32x32x16(const float *a, const float *b, float *d)                       \
    {                                                                                              \
        f16v sum = MFMA(f32_32x32x16_##x##_##y)(LONG(x, PART_A(32, 16, 8), 1),                     \
                                                LONG(y, PART_B(32, 8), 32), (f16v)0, 0, 0, 0);     \
        STORE_32(sum);                                                                             \
    }
#define NARROW(X) X(fp8, fp8) X(fp8, bf8) X(bf8, fp8) X(bf8, bf8)
NARROW(NARROW_16)
NARROW(NARROW_32)

KERNEL void f64_signs(const float *a, const float *b, float *d)
{
    uint32_t n = LANE % 16, k = LANE / 16;
    d4 sum = MFMA(f64_16x16x4f64)((double)a[4 * n + k], (double)b[16 * k + n], (d4)1, 0, 0, 5);
    for (uint32_t r = 0; r < 4; r++) d[16 * (4 * r + k) + n] = 1 + (float)sum[r];
}

// Sparse products: of every four elements of A, in group g of row n, those of pair (n + g) % 6 are
// given.
static const uint8_t pairs[6] = {0x4, 0x8, 0xc, 0x9, 0xd, 0xe};

static inline uint32_t pair_of(uint32_t row, uint32_t group)
{
    return pairs[(row + group) % 6];
}

// The indices of a lane's given elements, of which there are so many.
static inline uint32_t indices(uint32_t m, uint32_t given)
{
    uint32_t all = 0, first = given / 2 * (LANE / m);
    for (uint32_t g = 0; g < given / 2; g++) all |= pair_of(LANE % m, first + g) << 4 * g;
    return all;
}

static inline float given_of(const float *row, uint32_t m, uint32_t given, uint32_t e)
{
    uint32_t group = given / 2 * (LANE / m) + e / 2;
    return row[4 * group + (pair_of(LANE % m, group) >> 2 * (e % 2) & 3)];
}

#define SPARSE_HALF(name, m, k, sum_t, STORE, set, cbsz, abid)                                     \
    KERNEL void name(const float *a, const float *b, float *d)                                     \
    {                                                                                              \
        h4 x;                                                                                      \
        h8 y;                                                                                      \
        const float *row = a + (k) * (LANE % (m)), *part = PART_B(m, 8);                           \
        for (uint32_t e = 0; e < 4; e++) x[e] = (half_t)given_of(row, m, 4, e);                    \
        for (uint32_t e = 0; e < 8; e++) y[e] = (half_t)part[(m) * e];                             \
        uint32_t others = 0x1b1b1b1b & ~(0xffu << 8 * (set));                                      \
        int index = (int)(indices(m, 4) << 8 * (set) | others);                                    \
        sum_t sum = SMFMAC(f32_##m##x##m##x##k##_f16)(x, y, (sum_t)0, index, cbsz, abid);          \
        STORE(sum);                                                                                \
    }
SPARSE_HALF(sparse_f16_16, 16, 32, f4, STORE_16, 0, 0, 0)
SPARSE_HALF(sparse_f16_set, 16, 32, f4, STORE_16, 2, 0, 2)
SPARSE_HALF(sparse_f16_first, 16, 32, f4, STORE_16, 0, 1, 2)
SPARSE_HALF(sparse_f16_32, 32, 16, f16v, STORE_32, 3, 0, 3)

#define SPARSE_BRAIN(name, m, k, sum_t, STORE)                                                     \
    KERNEL void name(const float *a, const float *b, float *d)                                     \
    {                                                                                              \
        s4 x;                                                                                      \
        s8 y;                                                                                      \
        const float *row = a + (k) * (LANE % (m)), *part = PART_B(m, 8);                           \
        for (uint32_t e = 0; e < 4; e++) x[e] = brain(given_of(row, m, 4, e));                     \
        for (uint32_t e = 0; e < 8; e++) y[e] = brain(part[(m) * e]);                              \
        sum_t sum = SMFMAC(f32_##m##x##m##x##k##_bf16)(x, y, (sum_t)0, (int)indices(m, 4), 0, 0);  \
        STORE(sum);                                                                                \
    }
SPARSE_BRAIN(sparse_bf16_16, 16, 32, f4, STORE_16)
SPARSE_BRAIN(sparse_bf16_32, 32, 16, f16v, STORE_32)

// Bytes of any kind: eight of A and sixteen of B in a lane.
#define SPARSE_BYTES(name, m, k, x_kind, y_kind, sum_t, STORE, operation, set)                     \
    KERNEL void name(const float *a, const float *b, float *d)                                     \
    {                                                                                              \
        float given[8];                                                                            \
        const float *row = a + (k) * (LANE % (m)), *part = PART_B(m, 16);                          \
        for (uint32_t e = 0; e < 8; e++) given[e] = given_of(row, m, 8, e);                        \
        i2 x = {x_kind(given, 1), x_kind(given + 4, 1)};                                           \
        i4 y;                                                                                      \
        for (uint32_t e = 0; e < 4; e++) y[e] = y_kind(part + 4 * (m) * e, m);                     \
        int index = (int)(indices(m, 8) << 16 * (set) | 0x1b1bu << 16 * (1 - (set)));              \
        sum_t sum = SMFMAC(operation)(x, y, (sum_t)0, index, 0, set);                              \
        STORE(sum);                                                                                \
    }
SPARSE_BYTES(sparse_i8_16, 16, 64, bytes, bytes, i4, STORE_16, i32_16x16x64_i8, 0)
SPARSE_BYTES(sparse_i8_32, 32, 32, bytes, bytes, i16v, STORE_32, i32_32x32x32_i8, 1)
SPARSE_BYTES(sparse_fp8_bf8_16, 16, 64, fp8, bf8, f4, STORE_16, f32_16x16x64_fp8_bf8, 1)
SPARSE_BYTES(sparse_fp8_fp8_16, 16, 64, fp8, fp8, f4, STORE_16, f32_16x16x64_fp8_fp8, 0)
SPARSE_BYTES(sparse_bf8_fp8_16, 16, 64, bf8, fp8, f4, STORE_16, f32_16x16x64_bf8_fp8, 0)
SPARSE_BYTES(sparse_bf8_bf8_16, 16, 64, bf8, bf8, f4, STORE_16, f32_16x16x64_bf8_bf8, 0)
SPARSE_BYTES(sparse_fp8_bf8_32, 32, 32, fp8, bf8, f16v, STORE_32, f32_32x32x32_fp8_bf8, 0)
SPARSE_BYTES(sparse_fp8_fp8_32, 32, 32, fp8, fp8, f16v, STORE_32, f32_32x32x32_fp8_fp8, 0)
SPARSE_BYTES(sparse_bf8_fp8_32, 32, 32, bf8, fp8, f16v, STORE_32, f32_32x32x32_bf8_fp8, 1)
SPARSE_BYTES(sparse_bf8_bf8_32, 32, 32, bf8, bf8, f16v, STORE_32, f32_32x32x32_bf8_bf8, 0)
#endif
