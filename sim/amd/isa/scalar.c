// SPDX-License-Identifier: Apache-2.0
// Scalar instructions: arithmetic, comparisons, branches, messages.
#include "amd/base.h"
#include "amd/isa/state.h"

static uint32_t status(const wave_t *w, unsigned code)
{
    return code == 251 ? wave_s64(w, SGPR_VCC) == 0 : code == 252 ? wave_exec(w) == 0 : w->scc;
}

static inline uint32_t get32(const wave_t *w, const insn_t *i, unsigned k)
{
    const source_t *src = &i->src[k];
    return src->from == FROM_SCALAR     ? w->s[src->index]
           : src->from == FROM_CONSTANT ? (uint32_t)i->value[k].bits
                                        : status(w, src->index);
}

static inline uint64_t get64(const wave_t *w, const insn_t *i, unsigned k)
{
    const source_t *src = &i->src[k];
    return src->from == FROM_SCALAR     ? wave_s64(w, src->index)
           : src->from == FROM_CONSTANT ? i->value[k].bits
                                        : status(w, src->index);
}

static inline uint64_t get_u64(const wave_t *w, const insn_t *i, unsigned k)
{
    return get64(w, i, k);
}
static inline uint32_t get_u32(const wave_t *w, const insn_t *i, unsigned k)
{
    return get32(w, i, k);
}
static inline int64_t get_i64(const wave_t *w, const insn_t *i, unsigned k)
{
    return (int64_t)get64(w, i, k);
}
static inline int32_t get_i32(const wave_t *w, const insn_t *i, unsigned k)
{
    return (int32_t)get32(w, i, k);
}
static inline int get_none(const wave_t *w, const insn_t *i, unsigned k)
{
    return 0;
}

static inline void put_u32(wave_t *w, const insn_t *i, uint32_t value)
{
    w->s[i->dst] = value;
}
static inline void put_u64(wave_t *w, const insn_t *i, uint64_t value)
{
    wave_set_s64(w, i->dst, value);
}

static uint64_t low_bits(unsigned count)
{
    return count >= 64 ? ~0ull : (1ull << count) - 1;
}

static uint64_t field_u(uint64_t value, uint32_t control, unsigned width)
{
    unsigned offset = control & (width - 1), count = control >> 16 & 127;
    return value >> offset & low_bits(count);
}

static uint64_t field_i(uint64_t value, uint32_t control, unsigned width)
{
    unsigned offset = control & (width - 1), count = control >> 16 & 127;
    if (count == 0) return 0;
    if (count > width - offset) count = width - offset;
    uint64_t bits = value >> offset & low_bits(count), sign = 1ull << (count - 1);
    return (bits ^ sign) - sign;
}

static uint64_t reverse(uint64_t value, unsigned width)
{
    uint64_t result = 0;
    for (unsigned k = 0; k < width; k++) result |= (value >> k & 1) << (width - 1 - k);
    return result;
}

static uint32_t first_one(uint64_t value)
{
    return value ? (uint32_t)__builtin_ctzll(value) : ~0u;
}

static uint32_t leading(uint64_t value, unsigned width)
{
    return value ? (uint32_t)__builtin_clzll(value) - (64 - width) : ~0u;
}

// Leading bits that equal the sign; all ones when every bit does.
static uint32_t leading_sign(int64_t value, unsigned width)
{
    return leading((uint64_t)(value < 0 ? ~value : value) & low_bits(width), width);
}

static uint64_t whole_quads(uint64_t value)
{
    for (unsigned k = 0; k < 64; k += 4) {
        if (value >> k & 15) value |= 15ull << k;
    }
    return value;
}

static uint64_t quad_mask(uint64_t value)
{
    uint64_t result = 0;
    for (unsigned k = 0; k < 16; k++) result |= (uint64_t)((value >> 4 * k & 15) != 0) << k;
    return result;
}

static uint64_t twice_each(uint32_t value)
{
    uint64_t result = 0;
    for (unsigned k = 0; k < 32; k++) result |= (uint64_t)(value >> k & 1) * 3 << 2 * k;
    return result;
}

