// SPDX-License-Identifier: Apache-2.0
// Forms of access to the workgroup's memory that compilers make only when told to: counters of the
// whole wave, operands out of memory, exchanges of two places, lanes as addresses.
#include "amd/isa/lds.h"

// ds_append and ds_consume count the active lanes up and down in one word, whose address is in M0.
static const insn_t *count_lanes(wave_t *w, const insn_t *i, bool up)
{
    uint64_t exec = wave_exec(w), at = (w->s[SGPR_M0] & 0xffff) + (uint64_t)i->offset;
    uint32_t active = (uint32_t)__builtin_popcountll(exec);
    uint8_t *p = lds_place(w, i, 0, at & ~3ull, 4);
    if (!p) return NULL;
    uint32_t old = up ? atomic_add32(p, active) : atomic_sub32(p, active);
    EACH_ACTIVE_LANE(exec) w->v[i->dst][l] = old;
    return insn_next(i);
}

static const insn_t *run_append(wave_t *w, const insn_t *i)
{
    return count_lanes(w, i, true);
}
static const insn_t *run_consume(wave_t *w, const insn_t *i)
{
    return count_lanes(w, i, false);
}

// Where the second operand is, which these take from memory: so many words after the first, as the
// offset says or, with its top bit, the upper half of the address.
static uint8_t *other_place(wave_t *w, const insn_t *i, uint64_t l, unsigned size)
{
    uint32_t first = w->v[i->address][l], offset = (uint32_t)i->offset;
    int32_t words = offset >> 15 ? (int32_t)first >> 17 : (int32_t)(offset << 17) >> 17;
    return lds_place(w, i, l, first + 4 * (uint32_t)words, size);
}

#define DEFINE_FROM_MEMORY(name, bits)                                                             \
    static const insn_t *run_##name##bits(wave_t *w, const insn_t *i)                              \
    {                                                                                              \
        EACH_ACTIVE_LANE(wave_exec(w))                                                             \
        {                                                                                          \
            uint8_t *p = place(w, i, l, 0, bits / 8), *q = other_place(w, i, l, bits / 8);         \
            if (!p || !q) return NULL;                                                             \
            if ((uintptr_t)p % (bits / 8)) {                                                       \
                return wave_fault(w, i, FAULT_APERTURE, "lane %u: not aligned", (unsigned)l);      \
            }                                                                                      \
            atomic_##name##bits(p, peek##bits(q));                                                 \
        }                                                                                          \
        return insn_next(i);                                                                       \
    }

// Name of the operation, and of the instruction before the number of bits.
#define FROM_MEMORY(X)                                                                             \
    X(add, "ds_add_src2_u")                                                                        \
    X(sub, "ds_sub_src2_u")                                                                        \
    X(rsub, "ds_rsub_src2_u")                                                                      \
    X(inc, "ds_inc_src2_u")                                                                        \
    X(dec, "ds_dec_src2_u")                                                                        \
    X(smin, "ds_min_src2_i")                                                                       \
    X(smax, "ds_max_src2_i")                                                                       \
    X(umin, "ds_min_src2_u")                                                                       \
    X(umax, "ds_max_src2_u")                                                                       \
    X(and, "ds_and_src2_b")                                                                        \
    X(or, "ds_or_src2_b")                                                                          \
    X(xor, "ds_xor_src2_b")                                                                        \
    X(min_f, "ds_min_src2_f")                                                                      \
    X(max_f, "ds_max_src2_f")                                                                      \
    X(add_f, "ds_add_src2_f")                                                                      \
    X(swap, "ds_write_src2_b")
#define DEFINE_BOTH(name, instruction)                                                             \
    DEFINE_FROM_MEMORY(name, 32)                                                                   \
    DEFINE_FROM_MEMORY(name, 64)
FROM_MEMORY(DEFINE_BOTH)

