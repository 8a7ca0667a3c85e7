// SPDX-License-Identifier: Apache-2.0
// Vector operations on integers and bits.
#include "amd/isa/lanes.h"

static inline int32_t sign24(uint32_t x)
{
    return (int32_t)(x << 8) >> 8;
}

static inline uint32_t min_u(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}
static inline uint32_t max_u(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}
static inline int32_t min_i(int32_t a, int32_t b)
{
    return a < b ? a : b;
}
static inline int32_t max_i(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static inline uint32_t med_u(uint32_t a, uint32_t b, uint32_t c)
{
    return max_u(min_u(a, b), min_u(max_u(a, b), c));
}

static inline int32_t med_i(int32_t a, int32_t b, int32_t c)
{
    return max_i(min_i(a, b), min_i(max_i(a, b), c));
}

static inline uint32_t low_bits(uint32_t count)
{
    return (1u << (count & 31)) - 1;
}

static inline uint32_t field_i(uint32_t a, uint32_t b, uint32_t c)
{
    // A field that ends beyond the word has the word's sign.
    uint32_t count = c & 31, bits = (uint32_t)((int32_t)a >> (b & 31)) & low_bits(count);
    uint32_t sign = count ? 1u << (count - 1) : 0;
    return (bits ^ sign) - sign;
}

static inline uint32_t reverse(uint32_t x)
{
    x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
    x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
    x = (x >> 4 & 0x0f0f0f0f) | (x & 0x0f0f0f0f) << 4;
    return __builtin_bswap32(x);
}

static inline uint32_t leading(uint32_t x)
{
    return x ? (uint32_t)__builtin_clz(x) : ~0u;
}
static inline uint32_t trailing(uint32_t x)
{
    return x ? (uint32_t)__builtin_ctz(x) : ~0u;
}

static inline uint32_t permute_byte(uint64_t bytes, uint32_t select)
{
    if (select < 8) return bytes >> 8 * select & 0xff;
    if (select < 12) return bytes >> (16 * (select - 8) + 15) & 1 ? 0xff : 0;
    return select == 12 ? 0 : 0xff;
}

static uint32_t permute(uint32_t a, uint32_t b, uint32_t c)
{
    uint64_t bytes = (uint64_t)a << 32 | b;
    uint32_t result = 0;
    for (unsigned k = 0; k < 32; k += 8) result |= permute_byte(bytes, c >> k & 0xff) << k;
    return result;
}

static uint32_t sad_bytes(uint32_t a, uint32_t b, uint32_t sum, bool masked)
{
    for (unsigned k = 0; k < 32; k += 8) {
        uint32_t x = a >> k & 0xff, y = b >> k & 0xff;
        if (!masked || y) sum += x > y ? x - y : y - x;
    }
    return sum;
}

static uint32_t sad_halves(uint32_t a, uint32_t b, uint32_t sum)
{
    for (unsigned k = 0; k < 32; k += 16) {
        uint32_t x = a >> k & 0xffff, y = b >> k & 0xffff;
        sum += x > y ? x - y : y - x;
    }
    return sum;
}

// Four sums, each with the window into a moved by a byte.
static uint64_t sad_windows(uint64_t a, uint32_t b, uint64_t sums, bool masked)
{
    uint64_t result = 0;
    for (unsigned k = 0; k < 4; k++) {
        uint32_t sum = (uint32_t)(sums >> 16 * k & 0xffff);
        uint32_t made = sad_bytes((uint32_t)(a >> 8 * k), b, sum, masked);
        result |= (uint64_t)(made > 0xffff ? 0xffff : made) << 16 * k;
    }
    return result;
}

static uint32_t lerp_bytes(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t result = 0;
    for (unsigned k = 0; k < 32; k += 8) {
        result |= ((a >> k & 0xff) + (b >> k & 0xff) + (c >> k & 1)) >> 1 << k;
    }
    return result;
}

static inline uint32_t clamp_u(int64_t x)
{
    return x < 0 ? 0 : x > UINT32_MAX ? UINT32_MAX : (uint32_t)x;
}

static inline uint32_t clamp_i(int64_t x)
{
    return (uint32_t)(x < INT32_MIN ? INT32_MIN : x > INT32_MAX ? INT32_MAX : x);
}

static inline uint16_t clamp_u16(int32_t x)
{
    return (uint16_t)(x < 0 ? 0 : x > 0xffff ? 0xffff : x);
}

static inline uint16_t clamp_i16(int32_t x)
{
    return (uint16_t)(x < -32768 ? -32768 : x > 32767 ? 32767 : x);
}

// Bits of a mask below a lane.
static inline uint32_t below_low(unsigned l)
{
    return l >= 32 ? ~0u : (1u << l) - 1;
}
static inline uint32_t below_high(unsigned l)
{
    return l < 32 ? 0 : (1u << (l - 32)) - 1;
}

#define SAT OP_SATURATES

// An operation with OP_SATURATES is followed by what it is when it saturates; that name is no
// instruction's.
#define OPS(X)                                                                                     \
    X(v_mov_b32, u32, u32, none, none, 0, a)                                                       \
    X(v_mov_b64, u64, u64, none, none, 0, a)                                                       \
    X(v_not_b32, u32, u32, none, none, 0, ~a)                                                      \
    X(v_bfrev_b32, u32, u32, none, none, 0, reverse(a))                                            \
    X(v_ffbh_u32, u32, u32, none, none, 0, leading(a))                                             \
    X(v_ffbl_b32, u32, u32, none, none, 0, trailing(a))                                            \
    X(v_ffbh_i32, u32, i32, none, none, 0, leading((uint32_t)(a < 0 ? ~a : a)))                    \
    X(v_add_u32, u32, u32, u32, none, SAT, a + b)                                                  \
    X(v_add_u32_sat, u32, u32, u32, none, 0, clamp_u((int64_t)a + b))                              \
    X(v_sub_u32, u32, u32, u32, none, SAT, a - b)                                                  \
    X(v_sub_u32_sat, u32, u32, u32, none, 0, clamp_u((int64_t)a - b))                              \
    X(v_subrev_u32, u32, u32, u32, none, SAT, b - a)                                               \
    X(v_subrev_u32_sat, u32, u32, u32, none, 0, clamp_u((int64_t)b - a))                           \
    X(v_add_i32, u32, u32, u32, none, SAT, a + b)                                                  \
    X(v_add_i32_sat, u32, i32, i32, none, 0, clamp_i((int64_t)a + b))                              \
    X(v_sub_i32, u32, u32, u32, none, SAT, a - b)                                                  \
    X(v_sub_i32_sat, u32, i32, i32, none, 0, clamp_i((int64_t)a - b))                              \
    X(v_mul_i32_i24, u32, u32, u32, none, 0, (uint32_t)((int64_t)sign24(a) * sign24(b)))           \
    X(v_mul_hi_i32_i24, u32, u32, u32, none, 0, (uint32_t)((int64_t)sign24(a) * sign24(b) >> 32))  \
    X(v_mul_u32_u24, u32, u32, u32, none, 0, (a & 0xffffff) * (b & 0xffffff))                      \
    X(v_mul_hi_u32_u24, u32, u32, u32, none, 0,                                                    \
      (uint32_t)((uint64_t)(a & 0xffffff) * (b & 0xffffff) >> 32))                                 \
    X(v_min_i32, i32, i32, i32, none, 0, min_i(a, b))                                              \
    X(v_max_i32, i32, i32, i32, none, 0, max_i(a, b))                                              \
    X(v_min_u32, u32, u32, u32, none, 0, min_u(a, b))                                              \
    X(v_max_u32, u32, u32, u32, none, 0, max_u(a, b))                                              \
    X(v_lshrrev_b32, u32, u32, u32, none, 0, b >> (a & 31))                                        \
    X(v_ashrrev_i32, i32, u32, i32, none, 0, b >> (a & 31))                                        \
    X(v_lshlrev_b32, u32, u32, u32, none, 0, b << (a & 31))                                        \
    X(v_and_b32, u32, u32, u32, none, 0, a &b)                                                     \
    X(v_or_b32, u32, u32, u32, none, 0, a | b)                                                     \
    X(v_xor_b32, u32, u32, u32, none, 0, a ^ b)                                                    \
    X(v_xnor_b32, u32, u32, u32, none, 0, ~(a ^ b))                                                \
    X(v_mul_lo_u32, u32, u32, u32, none, 0, a *b)                                                  \
    X(v_mul_hi_u32, u32, u32, u32, none, 0, (uint32_t)((uint64_t)a * b >> 32))                     \
    X(v_mul_hi_i32, u32, i32, i32, none, 0, (uint32_t)((int64_t)a * b >> 32))                      \
    X(v_mad_i32_i24, u32, u32, u32, u32, 0, (uint32_t)((int64_t)sign24(a) * sign24(b)) + c)        \
    X(v_mad_u32_u24, u32, u32, u32, u32, 0, (a & 0xffffff) * (b & 0xffffff) + c)                   \
    X(v_bfe_u32, u32, u32, u32, u32, 0, a >> (b & 31) & low_bits(c))                               \
    X(v_bfe_i32, u32, u32, u32, u32, 0, field_i(a, b, c))                                          \
    X(v_bfi_b32, u32, u32, u32, u32, 0, (a & b) | (~a & c))                                        \
    X(v_bfm_b32, u32, u32, u32, none, 0, low_bits(a) << (b & 31))                                  \
    X(v_lerp_u8, u32, u32, u32, u32, 0, lerp_bytes(a, b, c))                                       \
    X(v_alignbit_b32, u32, u32, u32, u32, 0, (uint32_t)(((uint64_t)a << 32 | b) >> (c & 31)))      \
    X(v_alignbyte_b32, u32, u32, u32, u32, 0, (uint32_t)(((uint64_t)a << 32 | b) >> 8 * (c & 3)))  \
    X(v_min3_i32, i32, i32, i32, i32, 0, min_i(min_i(a, b), c))                                    \
    X(v_min3_u32, u32, u32, u32, u32, 0, min_u(min_u(a, b), c))                                    \
    X(v_max3_i32, i32, i32, i32, i32, 0, max_i(max_i(a, b), c))                                    \
    X(v_max3_u32, u32, u32, u32, u32, 0, max_u(max_u(a, b), c))                                    \
    X(v_med3_i32, i32, i32, i32, i32, 0, med_i(a, b, c))                                           \
    X(v_med3_u32, u32, u32, u32, u32, 0, med_u(a, b, c))                                           \
    X(v_sad_u8, u32, u32, u32, u32, 0, sad_bytes(a, b, c, false))                                  \
    X(v_sad_hi_u8, u32, u32, u32, u32, 0, (sad_bytes(a, b, 0, false) << 16) + c)                   \
    X(v_msad_u8, u32, u32, u32, u32, 0, sad_bytes(a, b, c, true))                                  \
    X(v_sad_u16, u32, u32, u32, u32, 0, sad_halves(a, b, c))                                       \
    X(v_sad_u32, u32, u32, u32, u32, 0, (a > b ? a - b : b - a) + c)                               \
    X(v_qsad_pk_u16_u8, u64, u64, u32, u64, 0, sad_windows(a, b, c, false))                        \
    X(v_mqsad_pk_u16_u8, u64, u64, u32, u64, 0, sad_windows(a, b, c, true))                        \
    X(v_perm_b32, u32, u32, u32, u32, 0, permute(a, b, c))                                         \
    X(v_xad_u32, u32, u32, u32, u32, 0, (a ^ b) + c)                                               \
    X(v_lshl_add_u32, u32, u32, u32, u32, 0, (a << (b & 31)) + c)                                  \
    X(v_add_lshl_u32, u32, u32, u32, u32, 0, (a + b) << (c & 31))                                  \
    X(v_add3_u32, u32, u32, u32, u32, 0, a + b + c)                                                \
    X(v_lshl_or_b32, u32, u32, u32, u32, 0, a << (b & 31) | c)                                     \
    X(v_and_or_b32, u32, u32, u32, u32, 0, (a & b) | c)                                            \
    X(v_or3_b32, u32, u32, u32, u32, 0, a | b | c)                                                 \
    X(v_bcnt_u32_b32, u32, u32, u32, none, 0, (uint32_t)__builtin_popcount(a) + b)                 \
    X(v_mbcnt_lo_u32_b32, u32, u32, u32, none, 0,                                                  \
      (uint32_t)__builtin_popcount(a &below_low(l)) + b)                                           \
    X(v_mbcnt_hi_u32_b32, u32, u32, u32, none, 0,                                                  \
      (uint32_t)__builtin_popcount(a &below_high(l)) + b)                                          \
    X(v_lshl_add_u64, u64, u64, u32, u64, 0, (a << (b & 7)) + c)                                   \
    X(v_lshlrev_b64, u64, u32, u64, none, 0, b << (a & 63))                                        \
    X(v_lshrrev_b64, u64, u32, u64, none, 0, b >> (a & 63))                                        \
    X(v_ashrrev_i64, i64, u32, i64, none, 0, b >> (a & 63))                                        \
    X(v_cvt_pk_u16_u32, u32, u32, u32, none, 0, min_u(a, 0xffff) | min_u(b, 0xffff) << 16)         \
    X(v_cvt_pk_i16_i32, u32, i32, i32, none, 0, clamp_i16(a) | (uint32_t)clamp_i16(b) << 16)       \
    X(v_sat_pk_u8_i16, u32, u32, none, none, 0,                                                    \
      (uint32_t)(med_i((int16_t)a, 0, 255) | med_i((int16_t)(a >> 16), 0, 255) << 8))              \
    X(v_add_u16, u16, u16, u16, none, SAT, a + b)                                                  \
    X(v_add_u16_sat, u16, u16, u16, none, 0, clamp_u16(a + b))                                     \
    X(v_sub_u16, u16, u16, u16, none, SAT, a - b)                                                  \
    X(v_sub_u16_sat, u16, u16, u16, none, 0, clamp_u16(a - b))                                     \
    X(v_subrev_u16, u16, u16, u16, none, SAT, b - a)                                               \
    X(v_subrev_u16_sat, u16, u16, u16, none, 0, clamp_u16(b - a))                                  \
    X(v_add_i16, u16, i16, i16, none, SAT, a + b)                                                  \
    X(v_add_i16_sat, u16, i16, i16, none, 0, clamp_i16(a + b))                                     \
    X(v_sub_i16, u16, i16, i16, none, SAT, a - b)                                                  \
    X(v_sub_i16_sat, u16, i16, i16, none, 0, clamp_i16(a - b))                                     \
    X(v_mul_lo_u16, u16, u16, u16, none, 0, (uint32_t)a *b)                                        \
    X(v_lshlrev_b16, u16, u16, u16, none, 0, (uint32_t)b << (a & 15))                              \
    X(v_lshrrev_b16, u16, u16, u16, none, 0, b >> (a & 15))                                        \
    X(v_ashrrev_i16, i16, u16, i16, none, 0, b >> (a & 15))                                        \
    X(v_max_u16, u16, u16, u16, none, 0, a > b ? a : b)                                            \
    X(v_max_i16, i16, i16, i16, none, 0, a > b ? a : b)                                            \
    X(v_min_u16, u16, u16, u16, none, 0, a < b ? a : b)                                            \
    X(v_min_i16, i16, i16, i16, none, 0, a < b ? a : b)                                            \
    X(v_mad_u16, u16, u16, u16, u16, OP_KEEP_HIGH, (uint32_t)a *b + c)                             \
    X(v_mad_i16, u16, u16, u16, u16, OP_KEEP_HIGH, (uint32_t)a *b + c)                             \
    X(v_mad_legacy_u16, u16, u16, u16, u16, 0, (uint32_t)a *b + c)                                 \
    X(v_mad_legacy_i16, u16, u16, u16, u16, 0, (uint32_t)a *b + c)                                 \
    X(v_min3_u16, u16, u16, u16, u16, OP_KEEP_HIGH, min_u(min_u(a, b), c))                         \
    X(v_max3_u16, u16, u16, u16, u16, OP_KEEP_HIGH, max_u(max_u(a, b), c))                         \
    X(v_med3_u16, u16, u16, u16, u16, OP_KEEP_HIGH, med_u(a, b, c))                                \
    X(v_min3_i16, i16, i16, i16, i16, OP_KEEP_HIGH, min_i(min_i(a, b), c))                         \
    X(v_max3_i16, i16, i16, i16, i16, OP_KEEP_HIGH, max_i(max_i(a, b), c))                         \
    X(v_med3_i16, i16, i16, i16, i16, OP_KEEP_HIGH, med_i(a, b, c))                                \
    X(v_mad_u32_u16, u32, u16, u16, u32, 0, (uint32_t)a *b + c)                                    \
    X(v_mad_i32_i16, u32, i16, i16, u32, 0, (uint32_t)(a * b) + c)

OPS(LANE_DEFINE)

#define IN  OP_MASK_IN
#define OUT OP_MASK_OUT

#define MASK_OPS(X)                                                                                \
    X(v_cndmask_b32, u32, u32, u32, none, IN, m ? b : a, 0)                                        \
    X(v_add_co_u32, u32, u32, u32, none, OUT, a + b, r < a)                                        \
    X(v_sub_co_u32, u32, u32, u32, none, OUT, a - b, b > a)                                        \
    X(v_subrev_co_u32, u32, u32, u32, none, OUT, b - a, a > b)                                     \
    X(v_addc_co_u32, u32, u32, u32, none, IN | OUT, a + b + m, (r < a) | ((r == a) & m))           \
    X(v_subb_co_u32, u32, u32, u32, none, IN | OUT, a - b - m, (b > a) | ((b == a) & m))           \
    X(v_subbrev_co_u32, u32, u32, u32, none, IN | OUT, b - a - m, (a > b) | ((a == b) & m))        \
    X(v_mad_u64_u32, u64, u32, u32, u64, OUT, (uint64_t)a *b + c, r < c)                           \
    X(v_mad_i64_i32, u64, i32, i32, u64, OUT, (uint64_t)((int64_t)a * b) + c, r < c)

MASK_OPS(LANE_DEFINE_MASK)

// The same as v_mqsad_pk_u16_u8 with sums of 32 bits, which are in four registers.
static const insn_t *run_mqsad_words(wave_t *w, const insn_t *i)
{
    const uint32_t *a = wave_source(w, i, 0), *b = wave_source(w, i, 1),
                   *sums = w->v[i->src[2].index];
    uint32_t results[4][LANES];
    for (unsigned k = 0; k < 4; k++) {
        EACH_LANE
        {
            uint32_t window = (uint32_t)(GET_u64(a, l) >> 8 * k);
            results[k][l] = sad_bytes(window, b[l], sums[k * LANES + l], true);
        }
    }
    EACH_ACTIVE_LANE(wave_exec(w))
    {
        for (unsigned k = 0; k < 4; k++) w->v[i->dst + k][l] = results[k][l];
    }
    return insn_next(i);
}

static const op_t ops[] = {
    OPS(LANE_ROW) MASK_OPS(LANE_ROW_MASK) //
    {"v_mqsad_u32_u8", run_mqsad_words, NULL, TYPE_u64, {TYPE_u64, TYPE_u32, TYPE_u64}, 0, 0}};
const op_list_t integer_ops = {ops, sizeof ops / sizeof *ops};