// Name, types of the result and the sources, result r from a and b, and scc (SCC: as it was).
#define SCC w->scc
#define ARITHMETIC(X)                                                                              \
    X(s_add_u32, u32, u32, u32, a + b, r < a)                                                      \
    X(s_sub_u32, u32, u32, u32, a - b, b > a)                                                      \
    X(s_add_i32, u32, u32, u32, a + b, (~(a ^ b) & (a ^ r)) >> 31)                                 \
    X(s_sub_i32, u32, u32, u32, a - b, ((a ^ b) & (a ^ r)) >> 31)                                  \
    X(s_addc_u32, u32, u32, u32, a + b + SCC, SCC ? r <= a : r < a)                                \
    X(s_subb_u32, u32, u32, u32, a - b - SCC, SCC ? b >= a : b > a)                                \
    X(s_min_i32, u32, i32, i32, (uint32_t)(a < b ? a : b), a < b)                                  \
    X(s_min_u32, u32, u32, u32, a < b ? a : b, a < b)                                              \
    X(s_max_i32, u32, i32, i32, (uint32_t)(a > b ? a : b), a > b)                                  \
    X(s_max_u32, u32, u32, u32, a > b ? a : b, a > b)                                              \
    X(s_cselect_b32, u32, u32, u32, SCC ? a : b, SCC)                                              \
    X(s_cselect_b64, u64, u64, u64, SCC ? a : b, SCC)                                              \
    X(s_and_b32, u32, u32, u32, a &b, r != 0)                                                      \
    X(s_and_b64, u64, u64, u64, a &b, r != 0)                                                      \
    X(s_or_b32, u32, u32, u32, a | b, r != 0)                                                      \
    X(s_or_b64, u64, u64, u64, a | b, r != 0)                                                      \
    X(s_xor_b32, u32, u32, u32, a ^ b, r != 0)                                                     \
    X(s_xor_b64, u64, u64, u64, a ^ b, r != 0)                                                     \
    X(s_andn2_b32, u32, u32, u32, a & ~b, r != 0)                                                  \
    X(s_andn2_b64, u64, u64, u64, a & ~b, r != 0)                                                  \
    X(s_orn2_b32, u32, u32, u32, a | ~b, r != 0)                                                   \
    X(s_orn2_b64, u64, u64, u64, a | ~b, r != 0)                                                   \
    X(s_nand_b32, u32, u32, u32, ~(a & b), r != 0)                                                 \
    X(s_nand_b64, u64, u64, u64, ~(a & b), r != 0)                                                 \
    X(s_nor_b32, u32, u32, u32, ~(a | b), r != 0)                                                  \
    X(s_nor_b64, u64, u64, u64, ~(a | b), r != 0)                                                  \
    X(s_xnor_b32, u32, u32, u32, ~(a ^ b), r != 0)                                                 \
    X(s_xnor_b64, u64, u64, u64, ~(a ^ b), r != 0)                                                 \
    X(s_lshl_b32, u32, u32, u32, a << (b & 31), r != 0)                                            \
    X(s_lshl_b64, u64, u64, u32, a << (b & 63), r != 0)                                            \
    X(s_lshr_b32, u32, u32, u32, a >> (b & 31), r != 0)                                            \
    X(s_lshr_b64, u64, u64, u32, a >> (b & 63), r != 0)                                            \
    X(s_ashr_i32, u32, i32, u32, (uint32_t)(a >> (b & 31)), r != 0)                                \
    X(s_ashr_i64, u64, i64, u32, (uint64_t)(a >> (b & 63)), r != 0)                                \
    X(s_bfm_b32, u32, u32, u32, (uint32_t)low_bits(a & 31) << (b & 31), SCC)                       \
    X(s_bfm_b64, u64, u32, u32, low_bits(a & 63) << (b & 63), SCC)                                 \
    X(s_mul_i32, u32, u32, u32, a *b, SCC)                                                         \
    X(s_mul_hi_u32, u32, u32, u32, (uint32_t)((uint64_t)a * b >> 32), SCC)                         \
    X(s_mul_hi_i32, u32, i32, i32, (uint32_t)((int64_t)a * b >> 32), SCC)                          \
    X(s_bfe_u32, u32, u32, u32, (uint32_t)field_u(a, b, 32), r != 0)                               \
    X(s_bfe_i32, u32, u32, u32, (uint32_t)field_i(a, b, 32), r != 0)                               \
    X(s_bfe_u64, u64, u64, u32, field_u(a, b, 64), r != 0)                                         \
    X(s_bfe_i64, u64, u64, u32, field_i(a, b, 64), r != 0)                                         \
    X(s_absdiff_i32, u32, i32, i32, a > b ? (uint32_t)a - (uint32_t)b : (uint32_t)b - (uint32_t)a, \
      r != 0)                                                                                      \
    X(s_lshl1_add_u32, u32, u32, u32, (a << 1) + b, (((uint64_t)a << 1) + b) >> 32 != 0)           \
    X(s_lshl2_add_u32, u32, u32, u32, (a << 2) + b, (((uint64_t)a << 2) + b) >> 32 != 0)           \
    X(s_lshl3_add_u32, u32, u32, u32, (a << 3) + b, (((uint64_t)a << 3) + b) >> 32 != 0)           \
    X(s_lshl4_add_u32, u32, u32, u32, (a << 4) + b, (((uint64_t)a << 4) + b) >> 32 != 0)           \
    X(s_pack_ll_b32_b16, u32, u32, u32, (a & 0xffff) | b << 16, SCC)                               \
    X(s_pack_lh_b32_b16, u32, u32, u32, (a & 0xffff) | (b & 0xffff0000), SCC)                      \
    X(s_pack_hh_b32_b16, u32, u32, u32, a >> 16 | (b & 0xffff0000), SCC)                           \
    X(s_mov_b32, u32, u32, none, a, SCC)                                                           \
    X(s_mov_b64, u64, u64, none, a, SCC)                                                           \
    X(s_cmov_b32, u32, u32, none, SCC ? a : w->s[i->dst], SCC)                                     \
    X(s_cmov_b64, u64, u64, none, SCC ? a : wave_s64(w, i->dst), SCC)                              \
    X(s_not_b32, u32, u32, none, ~a, r != 0)                                                       \
    X(s_not_b64, u64, u64, none, ~a, r != 0)                                                       \
    X(s_wqm_b32, u32, u32, none, (uint32_t)whole_quads(a), r != 0)                                 \
    X(s_wqm_b64, u64, u64, none, whole_quads(a), r != 0)                                           \
    X(s_brev_b32, u32, u32, none, (uint32_t)reverse(a, 32), SCC)                                   \
    X(s_brev_b64, u64, u64, none, reverse(a, 64), SCC)                                             \
    X(s_bcnt0_i32_b32, u32, u32, none, 32u - (uint32_t)__builtin_popcount(a), r != 0)              \
    X(s_bcnt0_i32_b64, u32, u64, none, 64u - (uint32_t)__builtin_popcountll(a), r != 0)            \
    X(s_bcnt1_i32_b32, u32, u32, none, (uint32_t)__builtin_popcount(a), r != 0)                    \
    X(s_bcnt1_i32_b64, u32, u64, none, (uint32_t)__builtin_popcountll(a), r != 0)                  \
    X(s_ff0_i32_b32, u32, u32, none, first_one((uint32_t)~a), SCC)                                 \
    X(s_ff0_i32_b64, u32, u64, none, first_one(~a), SCC)                                           \
    X(s_ff1_i32_b32, u32, u32, none, first_one(a), SCC)                                            \
    X(s_ff1_i32_b64, u32, u64, none, first_one(a), SCC)                                            \
    X(s_flbit_i32_b32, u32, u32, none, leading(a, 32), SCC)                                        \
    X(s_flbit_i32_b64, u32, u64, none, leading(a, 64), SCC)                                        \
    X(s_flbit_i32, u32, i32, none, leading_sign(a, 32), SCC)                                       \
    X(s_flbit_i32_i64, u32, i64, none, leading_sign(a, 64), SCC)                                   \
    X(s_sext_i32_i8, u32, u32, none, (uint32_t)(int8_t)a, SCC)                                     \
    X(s_sext_i32_i16, u32, u32, none, (uint32_t)(int16_t)a, SCC)                                   \
    X(s_bitset0_b32, u32, u32, none, w->s[i->dst] & ~(1u << (a & 31)), SCC)                        \
    X(s_bitset0_b64, u64, u32, none, wave_s64(w, i->dst) & ~(1ull << (a & 63)), SCC)               \
    X(s_bitset1_b32, u32, u32, none, w->s[i->dst] | 1u << (a & 31), SCC)                           \
    X(s_bitset1_b64, u64, u32, none, wave_s64(w, i->dst) | 1ull << (a & 63), SCC)                  \
    X(s_quadmask_b32, u32, u32, none, (uint32_t)quad_mask(a), r != 0)                              \
    X(s_quadmask_b64, u64, u64, none, quad_mask(a), r != 0)                                        \
    X(s_abs_i32, u32, u32, none, (int32_t)a < 0 ? 0 - a : a, r != 0)                               \
    X(s_bitreplicate_b64_b32, u64, u32, none, twice_each(a), SCC)                                  \
    X(s_movrels_b32, u32, u32, none, w->s[(i->src[0].index + w->s[SGPR_M0]) & 127], SCC)           \
    X(s_movrels_b64, u64, u64, none, wave_s64(w, (i->src[0].index + w->s[SGPR_M0]) & 126), SCC)

