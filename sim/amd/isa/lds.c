// SPDX-License-Identifier: Apache-2.0
// The workgroup's own memory, and the exchange of values between lanes that the same unit does.
#include "amd/isa/lds.h"

static inline void copy(void *to, const void *from, size_t size)
{
    memcpy(to, from, size);
}

static inline uint16_t peek16(const uint8_t *p)
{
    uint16_t value;
    memcpy(&value, p, sizeof value);
    return value;
}

// The addresses of all lanes with an offset, in one of the operands, where what is read does not
// overwrite them. NULL after a fault: when an active lane reaches so many bytes over the end.
static const uint32_t *addresses(wave_t *w, const insn_t *i, unsigned operand, uint32_t offset,
                                 unsigned size)
{
    const uint32_t *mask = wave_lane_mask(w), *address = w->v[i->address];
    uint32_t *at = w->operand[operand], highest = 0;
    for (unsigned l = 0; l < LANES; l++) {
        at[l] = address[l] + offset;
        uint32_t active = at[l] & mask[l];
        highest = active > highest ? active : highest;
    }
    if ((uint64_t)highest + size <= w->lds_size || !wave_exec(w)) return at;
    EACH_ACTIVE_LANE(wave_exec(w))
    {
        if (!lds_place(w, i, l, at[l], size)) break; // the slow way to find out which it was
    }
    return NULL;
}

// One word of every active lane, at an offset from its address.
static inline void read_word(wave_t *w, const uint32_t *at, unsigned offset, uint32_t *to)
{
    uint64_t exec = wave_exec(w);
    const uint8_t *base = w->lds + offset;
    if (exec == ~0ull) {
        for (unsigned l = 0; l < LANES; l++) copy(&to[l], base + at[l], 4);
        return;
    }
    EACH_ACTIVE_LANE(exec) copy(&to[l], base + at[l], 4);
}

static inline void write_word(wave_t *w, const uint32_t *at, unsigned offset, const uint32_t *from)
{
    uint8_t *base = w->lds + offset;
    EACH_ACTIVE_LANE(wave_exec(w)) copy(base + at[l], &from[l], 4);
}

static const insn_t *run_write_words(wave_t *w, const insn_t *i)
{
    unsigned words = i->op->detail;
    const uint32_t *at = addresses(w, i, 0, (uint32_t)i->offset, 4 * words);
    if (!at) return NULL;
    for (unsigned k = 0; k < words; k++) write_word(w, at, 4 * k, w->v[i->data[0] + k]);
    return insn_next(i);
}

static const insn_t *run_read_words(wave_t *w, const insn_t *i)
{
    unsigned words = i->op->detail;
    const uint32_t *at = addresses(w, i, 0, (uint32_t)i->offset, 4 * words);
    if (!at) return NULL;
    for (unsigned k = 0; k < words; k++) read_word(w, at, 4 * k, w->v[i->dst + k]);
    return insn_next(i);
}

// Two places at once: detail has the number of words in its low bits and the unit of offsets above.
typedef struct {
    unsigned words;
    const uint32_t *at[2];
} two_t;

static bool two_places(wave_t *w, const insn_t *i, two_t *out)
{
    unsigned unit = i->op->detail >> 4, bytes;
    out->words = i->op->detail & 15;
    bytes = 4 * out->words;
    out->at[0] = addresses(w, i, 0, (uint32_t)(i->offset & 0xff) * unit, bytes);
    if (out->at[0]) out->at[1] = addresses(w, i, 1, (uint32_t)(i->offset >> 8) * unit, bytes);
    return out->at[0] && out->at[1];
}

static const insn_t *run_write_two(wave_t *w, const insn_t *i)
{
    two_t two = {0};
    if (!two_places(w, i, &two)) return NULL;
    for (unsigned n = 0; n < 2; n++) {
        for (unsigned k = 0; k < two.words; k++) {
            write_word(w, two.at[n], 4 * k, w->v[i->data[n] + k]);
        }
    }
    return insn_next(i);
}

static const insn_t *run_read_two(wave_t *w, const insn_t *i)
{
    two_t two = {0};
    if (!two_places(w, i, &two)) return NULL;
    for (unsigned n = 0; n < 2; n++) {
        for (unsigned k = 0; k < two.words; k++) {
            read_word(w, two.at[n], 4 * k, w->v[i->dst + n * two.words + k]);
        }
    }
    return insn_next(i);
}

