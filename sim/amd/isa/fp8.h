// SPDX-License-Identifier: Apache-2.0
// Floats of eight bits: fp8 has four bits of exponent and three of mantissa, bf8 five and two. In
// both the exponent 0 is that of denormals, there are no infinities and no negative zero, whose
// code is the one that stands for no number.
#ifndef SIM_AMD_ISA_FP8_H_
#define SIM_AMD_ISA_FP8_H_

#include <math.h>

#include "amd/isa/lanes.h"

enum { FP8_NAN = 0x80, FP8_MAX = 0x7f };

typedef struct {
    int mantissa; // bits
    int least;    // exponent of the smallest normal number
} fp8_t;

static const fp8_t fp8_format = {3, -7}, bf8_format = {2, -15};

// What a code stands for.
static inline float fp8_widen(uint32_t code, const fp8_t *format)
{
    if ((code & 0xff) == FP8_NAN) return NAN;
    uint32_t unit = 1u << format->mantissa, exponent = (code & FP8_MAX) >> format->mantissa;
    uint32_t mantissa = (code & (unit - 1)) | (exponent ? unit : 0);
    int power = format->least + (exponent ? (int)exponent - 1 : 0) - format->mantissa;
    float scale = bits_float((uint32_t)(127 + power) << 23);
    return (code & 0x80 ? -(float)mantissa : (float)mantissa) * scale;
}

#endif
