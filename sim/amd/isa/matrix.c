// SPDX-License-Identifier: Apache-2.0
// Matrix instructions: D = A B + C for one or several blocks, whose elements are spread over the
// lanes of the wave. exec has no say. Products are added to the sum one by one, each fused.
#include <math.h>

#include "amd/isa/lanes.h"

typedef enum { OF_F32, OF_F16, OF_BF16, OF_BF16_1K, OF_I8, OF_F64 } kind_t;

typedef struct {
    uint8_t m, k, blocks; // rows and columns of D; columns of A; number of products
    uint8_t kind;         // kind_t
} shape_t;

// Name, m, k, blocks, kind.
#define SHAPES(X)                                                                                  \
    X(v_mfma_f32_32x32x1f32, 32, 1, 2, OF_F32)                                                     \
    X(v_mfma_f32_16x16x1f32, 16, 1, 4, OF_F32)                                                     \
    X(v_mfma_f32_4x4x1f32, 4, 1, 16, OF_F32)                                                       \
    X(v_mfma_f32_32x32x2f32, 32, 2, 1, OF_F32)                                                     \
    X(v_mfma_f32_16x16x4f32, 16, 4, 1, OF_F32)                                                     \
    X(v_mfma_f32_32x32x4f16, 32, 4, 2, OF_F16)                                                     \
    X(v_mfma_f32_16x16x4f16, 16, 4, 4, OF_F16)                                                     \
    X(v_mfma_f32_4x4x4f16, 4, 4, 16, OF_F16)                                                       \
    X(v_mfma_f32_32x32x8f16, 32, 8, 1, OF_F16)                                                     \
    X(v_mfma_f32_16x16x16f16, 16, 16, 1, OF_F16)                                                   \
    X(v_mfma_f32_32x32x2bf16, 32, 2, 2, OF_BF16)                                                   \
    X(v_mfma_f32_16x16x2bf16, 16, 2, 4, OF_BF16)                                                   \
    X(v_mfma_f32_4x4x2bf16, 4, 2, 16, OF_BF16)                                                     \
    X(v_mfma_f32_32x32x4bf16, 32, 4, 1, OF_BF16)                                                   \
    X(v_mfma_f32_16x16x8bf16, 16, 8, 1, OF_BF16)                                                   \
    X(v_mfma_f32_32x32x4bf16_1k, 32, 4, 2, OF_BF16_1K)                                             \
    X(v_mfma_f32_16x16x4bf16_1k, 16, 4, 4, OF_BF16_1K)                                             \
    X(v_mfma_f32_4x4x4bf16_1k, 4, 4, 16, OF_BF16_1K)                                               \
    X(v_mfma_f32_32x32x8bf16_1k, 32, 8, 1, OF_BF16_1K)                                             \
    X(v_mfma_f32_16x16x16bf16_1k, 16, 16, 1, OF_BF16_1K)                                           \
    X(v_mfma_i32_32x32x4i8, 32, 4, 2, OF_I8)                                                       \
    X(v_mfma_i32_16x16x4i8, 16, 4, 4, OF_I8)                                                       \
    X(v_mfma_i32_4x4x4i8, 4, 4, 16, OF_I8)                                                         \
    X(v_mfma_i32_32x32x8i8, 32, 8, 1, OF_I8)                                                       \
    X(v_mfma_i32_16x16x16i8, 16, 16, 1, OF_I8)                                                     \
    X(v_mfma_f64_16x16x4f64, 16, 4, 1, OF_F64)                                                     \
    X(v_mfma_f64_4x4x4f64, 4, 4, 4, OF_F64)

#define SHAPE(name, m, k, blocks, kind) {m, k, blocks, kind},
static const shape_t shapes[] = {SHAPES(SHAPE)};

enum { ELEMENTS_MAX = LANES * 4, RESULTS_MAX = 32 * LANES };

// Elements of A or B that one lane holds.
static unsigned per_lane(const shape_t *shape)
{
    return (unsigned)shape->k * shape->m * shape->blocks / LANES;
}

// Which lanes B is read from.
static unsigned pattern_lane(unsigned pattern, unsigned lane)
{
    switch (pattern) {
    case 1: return lane % 32;
    case 2: return 32 + lane % 32;
    case 3: return (lane + 16) % LANES;
    case 4:
    case 5:
    case 6:
    case 7: return 16 * (pattern - 4) + lane % 16;
    default: return lane;
    }
}

static double element(const uint32_t *v, unsigned lane, unsigned n, kind_t kind)
{
    switch (kind) {
    case OF_F32: return (double)GET_f32(v, lane);
    case OF_F16: return (double)half_to_float((uint16_t)(v[n / 2 * LANES + lane] >> 16 * (n % 2)));
    case OF_BF16:
    case OF_BF16_1K: return (double)bits_float(v[n / 2 * LANES + lane] >> 16 * (n % 2) << 16);
    case OF_I8: return (double)(int8_t)(v[lane] >> 8 * n);
    default: return GET_f64(v, lane);
    }
}

// Element (row, n) of a block of A is at [block][row][n]; B is kept by columns in the same way.
static void gather(const shape_t *shape, const uint32_t *v, unsigned pattern, double *out)
{
    unsigned each = per_lane(shape);
    for (unsigned block = 0; block < shape->blocks; block++) {
        for (unsigned row = 0; row < shape->m; row++) {
            for (unsigned n = 0; n < shape->k; n++) {
                unsigned lane = row + shape->m * (block + shape->blocks * (n / each));
                *out++ = element(v, pattern_lane(pattern, lane), n % each, (kind_t)shape->kind);
            }
        }
    }
}

