// SPDX-License-Identifier: Apache-2.0
// Half precision, computed in single: what plain and packed instructions share.
#ifndef SIM_AMD_ISA_HALF_H_
#define SIM_AMD_ISA_HALF_H_

#include <fenv.h>
#include <math.h>

#include "amd/isa/lanes.h"

static inline float min_h(float a, float b)
{
    if (a < b || b != b) return a;
    if (b < a || a != a) return b;
    return bits_float(float_bits(a) | float_bits(b));
}

static inline float max_h(float a, float b)
{
    if (a > b || b != b) return a;
    if (b > a || a != a) return b;
    return bits_float(float_bits(a) & float_bits(b));
}

// The product is exact in double precision. The sum is made odd where bits were lost, so that
// rounding it again to a half goes the right way. Rounding in one direction needs no such help.
static inline float fma_h(float a, float b, float c)
{
    double product = (double)a * (double)b, sum = product + (double)c;
    if (fegetround() != FE_TONEAREST) return (float)sum;
    double back = sum - product, lost = (product - (sum - back)) + ((double)c - back);
    uint64_t bits = double_bits(sum);
    if (lost != 0 && !(bits & 1) && isfinite(sum)) {
        bits += (lost > 0) == (sum > 0) ? 1 : UINT64_MAX;
        sum = bits_double(bits);
    }
    float single = (float)sum; // keep it odd here too
    if ((double)single != sum && isfinite(single)) {
        uint32_t word = float_bits(single);
        if (fabs((double)single) > fabs(sum)) word--;
        single = bits_float(word | 1);
    }
    return single;
}

#endif
