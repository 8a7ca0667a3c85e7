// SPDX-License-Identifier: Apache-2.0
// Matrix instructions: D = A B + C for one or several blocks, whose elements are spread over the
// lanes of the wave. exec has no say. Products are added to the sum one by one, each fused.
//
// Those for sparse matrices add to D. Of every four elements in a row of A two are given, and an
// index of two bits for each tells which; other elements count as zero.
#include "amd/isa/fp8.h"

typedef enum { OF_F32, OF_XF32, OF_F16, OF_BF16, OF_I8, OF_FP8, OF_BF8, OF_F64 } kind_t;

typedef struct {
    uint8_t m, k, blocks; // rows and columns of D; columns of A; number of products
    uint8_t kind[2];      // kind_t of A and of B
} shape_t;

// Name, m, k, blocks, kinds. What gfx942 calls otherwise than the GPUs before it is there twice.
#define DENSE(X)                                                                                   \
    X(v_mfma_f32_32x32x1f32, 32, 1, 2, F32, F32)                                                   \
    X(v_mfma_f32_16x16x1f32, 16, 1, 4, F32, F32)                                                   \
    X(v_mfma_f32_4x4x1f32, 4, 1, 16, F32, F32)                                                     \
    X(v_mfma_f32_32x32x2f32, 32, 2, 1, F32, F32)                                                   \
    X(v_mfma_f32_16x16x4f32, 16, 4, 1, F32, F32)                                                   \
    X(v_mfma_f32_32x32x4f16, 32, 4, 2, F16, F16)                                                   \
    X(v_mfma_f32_16x16x4f16, 16, 4, 4, F16, F16)                                                   \
    X(v_mfma_f32_4x4x4f16, 4, 4, 16, F16, F16)                                                     \
    X(v_mfma_f32_32x32x8f16, 32, 8, 1, F16, F16)                                                   \
    X(v_mfma_f32_16x16x16f16, 16, 16, 1, F16, F16)                                                 \
    X(v_mfma_f32_32x32x2bf16, 32, 2, 2, BF16, BF16)                                                \
    X(v_mfma_f32_16x16x2bf16, 16, 2, 4, BF16, BF16)                                                \
    X(v_mfma_f32_4x4x2bf16, 4, 2, 16, BF16, BF16)                                                  \
    X(v_mfma_f32_32x32x4bf16, 32, 4, 1, BF16, BF16)                                                \
    X(v_mfma_f32_16x16x8bf16, 16, 8, 1, BF16, BF16)                                                \
    X(v_mfma_f32_32x32x4bf16_1k, 32, 4, 2, BF16, BF16)                                             \
    X(v_mfma_f32_16x16x4bf16_1k, 16, 4, 4, BF16, BF16)                                             \
    X(v_mfma_f32_4x4x4bf16_1k, 4, 4, 16, BF16, BF16)                                               \
    X(v_mfma_f32_32x32x8bf16_1k, 32, 8, 1, BF16, BF16)                                             \
    X(v_mfma_f32_16x16x16bf16_1k, 16, 16, 1, BF16, BF16)                                           \
    X(v_mfma_i32_32x32x4i8, 32, 4, 2, I8, I8)                                                      \
    X(v_mfma_i32_16x16x4i8, 16, 4, 4, I8, I8)                                                      \
    X(v_mfma_i32_4x4x4i8, 4, 4, 16, I8, I8)                                                        \
    X(v_mfma_i32_32x32x8i8, 32, 8, 1, I8, I8)                                                      \
    X(v_mfma_i32_16x16x16i8, 16, 16, 1, I8, I8)                                                    \
    X(v_mfma_f64_16x16x4f64, 16, 4, 1, F64, F64)                                                   \
    X(v_mfma_f64_4x4x4f64, 4, 4, 4, F64, F64)                                                      \
    X(v_mfma_f32_32x32x1_2b_f32, 32, 1, 2, F32, F32)                                               \
    X(v_mfma_f32_16x16x1_4b_f32, 16, 1, 4, F32, F32)                                               \
    X(v_mfma_f32_4x4x1_16b_f32, 4, 1, 16, F32, F32)                                                \
    X(v_mfma_f32_32x32x2_f32, 32, 2, 1, F32, F32)                                                  \
    X(v_mfma_f32_16x16x4_f32, 16, 4, 1, F32, F32)                                                  \
    X(v_mfma_f32_32x32x4_xf32, 32, 4, 1, XF32, XF32)                                               \
    X(v_mfma_f32_16x16x8_xf32, 16, 8, 1, XF32, XF32)                                               \
    X(v_mfma_f32_32x32x4_2b_f16, 32, 4, 2, F16, F16)                                               \
    X(v_mfma_f32_16x16x4_4b_f16, 16, 4, 4, F16, F16)                                               \
    X(v_mfma_f32_4x4x4_16b_f16, 4, 4, 16, F16, F16)                                                \
    X(v_mfma_f32_32x32x8_f16, 32, 8, 1, F16, F16)                                                  \
    X(v_mfma_f32_16x16x16_f16, 16, 16, 1, F16, F16)                                                \
    X(v_mfma_f32_32x32x4_2b_bf16, 32, 4, 2, BF16, BF16)                                            \
    X(v_mfma_f32_16x16x4_4b_bf16, 16, 4, 4, BF16, BF16)                                            \
    X(v_mfma_f32_4x4x4_16b_bf16, 4, 4, 16, BF16, BF16)                                             \
    X(v_mfma_f32_32x32x8_bf16, 32, 8, 1, BF16, BF16)                                               \
    X(v_mfma_f32_16x16x16_bf16, 16, 16, 1, BF16, BF16)                                             \
    X(v_mfma_i32_32x32x4_2b_i8, 32, 4, 2, I8, I8)                                                  \
    X(v_mfma_i32_16x16x4_4b_i8, 16, 4, 4, I8, I8)                                                  \
    X(v_mfma_i32_4x4x4_16b_i8, 4, 4, 16, I8, I8)                                                   \
    X(v_mfma_i32_32x32x16_i8, 32, 16, 1, I8, I8)                                                   \
    X(v_mfma_i32_16x16x32_i8, 16, 32, 1, I8, I8)                                                   \
    X(v_mfma_f64_16x16x4_f64, 16, 4, 1, F64, F64)                                                  \
    X(v_mfma_f64_4x4x4_4b_f64, 4, 4, 4, F64, F64)                                                  \
    X(v_mfma_f32_16x16x32_bf8_bf8, 16, 32, 1, BF8, BF8)                                            \
    X(v_mfma_f32_16x16x32_bf8_fp8, 16, 32, 1, BF8, FP8)                                            \
    X(v_mfma_f32_16x16x32_fp8_bf8, 16, 32, 1, FP8, BF8)                                            \
    X(v_mfma_f32_16x16x32_fp8_fp8, 16, 32, 1, FP8, FP8)                                            \
    X(v_mfma_f32_32x32x16_bf8_bf8, 32, 16, 1, BF8, BF8)                                            \
    X(v_mfma_f32_32x32x16_bf8_fp8, 32, 16, 1, BF8, FP8)                                            \
    X(v_mfma_f32_32x32x16_fp8_bf8, 32, 16, 1, FP8, BF8)                                            \
    X(v_mfma_f32_32x32x16_fp8_fp8, 32, 16, 1, FP8, FP8)

