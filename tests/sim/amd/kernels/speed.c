// SPDX-License-Identifier: Apache-2.0
// Kernels whose speed is measured, and whose results are checked.
#include "device.h"

KERNEL void vadd(const float *a, const float *b, float *c, uint32_t count)
{
    uint32_t n = group_id() * 256 + lane_in_group();
    if (n < count) c[n] = a[n] + b[n];
}

KERNEL void integer_loop(uint32_t *out, uint32_t rounds)
{
    uint32_t n = group_id() * 256 + lane_in_group(), x = n, y = n * 2654435761u;
    for (uint32_t k = 0; k < rounds; k++) {
        x = (x ^ y) + (y >> 3);
        y = (y & x) - (x << 5);
        x += y ^ 0x9e3779b9;
        y = y < x ? y + 7 : y ^ x;
    }
    out[n] = x + y;
}

enum { TILE = 16 };
LOCAL float tile_a[TILE][TILE];
LOCAL float tile_b[TILE][TILE];

// c = a b for square matrices; groups of 256 lanes make a tile each.
KERNEL void matmul(const float *a, const float *b, float *c, uint32_t size)
{
    uint32_t tiles = size / TILE, row = lane_in_group() / TILE, column = lane_in_group() % TILE;
    uint32_t y = group_id() / tiles * TILE + row, x = group_id() % tiles * TILE + column;
    float sum = 0;
    for (uint32_t t = 0; t < size; t += TILE) {
        tile_a[row][column] = a[y * size + t + column];
        tile_b[row][column] = b[(t + row) * size + x];
        group_barrier();
        for (uint32_t k = 0; k < TILE; k++) sum += tile_a[row][k] * tile_b[k][column];
        group_barrier();
    }
    c[y * size + x] = sum;
}