typedef struct {
    unsigned item, lane;
} place_t;

// Where element (row, column) of a block of C and D is. Lanes hold groups of rows; what blocks and
// groups leave of the 64 lanes goes into further registers.
static place_t place(const shape_t *shape, unsigned block, unsigned row, unsigned column)
{
    unsigned m = shape->m, group = shape->kind == OF_F64 ? 1 : 4, area = m * m / group;
    unsigned block_lanes = area < LANES ? LANES / area : 1, row_lanes = LANES / block_lanes / m;
    unsigned repeats = m / (group * row_lanes);
    return (place_t){
        row % group +
            group * (row / (group * row_lanes) % repeats + repeats * (block / block_lanes)),
        column + m * (block % block_lanes + block_lanes * (row / group % row_lanes)),
    };
}

// One element of D from its row of A and its column of B.
static uint64_t product(const shape_t *shape, const double *a, const double *b, uint64_t c)
{
    if (shape->kind == OF_F64) {
        double sum = bits_double(c);
        for (unsigned n = 0; n < shape->k; n++) sum = fma(a[n], b[n], sum);
        return double_bits(sum);
    }
    if (shape->kind == OF_I8) {
        uint32_t sum = (uint32_t)c;
        for (unsigned n = 0; n < shape->k; n++) sum += (uint32_t)((int32_t)a[n] * (int32_t)b[n]);
        return sum;
    }
    float sum = bits_float((uint32_t)c);
    for (unsigned n = 0; n < shape->k; n++) sum = fmaf((float)a[n], (float)b[n], sum);
    return float_bits(sum);
}

// cbsz blocks (as a power of two) share the block of A that abid names.
static unsigned block_of_a(const insn_t *i, unsigned block)
{
    unsigned shared = 1u << (i->offset & 7), which = (unsigned)i->offset >> 4 & 15;
    return (block & ~(shared - 1)) + which % shared;
}

static uint64_t word_of_c(wave_t *w, const insn_t *i, place_t at, unsigned words)
{
    if (i->src[2].from != FROM_VECTOR) {
        const uint32_t *constant = wave_source(w, i, 2);
        return words == 2 ? GET_u64(constant, at.lane) : constant[at.lane];
    }
    const uint32_t *v = w->v[i->src[2].index + at.item * words];
    return words == 2 ? GET_u64(v, at.lane) : v[at.lane];
}

unsigned matrix_registers(const op_t *op)
{
    const shape_t *shape = &shapes[op->detail];
    unsigned words = shape->kind == OF_F64 ? 2 : 1;
    return words * shape->m * shape->m * shape->blocks / LANES;
}

static const insn_t *run_matrix(wave_t *w, const insn_t *i)
{
    const shape_t *shape = &shapes[i->op->detail];
    unsigned words = shape->kind == OF_F64 ? 2 : 1, m = shape->m, k = shape->k;
    double a[ELEMENTS_MAX], b[ELEMENTS_MAX];
    uint32_t d[RESULTS_MAX];
    gather(shape, wave_source(w, i, 0), 0, a);
    gather(shape, wave_source(w, i, 1), (unsigned)i->offset >> 8, b);
    for (unsigned block = 0; block < shape->blocks; block++) {
        const double *block_a = a + block_of_a(i, block) * m * k, *block_b = b + block * m * k;
        for (unsigned n = 0; n < m * m; n++) {
            place_t at = place(shape, block, n / m, n % m);
            uint64_t value = product(shape, block_a + n / m * k, block_b + n % m * k,
                                     word_of_c(w, i, at, words));
            d[at.item * words * LANES + at.lane] = (uint32_t)value;
            if (words == 2) d[(at.item * words + 1) * LANES + at.lane] = (uint32_t)(value >> 32);
        }
    }
    memcpy(w->v[i->dst], d, 4u * m * m * shape->blocks * words);
    return insn_next(i);
}

#define TYPES_OF_F32                                                                               \
    TYPE_f32,                                                                                      \
    {                                                                                              \
        TYPE_u32, TYPE_u32, TYPE_f32                                                               \
    }
#define TYPES_OF_F16                                                                               \
    TYPE_f32,                                                                                      \
    {                                                                                              \
        TYPE_u64, TYPE_u64, TYPE_f32                                                               \
    }
#define TYPES_OF_BF16                                                                              \
    TYPE_f32,                                                                                      \
    {                                                                                              \
        TYPE_u32, TYPE_u32, TYPE_f32                                                               \
    }
#define TYPES_OF_BF16_1K                                                                           \
    TYPE_f32,                                                                                      \
    {                                                                                              \
        TYPE_u64, TYPE_u64, TYPE_f32                                                               \
    }
#define TYPES_OF_I8                                                                                \
    TYPE_i32,                                                                                      \
    {                                                                                              \
        TYPE_u32, TYPE_u32, TYPE_i32                                                               \
    }
#define TYPES_OF_F64                                                                               \
    TYPE_f64,                                                                                      \
    {                                                                                              \
        TYPE_f64, TYPE_f64, TYPE_f64                                                               \
    }

// The numbers of the shapes, in the order of their table.
#define NUMBER(name, m, k, blocks, kind) NUMBER_##name,
enum { SHAPES(NUMBER) };
#define ROW(name, m, k, blocks, kind)                                                              \
    {#name, run_matrix, NULL, TYPES_##kind, OP_MATRIX, NUMBER_##name},
static const op_t ops[] = {SHAPES(ROW)};
const op_list_t matrix_ops = {ops, sizeof ops / sizeof *ops};