static inline uint32_t mask_or32(void *p, uint32_t mask, uint32_t value)
{
    uint32_t old = __atomic_load_n((uint32_t *)p, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n((uint32_t *)p, &old, (old & ~mask) | value, false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
    }
    return old;
}

static inline uint64_t mask_or64(void *p, uint64_t mask, uint64_t value)
{
    uint64_t old = __atomic_load_n((uint64_t *)p, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n((uint64_t *)p, &old, (old & ~mask) | value, false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
    }
    return old;
}

// Subtracts, or wraps around to the second operand.
static inline uint32_t wrap32(void *p, uint32_t x, uint32_t limit)
{
    uint32_t old = __atomic_load_n((uint32_t *)p, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n((uint32_t *)p, &old, old >= x ? old - x : old + limit,
                                        false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
    }
    return old;
}

// Compares as numbers, so that both zeros are the same and what is no number differs from itself.
static inline uint32_t compare_f32(void *p, uint32_t x, uint32_t compare)
{
    uint32_t old = __atomic_load_n((uint32_t *)p, __ATOMIC_RELAXED), n;
    do {
        n = bits_float(old) == bits_float(compare) ? x : old;
    } while (!__atomic_compare_exchange_n((uint32_t *)p, &old, n, false, __ATOMIC_SEQ_CST,
                                          __ATOMIC_RELAXED));
    return old;
}

static inline uint64_t compare_f64(void *p, uint64_t x, uint64_t compare)
{
    uint64_t old = __atomic_load_n((uint64_t *)p, __ATOMIC_RELAXED), n;
    do {
        n = bits_double(old) == bits_double(compare) ? x : old;
    } while (!__atomic_compare_exchange_n((uint64_t *)p, &old, n, false, __ATOMIC_SEQ_CST,
                                          __ATOMIC_RELAXED));
    return old;
}

// A half of the data replaces that of the memory where its top bit is set, which is not stored.
static inline uint64_t exchange_some(void *p, uint64_t x)
{
    uint64_t old = __atomic_load_n((uint64_t *)p, __ATOMIC_RELAXED), mask = 0;
    if (x >> 31 & 1) mask |= 0x7fffffffull | 1ull << 31;
    if (x >> 63 & 1) mask |= 0xffffffffull << 32;
    uint64_t value = x & 0x7fffffff7fffffff & mask;
    while (!__atomic_compare_exchange_n((uint64_t *)p, &old, (old & ~mask) | value, false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
    }
    return old;
}

DEFINE_ATOMIC(mask_or32, 32, mask_or32(p, X32(0), X32(1)))
DEFINE_ATOMIC(mask_or64, 64, mask_or64(p, X64(0), X64(1)))
DEFINE_ATOMIC(wrap, 32, wrap32(p, X32(0), X32(1)))
DEFINE_ATOMIC(compare_f32, 32, compare_f32(p, X32(1), X32(0)))
DEFINE_ATOMIC(compare_f64, 64, compare_f64(p, X64(1), X64(0)))
DEFINE_ATOMIC(exchange_some, 64, exchange_some(p, X64(0)))

// Two exchanges at once. detail: bytes of each, and the unit of offsets above.
static const insn_t *run_exchange_two(wave_t *w, const insn_t *i)
{
    unsigned size = i->op->detail & 15, unit = i->op->detail >> 4, words = size / 4;
    const uint64_t offset[2] = {(uint64_t)(i->offset & 0xff) * unit,
                                (uint64_t)(i->offset >> 8) * unit};
    EACH_ACTIVE_LANE(wave_exec(w))
    {
        uint32_t address = w->v[i->address][l], data[2][2];
        for (unsigned n = 0; n < 2; n++) {
            for (unsigned k = 0; k < words; k++) data[n][k] = w->v[i->data[n] + k][l];
        }
        for (unsigned n = 0; n < 2; n++) {
            uint32_t old[2];
            uint8_t *p = lds_place(w, i, l, address + (uint32_t)offset[n], size);
            if (!p) return NULL;
            memcpy(old, p, size);
            memcpy(p, data[n], size);
            for (unsigned k = 0; k < words; k++) w->v[i->dst + n * words + k][l] = old[k];
        }
    }
    return insn_next(i);
}

// Lane l has the l-th word from M0 and the offset on.
static const insn_t *run_lane_words(wave_t *w, const insn_t *i)
{
    EACH_ACTIVE_LANE(wave_exec(w))
    {
        uint64_t at = (w->s[SGPR_M0] & 0xffff) + (uint64_t)i->offset + 4 * l;
        uint8_t *p = lds_place(w, i, l, at, 4);
        if (!p) return NULL;
        if (i->op->detail) {
            memcpy(&w->v[i->dst][l], p, 4);
        } else {
            memcpy(p, &w->v[i->data[0]][l], 4);
        }
    }
    return insn_next(i);
}

#define ROW_BOTH(name, instruction)                                                                \
    PLAIN(instruction "32", run_##name##32, 0)                                                     \
    PLAIN(instruction "64", run_##name##64, 0)

static const op_t ops[] = {
    FROM_MEMORY(ROW_BOTH)                                                                   //
    PLAIN("ds_append", run_append, 0) PLAIN("ds_consume", run_consume, 0)                   //
    PLAIN("ds_mskor_b32", run_mask_or32, 0) PLAIN("ds_mskor_rtn_b32", run_mask_or32, 1)     //
    PLAIN("ds_mskor_b64", run_mask_or64, 0) PLAIN("ds_mskor_rtn_b64", run_mask_or64, 1)     //
    PLAIN("ds_wrap_rtn_b32", run_wrap, 1)                                                   //
    PLAIN("ds_cmpst_f32", run_compare_f32, 0) PLAIN("ds_cmpst_rtn_f32", run_compare_f32, 1) //
    PLAIN("ds_cmpst_f64", run_compare_f64, 0) PLAIN("ds_cmpst_rtn_f64", run_compare_f64, 1) //
    PLAIN("ds_condxchg32_rtn_b64", run_exchange_some, 1)                                    //
    PLAIN("ds_wrxchg2_rtn_b32", run_exchange_two, 4 | 4 << 4)                               //
    PLAIN("ds_wrxchg2_rtn_b64", run_exchange_two, 8 | 8 << 4)                               //
    PLAIN("ds_wrxchg2st64_rtn_b32", run_exchange_two, 4 | 256 << 4)                         //
    PLAIN("ds_wrxchg2st64_rtn_b64", run_exchange_two, 8 | 512 << 4)                         //
    PLAIN("ds_read_addtid_b32", run_lane_words, 1)
        PLAIN("ds_write_addtid_b32", run_lane_words, 0) //
};
const op_list_t lds_rare_ops = {ops, sizeof ops / sizeof *ops};
