// SPDX-License-Identifier: Apache-2.0
// What programs of csmith include: in place of its own header, which needs a C library. On a GPU
// the program is a kernel for one lane, on the host an ordinary program; both give their checksum.
#ifndef TESTS_SIM_AMD_KERNELS_CSMITH_H_
#define TESTS_SIM_AMD_KERNELS_CSMITH_H_

#include <float.h>
#include <limits.h>
#include <stdint.h>

#define fabs  __builtin_fabs
#define fabsf __builtin_fabsf

// What the checked arithmetic of csmith wants to be told.
#define STATIC       static
#define FUNC_NAME(x) (safe_##x)
#define UNDEFINED(x) (x)
#define LOG_INDEX
#define LOG_EXEC
#include <safe_math.h>

static uint32_t checksum = 0xffffffff;

// As zip does it.
static void checksum_byte(uint8_t byte)
{
    checksum ^= byte;
    for (int k = 0; k < 8; k++) checksum = checksum >> 1 ^ (0xedb88320 & (0u - (checksum & 1)));
}

static void transparent_crc(uint64_t value, const char *name, int print)
{
    for (int k = 0; k < 64; k += 8) checksum_byte((uint8_t)(value >> k));
}

static void transparent_crc_bytes(const void *bytes, int count, const char *name, int print)
{
    for (int k = 0; k < count; k++) checksum_byte(((const uint8_t *)bytes)[k]);
}

#define crc32_gentab()
#define crc32_context checksum
#define platform_main_begin()
#define platform_main_end(a, b)

int main(void);

#ifdef __AMDGCN__
#define main csmith_main
int main(void);
__attribute__((amdgpu_kernel, visibility("protected"))) void csmith_kernel(uint32_t *out)
{
    csmith_main();
    *out = checksum;
}
#else
__attribute__((destructor)) static void print_checksum(void)
{
    __builtin_printf("%08x\n", checksum);
}
#endif
#define printf(...) (void)0

#endif