#define c_u32  uint32_t
#define c_i32  int32_t
#define c_u64  uint64_t
#define c_i64  int64_t
#define c_none int

#define DEFINE(name, D, A, B, result, scc_out)                                                     \
    static const insn_t *run_##name(wave_t *w, const insn_t *i)                                    \
    {                                                                                              \
        c_##A a = get_##A(w, i, 0);                                                                \
        c_##B b = get_##B(w, i, 1);                                                                \
        (void)a, (void)b;                                                                          \
        c_##D r = result;                                                                          \
        uint32_t scc = (uint32_t)(scc_out);                                                        \
        put_##D(w, i, r);                                                                          \
        w->scc = scc;                                                                              \
        return insn_next(i);                                                                       \
    }
ARITHMETIC(DEFINE)

// Name, types, condition for scc.
#define COMPARISONS(X)                                                                             \
    X(s_cmp_eq_i32, i32, i32, a == b)                                                              \
    X(s_cmp_lg_i32, i32, i32, a != b)                                                              \
    X(s_cmp_gt_i32, i32, i32, a > b)                                                               \
    X(s_cmp_ge_i32, i32, i32, a >= b)                                                              \
    X(s_cmp_lt_i32, i32, i32, a < b)                                                               \
    X(s_cmp_le_i32, i32, i32, a <= b)                                                              \
    X(s_cmp_eq_u32, u32, u32, a == b)                                                              \
    X(s_cmp_lg_u32, u32, u32, a != b)                                                              \
    X(s_cmp_gt_u32, u32, u32, a > b)                                                               \
    X(s_cmp_ge_u32, u32, u32, a >= b)                                                              \
    X(s_cmp_lt_u32, u32, u32, a < b)                                                               \
    X(s_cmp_le_u32, u32, u32, a <= b)                                                              \
    X(s_bitcmp0_b32, u32, u32, !(a >> (b & 31) & 1))                                               \
    X(s_bitcmp1_b32, u32, u32, a >> (b & 31) & 1)                                                  \
    X(s_bitcmp0_b64, u64, u32, !(a >> (b & 63) & 1))                                               \
    X(s_bitcmp1_b64, u64, u32, a >> (b & 63) & 1)                                                  \
    X(s_cmp_eq_u64, u64, u64, a == b)                                                              \
    X(s_cmp_lg_u64, u64, u64, a != b)

