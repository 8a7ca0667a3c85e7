// SPDX-License-Identifier: Apache-2.0
// The matrices that Keel and its peer multiply.
#ifndef BENCH_GEMM_H_
#define BENCH_GEMM_H_

#include "rig.h"

typedef struct gemm_t {
    float *a, *b, *c; // n x n; small whole numbers, so that every order of summing is exact
    sgemm_constants_t constants;
} gemm_t;

keel_status_t gemm_init(gemm_t *gemm, uint64_t n) KEEL_MUST_USE;
void gemm_finish(gemm_t *gemm);

// Compares some of `c` with the product, and clears it for the next time.
keel_status_t gemm_check(const gemm_t *gemm, float *c) KEEL_MUST_USE;

#endif
