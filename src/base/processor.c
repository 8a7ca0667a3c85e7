// SPDX-License-Identifier: Apache-2.0
#include "base/processor.h"

#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)

#include <cpuid.h>

enum {
    // Leaf 1, ecx: SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT; and for level 3 FMA, MOVBE,
    // OSXSAVE, AVX, F16C.
    LEVEL_2 = 1 << 0 | 1 << 9 | 1 << 13 | 1 << 19 | 1 << 20 | 1 << 23,
    LEVEL_3 = 1 << 12 | 1 << 22 | 1 << 27 | 1 << 28 | 1 << 29,
    LEVEL_3_EBX = 1 << 3 | 1 << 5 | 1 << 8, // leaf 7: BMI1, AVX2, BMI2
    LAHF = 1 << 0,                          // leaf 0x80000001, ecx
    LZCNT = 1 << 5,
    STATE_AVX = 0x6, // what the system saves
    STATE_AVX512 = 0xe6,
};
// Leaf 7, ebx: AVX512 F, DQ, CD, BW, VL.
#define LEVEL_4_EBX (UINT32_C(1) << 16 | 1 << 17 | 1 << 28 | 1 << 30 | UINT32_C(1) << 31)

static bool has(uint32_t bits, uint32_t wanted)
{
    return (bits & wanted) == wanted;
}

static uint32_t saved_state(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

uint32_t processor_level(void)
{
    uint32_t a, b, c, d, seven = 0, extended = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return 1;
    uint32_t one = c;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) seven = b;
    if (__get_cpuid(0x80000001, &a, &b, &c, &d)) extended = c;
    if (!has(one, LEVEL_2) || !has(extended, LAHF)) return 1;
    if (!has(one, LEVEL_3) || !has(seven, LEVEL_3_EBX) || !has(extended, LZCNT)) return 2;
    uint32_t state = saved_state();
    if (!has(state, STATE_AVX)) return 2;
    return has(seven, LEVEL_4_EBX) && has(state, STATE_AVX512) ? 4 : 3;
}

void processor_vendor(char text[16])
{
    uint32_t a, words[3] = {0};
    memset(text, 0, 16);
    if (!__get_cpuid(0, &a, &words[0], &words[2], &words[1])) return;
    memcpy(text, words, sizeof words);
    if (strcmp(text, "GenuineIntel") == 0) strcpy(text, "Intel");
    if (strcmp(text, "AuthenticAMD") == 0) strcpy(text, "AMD");
}

#elif defined(__aarch64__) && defined(__linux__) && !KEEL_PORTABLE

#include <sys/auxv.h>

enum { HAS_SVE = 1 << 22, HAS_SVE2 = 1 << 1 }; // of AT_HWCAP, AT_HWCAP2

uint32_t processor_level(void)
{
    if (!(getauxval(AT_HWCAP) & HAS_SVE)) return 1;
    return getauxval(AT_HWCAP2) & HAS_SVE2 ? 3 : 2;
}

#else

uint32_t processor_level(void)
{
    return 1;
}

#endif

#if !defined(__x86_64__)
void processor_vendor(char text[16])
{
    memset(text, 0, 16); // Arm's processors tell only the system
}
#endif