#define DEFINE_COMPARISON(name, A, B, condition)                                                   \
    static const insn_t *run_##name(wave_t *w, const insn_t *i)                                    \
    {                                                                                              \
        c_##A a = get_##A(w, i, 0);                                                                \
        c_##B b = get_##B(w, i, 1);                                                                \
        w->scc = (uint32_t)(condition);                                                            \
        return insn_next(i);                                                                       \
    }
COMPARISONS(DEFINE_COMPARISON)

// With a 16-bit constant k: name, what is done with register r.
#define WITH_CONSTANT(X)                                                                           \
    X(s_movk_i32, *r = (uint32_t)k)                                                                \
    X(s_cmovk_i32, *r = SCC ? (uint32_t)k : *r)                                                    \
    X(s_cmpk_eq_i32, SCC = (int32_t)*r == k)                                                       \
    X(s_cmpk_lg_i32, SCC = (int32_t)*r != k)                                                       \
    X(s_cmpk_gt_i32, SCC = (int32_t)*r > k)                                                        \
    X(s_cmpk_ge_i32, SCC = (int32_t)*r >= k)                                                       \
    X(s_cmpk_lt_i32, SCC = (int32_t)*r < k)                                                        \
    X(s_cmpk_le_i32, SCC = (int32_t)*r <= k)                                                       \
    X(s_cmpk_eq_u32, SCC = *r == (uint16_t)k)                                                      \
    X(s_cmpk_lg_u32, SCC = *r != (uint16_t)k)                                                      \
    X(s_cmpk_gt_u32, SCC = *r > (uint16_t)k)                                                       \
    X(s_cmpk_ge_u32, SCC = *r >= (uint16_t)k)                                                      \
    X(s_cmpk_lt_u32, SCC = *r < (uint16_t)k)                                                       \
    X(s_cmpk_le_u32, SCC = *r <= (uint16_t)k)                                                      \
    X(s_addk_i32, SCC = (uint32_t)__builtin_add_overflow((int32_t)*r, k, (int32_t *)r))            \
    X(s_mulk_i32, *r *= (uint32_t)k)

