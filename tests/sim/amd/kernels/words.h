// SPDX-License-Identifier: Apache-2.0
// More functions for same.h: integer instructions that C has no operators for, written out for the
// host, and memory of the workgroup in pieces of all sizes.
#ifndef TESTS_SIM_AMD_KERNELS_WORDS_H_
#define TESTS_SIM_AMD_KERNELS_WORDS_H_

#ifdef __AMDGCN__
#define BITS_UNSIGNED(x, from, count) __builtin_amdgcn_ubfe(x, from, count)
#define BITS_SIGNED(x, from, count)   ((uint32_t)__builtin_amdgcn_sbfe((int)(x), from, count))
#define ALIGN_BYTES(high, low, by)    __builtin_amdgcn_alignbyte(high, low, by)
#define ALIGN_BITS(high, low, by)     __builtin_amdgcn_alignbit(high, low, by)
#define PERMUTE(high, low, select)    __builtin_amdgcn_perm(high, low, select)
#define SUM_BYTES(x, y, sum)          __builtin_amdgcn_sad_u8(x, y, sum)
#define SUM_HIGH(x, y, sum)           __builtin_amdgcn_sad_hi_u8(x, y, sum)
#define SUM_HALVES(x, y, sum)         __builtin_amdgcn_sad_u16(x, y, sum)
#define SUM_MASKED(x, y, sum)         __builtin_amdgcn_msad_u8(x, y, sum)
#define AVERAGE(x, y, round)          __builtin_amdgcn_lerp(x, y, round)
#else
static inline uint32_t bits_unsigned(uint32_t x, uint32_t from, uint32_t count)
{
    from &= 31, count &= 31;
    return x >> from & ((1u << count) - 1);
}
static inline uint32_t bits_signed(uint32_t x, uint32_t from, uint32_t count)
{
    from &= 31, count &= 31;
    if (!count) return 0;
    if (from + count >= 32) return (uint32_t)((int32_t)x >> from);
    return (uint32_t)((int32_t)(x << (32 - from - count)) >> (32 - count));
}
static inline uint32_t align_bits(uint32_t high, uint32_t low, uint32_t by)
{
    return (uint32_t)(((uint64_t)high << 32 | low) >> (by & 31));
}
static inline uint32_t permute(uint32_t high, uint32_t low, uint32_t select)
{
    uint64_t both = (uint64_t)high << 32 | low;
    uint32_t result = 0;
    for (unsigned k = 0; k < 32; k += 8) {
        uint32_t code = select >> k & 0xff, byte;
        if (code < 8) {
            byte = (uint32_t)(both >> 8 * code) & 0xff;
        } else if (code < 12) {
            byte = both >> (16 * (code - 8) + 15) & 1 ? 0xff : 0;
        } else {
            byte = code == 12 ? 0 : 0xff;
        }
        result |= byte << k;
    }
    return result;
}
static inline uint32_t sum_fields(uint32_t x, uint32_t y, uint32_t width, bool masked)
{
    uint32_t sum = 0, mask = (1u << width) - 1;
    for (unsigned k = 0; k < 32; k += width) {
        uint32_t p = x >> k & mask, q = y >> k & mask;
        if (!masked || q) sum += p > q ? p - q : q - p;
    }
    return sum;
}
static inline uint32_t average(uint32_t x, uint32_t y, uint32_t round)
{
    uint32_t result = 0;
    for (unsigned k = 0; k < 32; k += 8) {
        uint32_t sum = (x >> k & 0xff) + (y >> k & 0xff) + (round >> k & 1);
        result |= (sum >> 1) << k;
    }
    return result;
}
#define BITS_UNSIGNED(x, from, count) bits_unsigned(x, from, count)
#define BITS_SIGNED(x, from, count)   bits_signed(x, from, count)
#define ALIGN_BYTES(high, low, by)    align_bits(high, low, 8 * ((by) & 3))
#define ALIGN_BITS(high, low, by)     align_bits(high, low, by)
#define PERMUTE(high, low, select)    permute(high, low, select)
#define SUM_BYTES(x, y, sum)          (sum_fields(x, y, 8, false) + (sum))
#define SUM_HIGH(x, y, sum)           ((sum_fields(x, y, 8, false) << 16) + (sum))
#define SUM_HALVES(x, y, sum)         (sum_fields(x, y, 16, false) + (sum))
#define SUM_MASKED(x, y, sum)         (sum_fields(x, y, 8, true) + (sum))
#define AVERAGE(x, y, round)          average(x, y, round)
#endif

