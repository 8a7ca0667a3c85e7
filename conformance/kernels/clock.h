// SPDX-License-Identifier: Apache-2.0
// For kernels of AMD's GPUs: the clock that never changes its pace, and the rate that it has, which
// the kernels of tests and of the benchmark are not told.
#ifndef CONFORMANCE_CLOCK_H_
#define CONFORMANCE_CLOCK_H_

#include <keel/kernel.h>

#if defined(__gfx900__) || defined(__gfx902__)
enum { CLOCK_MHZ = 27 };
#elif defined(__gfx906__) || defined(__gfx908__) || defined(__gfx90a__)
enum { CLOCK_MHZ = 25 };
#else
enum { CLOCK_MHZ = 100 };
#endif

#if KEEL_AMDGCN
static inline uint64_t clock_ticks(void)
{
#if __has_builtin(__builtin_readsteadycounter) // from clang 19 on
    return __builtin_readsteadycounter();
#else
    return __builtin_amdgcn_s_memrealtime(); // GPUs from gfx1100 on have it no more
#endif
}
#endif

#endif