#define DEFINE_CONSTANT(name, action)                                                              \
    static const insn_t *run_##name(wave_t *w, const insn_t *i)                                    \
    {                                                                                              \
        uint32_t *r = &w->s[i->dst];                                                               \
        int32_t k = i->offset;                                                                     \
        action;                                                                                    \
        return insn_next(i);                                                                       \
    }
WITH_CONSTANT(DEFINE_CONSTANT)

// Name, what becomes of exec e and source a.
#define SAVE_EXEC(X)                                                                               \
    X(s_and_saveexec_b64, a &e)                                                                    \
    X(s_or_saveexec_b64, a | e)                                                                    \
    X(s_xor_saveexec_b64, a ^ e)                                                                   \
    X(s_andn2_saveexec_b64, a & ~e)                                                                \
    X(s_orn2_saveexec_b64, a | ~e)                                                                 \
    X(s_nand_saveexec_b64, ~(a & e))                                                               \
    X(s_nor_saveexec_b64, ~(a | e))                                                                \
    X(s_xnor_saveexec_b64, ~(a ^ e))                                                               \
    X(s_andn1_saveexec_b64, ~a &e)                                                                 \
    X(s_orn1_saveexec_b64, ~a | e)

#define DEFINE_SAVE_EXEC(name, result)                                                             \
    static const insn_t *run_##name(wave_t *w, const insn_t *i)                                    \
    {                                                                                              \
        uint64_t a = get64(w, i, 0), e = wave_exec(w), r = result;                                 \
        wave_set_s64(w, i->dst, e);                                                                \
        wave_set_s64(w, SGPR_EXEC, r);                                                             \
        w->scc = r != 0;                                                                           \
        return insn_next(i);                                                                       \
    }
SAVE_EXEC(DEFINE_SAVE_EXEC)

#define DEFINE_WRITE_EXEC(name, result)                                                            \
    static const insn_t *run_##name(wave_t *w, const insn_t *i)                                    \
    {                                                                                              \
        uint64_t a = get64(w, i, 0), e = wave_exec(w), r = result;                                 \
        wave_set_s64(w, SGPR_EXEC, r);                                                             \
        wave_set_s64(w, i->dst, r);                                                                \
        w->scc = r != 0;                                                                           \
        return insn_next(i);                                                                       \
    }
DEFINE_WRITE_EXEC(s_andn1_wrexec_b64, ~a &e)
DEFINE_WRITE_EXEC(s_andn2_wrexec_b64, a & ~e)

static const insn_t *run_movreld(wave_t *w, const insn_t *i)
{
    unsigned dst = i->dst + w->s[SGPR_M0];
    if (i->dst_words == 2) {
        wave_set_s64(w, dst & 126, get64(w, i, 0));
    } else {
        w->s[dst & 127] = get32(w, i, 0);
    }
    return insn_next(i);
}

static uint64_t next_address(const wave_t *w, const insn_t *i)
{
    return code_address(w->isa, i) + 4u * i->words;
}

static const insn_t *run_getpc(wave_t *w, const insn_t *i)
{
    wave_set_s64(w, i->dst, next_address(w, i));
    return insn_next(i);
}

static const insn_t *run_setpc(wave_t *w, const insn_t *i)
{
    return wave_jump(w, i, get64(w, i, 0));
}

static const insn_t *run_swappc(wave_t *w, const insn_t *i)
{
    uint64_t to = get64(w, i, 0);
    wave_set_s64(w, i->dst, next_address(w, i));
    return wave_jump(w, i, to);
}