// For these the compiler finds the instruction.
static inline int32_t sign_extend_24(uint32_t x)
{
    return (int32_t)(x << 8) >> 8;
}
static inline uint32_t first_sign(uint32_t x)
{
    uint32_t flipped = (int32_t)x < 0 ? ~x : x;
    return flipped ? (uint32_t)__builtin_clz(flipped) : ~0u;
}

static void fields(const item_t *in, answer_t *out)
{
    uint32_t a = in->a, b = in->b, c = (uint32_t)in->x, d = (uint32_t)(in->x >> 32);
    out->r = (uint64_t)(BITS_UNSIGNED(a, c, d) ^ ALIGN_BYTES(a, b, c)) << 32 |
             (BITS_SIGNED(a, c, d) ^ BITS_SIGNED(b, 4, 12) * 3 ^ BITS_UNSIGNED(b, 7, 9) * 5);
    out->s =
        ALIGN_BITS(a, b, c) ^ PERMUTE(a, b, c & 0x0f0f0f0f) * 3 ^ PERMUTE(a, b, 0x03020706) * 5;
    uint32_t product = (uint32_t)((int64_t)sign_extend_24(a) * sign_extend_24(b));
    out->t = product + first_sign(c) * 7 + first_sign((uint32_t)(int8_t)d);
}

static void sums(const item_t *in, answer_t *out)
{
    uint32_t a = in->a, b = in->b, c = (uint32_t)in->x;
    out->r = (uint64_t)SUM_BYTES(a, b, c) << 32 | SUM_HALVES(a, b, c);
    out->s = SUM_MASKED(a, b & 0xff00ffff, c) ^ SUM_HIGH(a, b, c) * 3;
    out->t = AVERAGE(a, b, c);
}

#ifdef __AMDGCN__
static __attribute__((address_space(3), loader_uninitialized,
                      aligned(16))) uint8_t group_bytes[64][32];
#define GROUP_AT(type, n)                                                                          \
    (*(__attribute__((address_space(3))) type *)&group_bytes[__builtin_amdgcn_workitem_id_x()][n])
#else
static uint8_t group_bytes[32] __attribute__((aligned(16)));
#define GROUP_AT(type, n) (*(type *)(group_bytes + (n)))
#endif

typedef uint8_t group_u8;
typedef int8_t group_s8;
typedef uint16_t group_u16 __attribute__((may_alias));
typedef int16_t group_s16 __attribute__((may_alias));
typedef uint32_t group_u32 __attribute__((may_alias));
typedef uint64_t group_u64 __attribute__((may_alias));
typedef uint32_t group_three __attribute__((vector_size(16), may_alias));
typedef struct {
    uint32_t word;
} __attribute__((packed, may_alias)) group_loose;

// Pieces of memory of all sizes, written in one and read in another.
static void group_memory(const item_t *in, answer_t *out)
{
    GROUP_AT(group_u64, 0) = in->x;
    GROUP_AT(group_u64, 8) = in->y;
    GROUP_AT(group_u32, 16) = in->a;
    GROUP_AT(group_u16, 20) = (uint16_t)in->b;
    GROUP_AT(group_u8, 22) = (uint8_t)(in->b >> 16);
    GROUP_AT(group_u8, 23) = (uint8_t)(in->b >> 24);
    group_three four = GROUP_AT(group_three, 0);
    GROUP_AT(group_loose, 25).word = in->a ^ in->b;
    uint32_t loose = GROUP_AT(group_loose, 5).word, small = GROUP_AT(group_u8, 27);
    int32_t byte = GROUP_AT(group_s8, 23), half = GROUP_AT(group_s16, 20);
    GROUP_AT(group_three, 0) = four * 3;
    out->r = GROUP_AT(group_u64, 8) ^ (uint64_t)loose << 9;
    out->s = (uint32_t)byte ^ (uint32_t)half * 3 ^ GROUP_AT(group_u16, 18);
    out->t = GROUP_AT(group_u32, 20) ^ small << 5 ^ GROUP_AT(group_u32, 4);
}

#define WORDS(X)                                                                                   \
    X(fields)                                                                                      \
    X(sums)                                                                                        \
    X(group_memory)

#endif