// Name, bytes, what is done with memory at p, source s and destination d.
#define SMALL(X)                                                                                   \
    X(ds_write_b8, 1, *p = (uint8_t)s)                                                             \
    X(ds_write_b16, 2, copy(p, &s, 2))                                                             \
    X(ds_write_b8_d16_hi, 1, *p = (uint8_t)(s >> 16))                                              \
    X(ds_write_b16_d16_hi, 2, copy(p, (const uint8_t *)&s + 2, 2))                                 \
    X(ds_read_u8, 1, *d = *p)                                                                      \
    X(ds_read_i8, 1, *d = (uint32_t)(int8_t)*p)                                                    \
    X(ds_read_u16, 2, *d = peek16(p))                                                              \
    X(ds_read_i16, 2, *d = (uint32_t)(int16_t)peek16(p))                                           \
    X(ds_read_u8_d16, 1, *d = (*d & 0xffff0000) | *p)                                              \
    X(ds_read_u8_d16_hi, 1, *d = (*d & 0xffff) | (uint32_t)*p << 16)                               \
    X(ds_read_i8_d16, 1, *d = (*d & 0xffff0000) | (uint16_t)(int8_t)*p)                            \
    X(ds_read_i8_d16_hi, 1, *d = (*d & 0xffff) | (uint32_t)(int8_t)*p << 16)                       \
    X(ds_read_u16_d16, 2, *d = (*d & 0xffff0000) | peek16(p))                                      \
    X(ds_read_u16_d16_hi, 2, *d = (*d & 0xffff) | (uint32_t)peek16(p) << 16)

#define DEFINE_SMALL(name, bytes, action)                                                          \
    static const insn_t *run_##name(wave_t *w, const insn_t *i)                                    \
    {                                                                                              \
        EACH_ACTIVE_LANE(wave_exec(w))                                                             \
        {                                                                                          \
            uint8_t *p = place(w, i, l, (uint64_t)i->offset, bytes);                               \
            uint32_t s = w->v[i->data[0]][l], *d = &w->v[i->dst][l];                               \
            if (!p) return NULL;                                                                   \
            (void)s, (void)d;                                                                      \
            action;                                                                                \
        }                                                                                          \
        return insn_next(i);                                                                       \
    }
SMALL(DEFINE_SMALL)

// Name of the operation, and what comes before and after _rtn in the instruction's name.
#define ATOMICS(X)                                                                                 \
    X(add, "ds_add", "_u")                                                                         \
    X(sub, "ds_sub", "_u")                                                                         \
    X(rsub, "ds_rsub", "_u")                                                                       \
    X(inc, "ds_inc", "_u")                                                                         \
    X(dec, "ds_dec", "_u")                                                                         \
    X(smin, "ds_min", "_i")                                                                        \
    X(smax, "ds_max", "_i")                                                                        \
    X(umin, "ds_min", "_u")                                                                        \
    X(umax, "ds_max", "_u")                                                                        \
    X(and, "ds_and", "_b")                                                                         \
    X(or, "ds_or", "_b")                                                                           \
    X(xor, "ds_xor", "_b")                                                                         \
    X(min_f, "ds_min", "_f")                                                                       \
    X(max_f, "ds_max", "_f")                                                                       \
    X(add_f, "ds_add", "_f")

