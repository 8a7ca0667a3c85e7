// SPDX-License-Identifier: Apache-2.0
// Kernels of the benchmark for every device, in the kernel language.
#include <keel/kernel.h>

#include "region.h"

KEEL_KERNEL(empty, KEEL_GROUP(1)) {}

typedef struct three_t {
    uint32_t words[4];
} three_t;

KEEL_KERNEL(three, KEEL_GROUP(1), KEEL_IN(float, x), KEEL_IN(float, y), KEEL_INOUT(float, z),
            KEEL_CONSTANTS(three_t, k))
{
    (void)k;
}

// Steps that each need the one before: a group keeps a multiprocessor busy for as long as they
// take.
KEEL_KERNEL(work, KEEL_GROUP(1024), KEEL_OUT(uint32_t, out), KEEL_CONSTANTS(work_constants_t, k))
{
    KEEL_ITEMS {
        uint32_t x = keel_local_id(0);
        for (uint32_t i = 0; i < k.steps; i++) x = x * 1664525u + 1013904223u;
        if (x == 0) out[0] = x;
    }
}

KEEL_KERNEL(saxpy, KEEL_GROUP(SAXPY_GROUP), KEEL_IN(float, x), KEEL_INOUT(float, y),
            KEEL_CONSTANTS(saxpy_constants_t, k))
{
    KEEL_ITEMS_BELOW (k.count) {
        uint64_t i = keel_global_id(0);
        y[i] = k.a * x[i] + y[i];
    }
}

// A group of 16 x 16 items makes SGEMM_TILE x SGEMM_TILE of C; an item four rows of four columns,
// 16 apart, so that neighbours are neighbours in vectors and in memory.
enum { SIDE = 16, EACH = SGEMM_TILE / SIDE, DEEP = 16 };

typedef struct tiles_t {
    float a[DEEP][SGEMM_TILE], b[DEEP][SGEMM_TILE];
} tiles_t;
typedef struct sums_t {
    float at[EACH][EACH];
} sums_t;

KEEL_KERNEL(sgemm, KEEL_GROUP(SIDE, SIDE), KEEL_IN(float, a), KEEL_IN(float, b), KEEL_OUT(float, c),
            KEEL_CONSTANTS(sgemm_constants_t, k), KEEL_LOCAL(tiles_t, tiles, 1))
{
    KEEL_PRIVATE(sums_t, sums);
    uint64_t n = k.n, row = (uint64_t)keel_group_id(1) * SGEMM_TILE;
    uint64_t column = (uint64_t)keel_group_id(0) * SGEMM_TILE;
    KEEL_ITEMS {
        keel_mine(sums) = (sums_t){0};
    }
    for (uint64_t depth = 0; depth < n; depth += DEEP) {
        KEEL_ITEMS {
            uint32_t x = keel_local_id(0), y = keel_local_id(1);
            for (uint32_t i = 0; i < SGEMM_TILE; i += SIDE) {
                tiles->a[x][y + i] = a[(row + y + i) * n + depth + x];
                tiles->b[y][x + i] = b[(depth + y) * n + column + x + i];
            }
        }
        KEEL_BARRIER();
        KEEL_ITEMS {
            uint32_t x = keel_local_id(0), y = keel_local_id(1) * EACH;
            sums_t s = keel_mine(sums);
            for (uint32_t d = 0; d < DEEP; d++)
                for (uint32_t i = 0; i < EACH; i++)
                    for (uint32_t j = 0; j < EACH; j++)
                        s.at[i][j] += tiles->a[d][y + i] * tiles->b[d][x + j * SIDE];
            keel_mine(sums) = s;
        }
        KEEL_BARRIER();
    }
    KEEL_ITEMS {
        uint64_t x = column + keel_local_id(0), y = row + keel_local_id(1) * EACH;
        for (uint32_t i = 0; i < EACH; i++)
            for (uint32_t j = 0; j < EACH; j++)
                c[(y + i) * n + x + j * SIDE] = keel_mine(sums).at[i][j];
    }
}
