// SPDX-License-Identifier: Apache-2.0
// A matrix product as one would write it for caches and registers without knowing the processor:
// panels of A and B are packed into workgroup memory, and blocks of ROWS x COLUMNS of C are kept in
// registers over the whole depth of the panels.
#include "kernels.h"

#include <stdbool.h>

#ifdef __aarch64__
enum { ROWS = 8 }; // of 32 vector registers the sums take 16
#else
enum { ROWS = 4 };
#endif
enum { LANES = 4, VECTORS = 2, COLUMNS = VECTORS * LANES };

typedef float vector_t __attribute__((vector_size(LANES * sizeof(float))));

// SGEMM_TILE rows of A from (row, depth) on, as blocks of ROWS that lie together for each depth.
static void pack_a(float *packed, const float *a, uint32_t n)
{
    for (uint32_t block = 0; block < SGEMM_TILE; block += ROWS)
        for (uint32_t k = 0; k < SGEMM_DEPTH; k++)
            for (uint32_t r = 0; r < ROWS; r++) *packed++ = a[(size_t)(block + r) * n + k];
}

// SGEMM_TILE columns of B from (depth, column) on, as blocks of COLUMNS.
static void pack_b(float *packed, const float *b, uint32_t n)
{
    for (uint32_t block = 0; block < SGEMM_TILE; block += COLUMNS)
        for (uint32_t k = 0; k < SGEMM_DEPTH; k++)
            for (uint32_t c = 0; c < COLUMNS; c++) *packed++ = b[(size_t)k * n + block + c];
}

// Adds the product of a packed block of A and one of B to ROWS x COLUMNS of C, or begins with it.
static void block_multiply(const float *a, const vector_t *b, float *c, uint32_t n, bool first)
{
    vector_t sum[ROWS][VECTORS] = {0};
    for (uint32_t k = 0; k < SGEMM_DEPTH; k++, a += ROWS, b += VECTORS)
#pragma GCC unroll 8
        for (uint32_t r = 0; r < ROWS; r++)
#pragma GCC unroll 2
            for (uint32_t v = 0; v < VECTORS; v++) sum[r][v] += a[r] * b[v];
#pragma GCC unroll 8
    for (uint32_t r = 0; r < ROWS; r++) {
        vector_t *row = (vector_t *)(c + (size_t)r * n);
#pragma GCC unroll 2
        for (uint32_t v = 0; v < VECTORS; v++) row[v] = first ? sum[r][v] : row[v] + sum[r][v];
    }
}

int sgemm_kernel(const keel_host_dispatch_t *dispatch, const keel_host_group_t *group)
{
    uint32_t n = ((const sgemm_constants_t *)dispatch->constants)->n;
    size_t row = (size_t)group->id[1] * SGEMM_TILE, column = (size_t)group->id[0] * SGEMM_TILE;
    const float *a = (const float *)dispatch->bindings[0] + row * n;
    const float *b = (const float *)dispatch->bindings[1] + column;
    float *c = (float *)dispatch->bindings[2] + row * n + column;
    float *packed_a = group->local, *packed_b = packed_a + SGEMM_TILE * SGEMM_DEPTH;

    for (uint32_t k = 0; k < n; k += SGEMM_DEPTH) {
        pack_a(packed_a, a + k, n);
        pack_b(packed_b, b + (size_t)k * n, n);
        for (uint32_t j = 0; j < SGEMM_TILE; j += COLUMNS)
            for (uint32_t i = 0; i < SGEMM_TILE; i += ROWS)
                block_multiply(packed_a + i * SGEMM_DEPTH,
                               (const vector_t *)(packed_b + j * SGEMM_DEPTH),
                               c + (size_t)i * n + j, n, k == 0);
    }
    return 0;
}