#define SPARSE(X)                                                                                  \
    X(v_smfmac_f32_16x16x32_f16, 16, 32, 1, F16, F16)                                              \
    X(v_smfmac_f32_32x32x16_f16, 32, 16, 1, F16, F16)                                              \
    X(v_smfmac_f32_16x16x32_bf16, 16, 32, 1, BF16, BF16)                                           \
    X(v_smfmac_f32_32x32x16_bf16, 32, 16, 1, BF16, BF16)                                           \
    X(v_smfmac_i32_16x16x64_i8, 16, 64, 1, I8, I8)                                                 \
    X(v_smfmac_i32_32x32x32_i8, 32, 32, 1, I8, I8)                                                 \
    X(v_smfmac_f32_16x16x64_bf8_bf8, 16, 64, 1, BF8, BF8)                                          \
    X(v_smfmac_f32_16x16x64_bf8_fp8, 16, 64, 1, BF8, FP8)                                          \
    X(v_smfmac_f32_16x16x64_fp8_bf8, 16, 64, 1, FP8, BF8)                                          \
    X(v_smfmac_f32_16x16x64_fp8_fp8, 16, 64, 1, FP8, FP8)                                          \
    X(v_smfmac_f32_32x32x32_bf8_bf8, 32, 32, 1, BF8, BF8)                                          \
    X(v_smfmac_f32_32x32x32_bf8_fp8, 32, 32, 1, BF8, FP8)                                          \
    X(v_smfmac_f32_32x32x32_fp8_bf8, 32, 32, 1, FP8, BF8)                                          \
    X(v_smfmac_f32_32x32x32_fp8_fp8, 32, 32, 1, FP8, FP8)