#define DEFINE_BOTH(name, before, after)                                                           \
    DEFINE_ATOMIC(name##32, 32, atomic_##name##32(p, X32(0)))                                      \
    DEFINE_ATOMIC(name##64, 64, atomic_##name##64(p, X64(0)))
ATOMICS(DEFINE_BOTH)
DEFINE_ATOMIC(pk_add_f16, 32, atomic_pk_add_f16_32(p, X32(0)))
DEFINE_ATOMIC(pk_add_bf16, 32, atomic_pk_add_bf16_32(p, X32(0)))
DEFINE_ATOMIC(swap32, 32, atomic_swap32(p, X32(0)))
DEFINE_ATOMIC(swap64, 64, atomic_swap64(p, X64(0)))
DEFINE_ATOMIC(cmpst32, 32, atomic_cmpswap32(p, X32(1), X32(0)))
DEFINE_ATOMIC(cmpst64, 64, atomic_cmpswap64(p, X64(1), X64(0)))

static const insn_t *run_nothing(wave_t *w, const insn_t *i)
{
    return insn_next(i);
}

// Values from inactive lanes read as zero.
static const insn_t *run_bpermute(wave_t *w, const insn_t *i)
{
    uint64_t exec = wave_exec(w);
    for (unsigned l = 0; l < LANES; l++) {
        unsigned from = (w->v[i->address][l] + (uint32_t)i->offset) / 4 % LANES;
        w->result[l] = exec >> from & 1 ? w->v[i->data[0]][from] : 0;
    }
    wave_merge(w, i, exec);
    return insn_next(i);
}

static const insn_t *run_permute(wave_t *w, const insn_t *i)
{
    for (unsigned l = 0; l < LANES; l++) w->result[l] = 0;
    EACH_ACTIVE_LANE(wave_exec(w))
    {
        unsigned to = (w->v[i->address][l] + (uint32_t)i->offset) / 4 % LANES;
        w->result[to] = w->v[i->data[0]][l];
    }
    wave_merge(w, i, wave_exec(w));
    return insn_next(i);
}

static unsigned swizzle_lane(uint32_t control, unsigned l)
{
    if (control & 0x8000) return (l & ~3u) | (control >> 2 * (l & 3) & 3);
    unsigned and = control & 31, or = control >> 5 & 31, xor = control >> 10 & 31;
    return (l & 32) | (((l & 31 & and) | or) ^ xor);
}

static const insn_t *run_swizzle(wave_t *w, const insn_t *i)
{
    uint64_t exec = wave_exec(w);
    const uint32_t *source = w->v[i->address];
    for (unsigned l = 0; l < LANES; l++) {
        unsigned from = swizzle_lane((uint32_t)i->offset, l);
        w->result[l] = exec >> from & 1 ? source[from] : 0;
    }
    wave_merge(w, i, exec);
    return insn_next(i);
}

#define ROW_SMALL(name, bytes, action) PLAIN(#name, run_##name, 0)
#define ROW_ATOMIC(name, before, after)                                                            \
    PLAIN(before after "32", run_##name##32, 0)                                                    \
    PLAIN(before "_rtn" after "32", run_##name##32, 1)                                             \
    PLAIN(before after "64", run_##name##64, 0)                                                    \
    PLAIN(before "_rtn" after "64", run_##name##64, 1)
#define TWO(words, unit) ((words) | (unit) << 4)

static const op_t ops[] = {
    SMALL(ROW_SMALL) ATOMICS(ROW_ATOMIC)                                                          //
    PLAIN("ds_pk_add_f16", run_pk_add_f16, 0) PLAIN("ds_pk_add_rtn_f16", run_pk_add_f16, 1)       //
    PLAIN("ds_pk_add_bf16", run_pk_add_bf16, 0) PLAIN("ds_pk_add_rtn_bf16", run_pk_add_bf16, 1)   //
    PLAIN("ds_wrxchg_rtn_b32", run_swap32, 1) PLAIN("ds_wrxchg_rtn_b64", run_swap64, 1)           //
    PLAIN("ds_cmpst_b32", run_cmpst32, 0) PLAIN("ds_cmpst_rtn_b32", run_cmpst32, 1)               //
    PLAIN("ds_cmpst_b64", run_cmpst64, 0) PLAIN("ds_cmpst_rtn_b64", run_cmpst64, 1)               //
    PLAIN("ds_write_b32", run_write_words, 1) PLAIN("ds_write_b64", run_write_words, 2)           //
    PLAIN("ds_write_b96", run_write_words, 3) PLAIN("ds_write_b128", run_write_words, 4)          //
    PLAIN("ds_read_b32", run_read_words, 1) PLAIN("ds_read_b64", run_read_words, 2)               //
    PLAIN("ds_read_b96", run_read_words, 3) PLAIN("ds_read_b128", run_read_words, 4)              //
    PLAIN("ds_write2_b32", run_write_two, TWO(1, 4))                                              //
    PLAIN("ds_write2_b64", run_write_two, TWO(2, 8))                                              //
    PLAIN("ds_read2_b32", run_read_two, TWO(1, 4)) PLAIN("ds_read2_b64", run_read_two, TWO(2, 8)) //
    PLAIN("ds_write2st64_b32", run_write_two, TWO(1, 256))                                        //
    PLAIN("ds_write2st64_b64", run_write_two, TWO(2, 512))                                        //
    PLAIN("ds_read2st64_b32", run_read_two, TWO(1, 256))                                          //
    PLAIN("ds_read2st64_b64", run_read_two, TWO(2, 512))                                          //
    PLAIN("ds_nop", run_nothing, 0) PLAIN("ds_bpermute_b32", run_bpermute, 0)                     //
    PLAIN("ds_permute_b32", run_permute, 0) PLAIN("ds_swizzle_b32", run_swizzle, 0)};
const op_list_t lds_ops = {ops, sizeof ops / sizeof *ops};