static const insn_t *branch(wave_t *w, const insn_t *i)
{
    if (!i->target) {
        const insn_t *to = wave_jump(w, i, next_address(w, i) + 4 * (uint64_t)(int64_t)i->offset);
        if (!to) return NULL;
        ((insn_t *)i)->target = to; // code belongs to this thread, and is const to everybody else
    }
    if (--w->budget <= 0) return wave_leave(w, i->target, WAVE_RUNNING);
    return i->target;
}

static const insn_t *run_call(wave_t *w, const insn_t *i)
{
    wave_set_s64(w, i->dst, next_address(w, i));
    return branch(w, i);
}

#define BRANCHES(X)                                                                                \
    X(s_branch, true)                                                                              \
    X(s_cbranch_scc0, !w->scc)                                                                     \
    X(s_cbranch_scc1, w->scc)                                                                      \
    X(s_cbranch_vccz, !wave_s64(w, SGPR_VCC))                                                      \
    X(s_cbranch_vccnz, wave_s64(w, SGPR_VCC))                                                      \
    X(s_cbranch_execz, !wave_exec(w))                                                              \
    X(s_cbranch_execnz, wave_exec(w))                                                              \
    X(s_cbranch_cdbgsys, false) /* no debugger is ever attached */                                 \
    X(s_cbranch_cdbguser, false)                                                                   \
    X(s_cbranch_cdbgsys_or_user, false)                                                            \
    X(s_cbranch_cdbgsys_and_user, false)

#define DEFINE_BRANCH(name, condition)                                                             \
    static const insn_t *run_##name(wave_t *w, const insn_t *i)                                    \
    {                                                                                              \
        return (condition) ? branch(w, i) : insn_next(i);                                          \
    }
BRANCHES(DEFINE_BRANCH)

static const insn_t *run_nothing(wave_t *w, const insn_t *i)
{
    return insn_next(i);
}

// Waiting for all vector memory orders earlier stores before what follows, for observers elsewhere.
static const insn_t *run_waitcnt(wave_t *w, const insn_t *i)
{
    bool vector_memory = !(i->raw[0] & 0xc00f);
    if (vector_memory && w->stores_pending) {
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        w->stores_pending = false;
        w->stored = true;
    }
    return insn_next(i);
}

static const insn_t *run_endpgm(wave_t *w, const insn_t *i)
{
    return wave_leave(w, i, WAVE_DONE);
}

static const insn_t *run_barrier(wave_t *w, const insn_t *i)
{
    return wave_leave(w, insn_next(i), WAVE_AT_BARRIER);
}

static const insn_t *run_sleep(wave_t *w, const insn_t *i)
{
    return wave_leave(w, insn_next(i), WAVE_YIELDED);
}

static const insn_t *run_sendmsg(wave_t *w, const insn_t *i)
{
    enum { MSG_INTERRUPT = 1 };
    const isa_host_t *host = &w->isa->host;
    if ((i->raw[0] & 15) == MSG_INTERRUPT && host->interrupt) {
        host->interrupt(host->user, w->s[SGPR_M0] & 0xffffff);
    }
    return insn_next(i);
}

static const insn_t *run_trap(wave_t *w, const insn_t *i)
{
    return wave_fault(w, i, FAULT_TRAP, "trap %u", i->raw[0] & 0xff);
}

// Hardware registers: mode may be read and written; the apertures and the number of the die, whose
// turn comes with every workgroup, read; others read as zero.
enum { HWREG_MODE = 1, HWREG_SH_MEM_BASES = 15, HWREG_XCC_ID = 20 };

static uint32_t register_bits(const insn_t *i)
{
    return (i->raw[0] >> 11 & 31) + 1;
}

static uint32_t hardware_register(const wave_t *w, unsigned which)
{
    switch (which) {
    case HWREG_MODE: return w->mode;
    case HWREG_SH_MEM_BASES: return APERTURE_SCRATCH >> 16 | (APERTURE_LDS & 0xffff0000);
    case HWREG_XCC_ID: return w->unit % w->isa->target->dies;
    default: return 0;
    }
}

static const insn_t *run_getreg(wave_t *w, const insn_t *i)
{
    unsigned offset = i->raw[0] >> 6 & 31;
    uint32_t value = hardware_register(w, i->raw[0] & 63);
    w->s[i->dst] = (uint32_t)(value >> offset & low_bits(register_bits(i)));
    return insn_next(i);
}