#define SHAPE(name, m, k, blocks, a, b) {m, k, blocks, {OF_##a, OF_##b}},
static const shape_t shapes[] = {DENSE(SHAPE) SPARSE(SHAPE)};

enum { ELEMENTS_MAX = LANES * 16, RESULTS_MAX = 32 * LANES, COLUMNS_MAX = 64 };

// Elements of a matrix with so many columns that one lane holds.
static unsigned per_lane(const shape_t *shape, unsigned columns)
{
    return columns * shape->m * shape->blocks / LANES;
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

// A single with ten bits of mantissa, the nearest even.
static float reduced(uint32_t bits)
{
    bool number = (bits & 0x7f800000) != 0x7f800000;
    if (number) bits += 0xfff + (bits >> 13 & 1);
    return bits_float(bits & 0xffffe000);
}

static uint32_t field(const uint32_t *v, unsigned lane, unsigned n, unsigned width)
{
    unsigned each = 32 / width;
    return v[n / each * LANES + lane] >> width * (n % each);
}

static double element(const uint32_t *v, unsigned lane, unsigned n, kind_t kind)
{
    switch (kind) {
    case OF_F32: return (double)GET_f32(v + (size_t)n * LANES, lane);
    case OF_XF32: return (double)reduced(v[n * LANES + lane]);
    case OF_F16: return (double)half_to_float((uint16_t)field(v, lane, n, 16));
    case OF_BF16: return (double)bits_float(field(v, lane, n, 16) << 16);
    case OF_I8: return (double)(int8_t)field(v, lane, n, 8);
    case OF_FP8: return (double)fp8_widen(field(v, lane, n, 8), &fp8_format);
    case OF_BF8: return (double)fp8_widen(field(v, lane, n, 8), &bf8_format);
    default: return GET_f64(v, lane);
    }
}

// Element (row, n) of a block of A is at [block][row][n]; B is kept by columns in the same way.
static void gather(const shape_t *shape, unsigned which, unsigned columns, const uint32_t *v,
                   unsigned pattern, double *out)
{
    unsigned each = per_lane(shape, columns);
    for (unsigned block = 0; block < shape->blocks; block++) {
        for (unsigned row = 0; row < shape->m; row++) {
            for (unsigned n = 0; n < columns; n++) {
                unsigned lane = row + shape->m * (block + shape->blocks * (n / each));
                *out++ =
                    element(v, pattern_lane(pattern, lane), n % each, (kind_t)shape->kind[which]);
            }
        }
    }
}

typedef struct {
    unsigned item, lane;
} place_t;

// Where a row of a block of C and D begins; its columns are in the lanes that follow. Lanes hold
// groups of rows; what blocks and groups leave of the 64 lanes goes into further registers.
static place_t place(const shape_t *shape, unsigned block, unsigned row)
{
    unsigned m = shape->m, group = shape->kind[0] == OF_F64 ? 1 : 4, area = m * m / group;
    unsigned block_lanes = area < LANES ? LANES / area : 1, row_lanes = LANES / block_lanes / m;
    unsigned repeats = m / (group * row_lanes);
    return (place_t){
        row % group +
            group * (row / (group * row_lanes) % repeats + repeats * (block / block_lanes)),
        m * (block % block_lanes + block_lanes * (row / group % row_lanes)),
    };
}

// One element of D from so many of a row of A and a column of B.
static inline uint64_t product(kind_t kind, unsigned count, const double *a, const double *b,
                               uint64_t c)
{
    if (kind == OF_F64) {
        double sum = bits_double(c);
        for (unsigned n = 0; n < count; n++) sum = fma(a[n], b[n], sum);
        return double_bits(sum);
    }
    if (kind == OF_I8) {
        uint32_t sum = (uint32_t)c;
        for (unsigned n = 0; n < count; n++) sum += (uint32_t)((int32_t)a[n] * (int32_t)b[n]);
        return sum;
    }
    float sum = bits_float((uint32_t)c);
    for (unsigned n = 0; n < count; n++) sum = fmaf((float)a[n], (float)b[n], sum);
    return float_bits(sum);
}

// The fields that decode_matrix gathered.
static unsigned cbsz(const insn_t *i)
{
    return (unsigned)i->offset & 7;
}
static unsigned abid(const insn_t *i)
{
    return (unsigned)i->offset >> 4 & 15;
}
static unsigned blgp(const insn_t *i)
{
    return (unsigned)i->offset >> 8;
}

// cbsz blocks (as a power of two) share the block of A that abid names.
static unsigned block_of_a(const insn_t *i, const shape_t *shape, unsigned block)
{
    unsigned shared = 1u << cbsz(i);
    return ((block & ~(shared - 1)) + abid(i) % shared) % shape->blocks;
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

bool matrix_sparse(const op_t *op)
{
    return op->src[2] == TYPE_u32;
}

unsigned matrix_registers(const op_t *op, unsigned which)
{
    static const uint8_t bits[] = {[OF_F32] = 32, [OF_XF32] = 32, [OF_F16] = 16, [OF_BF16] = 16,
                                   [OF_I8] = 8,   [OF_FP8] = 8,   [OF_BF8] = 8,  [OF_F64] = 64};
    const shape_t *shape = &shapes[op->detail];
    if (which == 2 && matrix_sparse(op)) return 1;
    if (which >= 2) {
        unsigned words = shape->kind[0] == OF_F64 ? 2 : 1;
        return words * shape->m * shape->m * shape->blocks / LANES;
    }
    unsigned columns = which == 0 && matrix_sparse(op) ? shape->k / 2 : shape->k;
    return per_lane(shape, columns) * bits[shape->kind[which]] / 32;
}

static void negate(double *numbers, unsigned count)
{
    for (unsigned n = 0; n < count; n++) numbers[n] = -numbers[n];
}

static const insn_t *run_matrix(wave_t *w, const insn_t *i)
{
    const shape_t *shape = &shapes[i->op->detail];
    kind_t kind = (kind_t)shape->kind[0];
    unsigned words = kind == OF_F64 ? 2 : 1, m = shape->m, k = shape->k;
    unsigned signs = kind == OF_F64 && w->isa->target->double_signs ? blgp(i) : 0;
    double a[ELEMENTS_MAX], b[ELEMENTS_MAX];
    uint32_t d[RESULTS_MAX];
    gather(shape, 0, k, wave_source(w, i, 0), 0, a);
    gather(shape, 1, k, wave_source(w, i, 1), signs ? 0 : blgp(i), b);
    if (signs & 1) negate(a, m * k * shape->blocks);
    if (signs & 2) negate(b, m * k * shape->blocks);
    uint64_t sign_of_c = (uint64_t)(signs >> 2) << 63;
    for (unsigned block = 0; block < shape->blocks; block++) {
        const double *block_a = a + block_of_a(i, shape, block) * m * k;
        const double *block_b = b + block * m * k;
        for (unsigned row = 0; row < m; row++) {
            place_t at = place(shape, block, row);
            uint32_t *low = d + at.item * words * LANES, *high = low + LANES;
            for (unsigned column = 0; column < m; column++, at.lane++) {
                uint64_t c = word_of_c(w, i, at, words) ^ sign_of_c;
                uint64_t value = product(kind, k, block_a + row * k, block_b + column * k, c);
                low[at.lane] = (uint32_t)value;
                if (words == 2) high[at.lane] = (uint32_t)(value >> 32);
            }
        }
    }
    memcpy(w->v[i->dst], d, 4u * m * m * shape->blocks * words);
    return insn_next(i);
}

// Where the given elements of a row of A belong. A lane's indices are one after the other; a
// register has room for several sets of them, of which abid names one, unless cbsz says the first.
static void places_in_row(const wave_t *w, const insn_t *i, unsigned row, uint8_t *out)
{
    const shape_t *shape = &shapes[i->op->detail];
    unsigned given = shape->k / 2, each = per_lane(shape, given), sets = 16 / each;
    unsigned set = cbsz(i) ? 0 : abid(i) % sets;
    for (unsigned n = 0; n < given; n++) {
        unsigned lane = row + shape->m * (n / each), bit = 2 * (set * each + n % each);
        uint32_t index = w->v[i->src[2].index][lane] >> bit & 3;
        out[n] = (uint8_t)(4 * (n / 2) + index);
    }
}

static const insn_t *run_sparse(wave_t *w, const insn_t *i)
{
    const shape_t *shape = &shapes[i->op->detail];
    unsigned m = shape->m, k = shape->k, given = k / 2;
    double a[ELEMENTS_MAX], b[ELEMENTS_MAX], partners[COLUMNS_MAX];
    uint8_t places[COLUMNS_MAX];
    uint32_t d[RESULTS_MAX];
    gather(shape, 0, given, wave_source(w, i, 0), 0, a);
    gather(shape, 1, k, wave_source(w, i, 1), 0, b);
    for (unsigned row = 0; row < m; row++) {
        place_t at = place(shape, 0, row);
        places_in_row(w, i, row, places);
        for (unsigned column = 0; column < m; column++, at.lane++) {
            for (unsigned n = 0; n < given; n++) partners[n] = b[column * k + places[n]];
            uint32_t sum = w->v[i->dst + at.item][at.lane];
            d[at.item * LANES + at.lane] =
                (uint32_t)product((kind_t)shape->kind[0], given, a + row * given, partners, sum);
        }
    }
    memcpy(w->v[i->dst], d, 4u * m * m);
    return insn_next(i);
}

// Types of D and C, by the kind of A.
#define SUM_F32  TYPE_f32
#define SUM_XF32 TYPE_f32
#define SUM_F16  TYPE_f32
#define SUM_BF16 TYPE_f32
#define SUM_I8   TYPE_i32
#define SUM_FP8  TYPE_f32
#define SUM_BF8  TYPE_f32
#define SUM_F64  TYPE_f64

// The numbers of the shapes, in the order of their table.
#define NUMBER(name, m, k, blocks, a, b) NUMBER_##name,
enum { DENSE(NUMBER) SPARSE(NUMBER) };
#define ROW(name, m, k, blocks, a, b)                                                              \
    {#name, run_matrix, NULL, SUM_##a, {TYPE_u64, TYPE_u64, SUM_##a}, OP_MATRIX, NUMBER_##name},
#define SPARSE_ROW(name, m, k, blocks, a, b)                                                       \
    {#name, run_sparse, NULL, SUM_##a, {TYPE_u64, TYPE_u64, TYPE_u32}, OP_MATRIX, NUMBER_##name},
static const op_t ops[] = {DENSE(ROW) SPARSE(SPARSE_ROW)};
const op_list_t matrix_ops = {ops, sizeof ops / sizeof *ops};
