// SPDX-License-Identifier: Apache-2.0
// What region.c and its callers agree on.
#ifndef KERNELS_REGION_H_
#define KERNELS_REGION_H_

#include <stdint.h>

#define SAXPY_GROUP 1024

typedef struct saxpy_constants_t {
    float a;
    uint32_t count;
} saxpy_constants_t;

typedef struct work_constants_t {
    uint32_t steps;
} work_constants_t;

// C = A * B, row-major, each N x N; one group makes one SGEMM_TILE x SGEMM_TILE of C.
#define SGEMM_TILE 64

typedef struct sgemm_constants_t {
    uint32_t n; // a multiple of SGEMM_TILE
} sgemm_constants_t;

#endif