static const insn_t *set_register(wave_t *w, const insn_t *i, uint32_t value)
{
    unsigned offset = i->raw[0] >> 6 & 31;
    uint32_t mask = (uint32_t)low_bits(register_bits(i)) << offset;
    if ((i->raw[0] & 63) == HWREG_MODE) {
        wave_set_mode(w, (w->mode & ~mask) | (value << offset & mask));
    }
    return insn_next(i);
}

static const insn_t *run_setreg(wave_t *w, const insn_t *i)
{
    return set_register(w, i, w->s[i->dst]);
}

static const insn_t *run_setreg_imm32(wave_t *w, const insn_t *i)
{
    return set_register(w, i, i->raw[1]);
}

#define ROW(name, D, A, B, result, scc)                                                            \
    {#name, run_##name, NULL, TYPE_##D, {TYPE_##A, TYPE_##B}, 0, 0},
#define ROW_COMPARISON(name, A, B, condition)                                                      \
    {#name, run_##name, NULL, TYPE_NONE, {TYPE_##A, TYPE_##B}, 0, 0},
#define ROW_CONSTANT(name, action)  {#name, run_##name, NULL, TYPE_u32, {TYPE_NONE}, 0, 0},
#define ROW_SAVE_EXEC(name, result) {#name, run_##name, NULL, TYPE_u64, {TYPE_u64}, 0, 0},
#define ROW_BRANCH(name, condition) {#name, run_##name, NULL, TYPE_NONE, {TYPE_NONE}, 0, 0},
#define ROW_NOTHING(name)           {#name, run_nothing, NULL, TYPE_NONE, {TYPE_NONE}, 0, 0},

static const op_t ops[] = {
    ARITHMETIC(ROW) COMPARISONS(ROW_COMPARISON) WITH_CONSTANT(ROW_CONSTANT) SAVE_EXEC(ROW_SAVE_EXEC)
        BRANCHES(ROW_BRANCH)                                                //
    ROW_SAVE_EXEC(s_andn1_wrexec_b64, ) ROW_SAVE_EXEC(s_andn2_wrexec_b64, ) //
    ROW_NOTHING(s_nop) ROW_NOTHING(s_setprio) ROW_NOTHING(s_icache_inv) ROW_NOTHING(s_wakeup)
        ROW_NOTHING(s_ttracedata) ROW_NOTHING(s_incperflevel) ROW_NOTHING(s_decperflevel)
            ROW_NOTHING(s_sethalt) //
    {"s_movreld_b32", run_movreld, NULL, TYPE_u32, {TYPE_u32}, 0, 0},
    {"s_movreld_b64", run_movreld, NULL, TYPE_u64, {TYPE_u64}, 0, 0},
    {"s_getpc_b64", run_getpc, NULL, TYPE_u64, {TYPE_NONE}, 0, 0},
    {"s_setpc_b64", run_setpc, NULL, TYPE_NONE, {TYPE_u64}, 0, 0},
    {"s_swappc_b64", run_swappc, NULL, TYPE_u64, {TYPE_u64}, 0, 0},
    {"s_call_b64", run_call, NULL, TYPE_u64, {TYPE_NONE}, 0, 0},
    {"s_waitcnt", run_waitcnt, NULL, TYPE_NONE, {TYPE_NONE}, 0, 0},
    {"s_endpgm", run_endpgm, NULL, TYPE_NONE, {TYPE_NONE}, 0, 0},
    {"s_endpgm_saved", run_endpgm, NULL, TYPE_NONE, {TYPE_NONE}, 0, 0},
    {"s_barrier", run_barrier, NULL, TYPE_NONE, {TYPE_NONE}, 0, 0},
    {"s_sleep", run_sleep, NULL, TYPE_NONE, {TYPE_NONE}, 0, 0},
    {"s_sendmsg", run_sendmsg, NULL, TYPE_NONE, {TYPE_NONE}, 0, 0},
    {"s_trap", run_trap, NULL, TYPE_NONE, {TYPE_NONE}, 0, 0},
    {"s_getreg_b32", run_getreg, NULL, TYPE_u32, {TYPE_NONE}, 0, 0},
    {"s_setreg_b32", run_setreg, NULL, TYPE_NONE, {TYPE_NONE}, 0, 0},
    {"s_setreg_imm32_b32", run_setreg_imm32, NULL, TYPE_NONE, {TYPE_NONE}, OP_LITERAL_B, 0},
};
const op_list_t scalar_ops = {ops, sizeof ops / sizeof *ops};
