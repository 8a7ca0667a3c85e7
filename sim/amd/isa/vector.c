// SPDX-License-Identifier: Apache-2.0
// What surrounds a vector operation: sources, exec, masks, and the modifiers of each encoding.
#include <fenv.h>
#include <math.h>

#include "amd/isa/lanes.h"

LANE_CLONES void lanes_expand(uint32_t *out, uint64_t mask)
{
    for (unsigned half = 0; half < 2; half++) {
        uint32_t word = (uint32_t)(mask >> 32 * half);
        for (unsigned l = 0; l < 32; l++) out[32 * half + l] = 0 - (word >> l & 1);
    }
}

static const uint32_t *broadcast(uint32_t *out, uint64_t value, unsigned words)
{
    uint32_t low = (uint32_t)value, high = (uint32_t)(value >> 32);
    for (unsigned l = 0; l < LANES; l++) out[l] = low;
    if (words == 2) {
        for (unsigned l = 0; l < LANES; l++) out[LANES + l] = high;
    }
    return out;
}

static uint64_t status(const wave_t *w, unsigned code)
{
    return code == 251 ? wave_s64(w, SGPR_VCC) == 0 : code == 252 ? wave_exec(w) == 0 : w->scc;
}

const uint32_t *wave_source(wave_t *w, const insn_t *i, unsigned k)
{
    const source_t *src = &i->src[k];
    switch ((from_t)src->from) {
    case FROM_VECTOR: return w->v[src->index];
    case FROM_CONSTANT: return i->value[k].lanes;
    case FROM_SCALAR:
        return src->words == 2 ? broadcast(w->operand[k], wave_s64(w, src->index), 2)
                               : broadcast(w->operand[k], w->s[src->index], 1);
    case FROM_STATUS: return broadcast(w->operand[k], status(w, src->index), src->words);
    case FROM_NOTHING: break;
    }
    return NULL;
}

LANE_CLONES static void lanes_merge(uint32_t *d, const uint32_t *r, const uint32_t *mask)
{
    EACH_LANE d[l] = (r[l] & mask[l]) | (d[l] & ~mask[l]);
}

void wave_merge(wave_t *w, const insn_t *i, uint64_t lanes)
{
    uint32_t own[LANES];
    const uint32_t *mask = own;
    if (lanes == wave_exec(w)) {
        mask = wave_lane_mask(w);
    } else {
        lanes_expand(own, lanes);
    }
    for (unsigned k = 0; k < i->dst_words; k++) {
        lanes_merge(w->v[i->dst + k], w->result + k * LANES, mask);
    }
}

// The same without a call in the usual cases, which are most of all that runs.
static inline const uint32_t *usual_source(wave_t *w, const insn_t *i, unsigned k)
{
    const source_t *src = &i->src[k];
    if (__builtin_expect(src->from == FROM_VECTOR, 1)) return w->v[src->index];
    if (src->from == FROM_NOTHING) return NULL;
    return src->from == FROM_CONSTANT ? i->value[k].lanes : wave_source(w, i, k);
}

const insn_t *run_vector(wave_t *w, const insn_t *i)
{
    const uint32_t *a = usual_source(w, i, 0), *b = usual_source(w, i, 1);
    const uint32_t *c = usual_source(w, i, 2);
    uint64_t exec = wave_exec(w);
    if (exec == ~0ull) {
        i->lanes(w->v[i->dst], a, b, c, 0);
    } else {
        i->lanes(w->result, a, b, c, 0);
        wave_merge(w, i, exec);
    }
    return insn_next(i);
}

static uint64_t mask_in(const wave_t *w, const insn_t *i)
{
    if (!(i->op->flags & (OP_MASK_IN | OP_VCC_IN | OP_MODE_IN))) return 0;
    if (i->op->flags & OP_MODE_IN) return w->mode;
    if (i->mask < SGPR_COUNT) return wave_s64(w, i->mask);
    return i->mask == 193 ? ~0ull : 0; // the constants that make sense here are -1 and 0
}

static void mask_out(wave_t *w, const insn_t *i, uint64_t mask, uint64_t exec)
{
    unsigned flags = i->op->flags;
    if (flags & OP_MASK_OUT) wave_set_s64(w, i->sdst, mask & exec);
    if (flags & OP_EXEC_OUT) wave_set_s64(w, SGPR_EXEC, mask & exec);
}

const insn_t *run_vector_mask(wave_t *w, const insn_t *i)
{
    const uint32_t *a = wave_source(w, i, 0), *b = wave_source(w, i, 1), *c = wave_source(w, i, 2);
    uint64_t exec = wave_exec(w);
    bool direct = exec == ~0ull && i->dst_words;
    uint64_t mask = i->lanes(direct ? w->v[i->dst] : w->result, a, b, c, mask_in(w, i));
    if (!direct && i->dst_words) wave_merge(w, i, exec);
    mask_out(w, i, mask, exec);
    return insn_next(i);
}

// The lane that a lane reads through a DPP control, or -1.
static int dpp_lane(unsigned control, int lane)
{
    int row = lane & ~15, in_row = lane & 15, amount = (int)(control & 15);
    if (control <= 0xff) return (lane & ~3) | (control >> 2 * (lane & 3) & 3);
    if (control >= 0x101 && control <= 0x10f) return in_row + amount < 16 ? lane + amount : -1;
    if (control >= 0x111 && control <= 0x11f) return in_row - amount >= 0 ? lane - amount : -1;
    if (control >= 0x121 && control <= 0x12f) return row | ((in_row - amount) & 15);
    if (control >= 0x150) return row | amount;
    switch (control) {
    case 0x130: return lane < 63 ? lane + 1 : -1;
    case 0x134: return (lane + 1) & 63;
    case 0x138: return lane > 0 ? lane - 1 : -1;
    case 0x13c: return (lane - 1) & 63;
    case 0x140: return row | (15 - in_row);
    case 0x141: return (lane & ~7) | (7 - (lane & 7));
    case 0x142: return lane >= 16 ? row - 1 : -1;
    case 0x143: return lane >= 32 ? 31 : -1;
    default: return -1;
    }
}

// Moves the lanes of the first source about, in place, and returns the lanes that may be written.
static uint64_t dpp_apply(const wave_t *w, const modifiers_t *mod, uint32_t *lanes, unsigned words)
{
    uint32_t from[2 * LANES];
    uint64_t exec = wave_exec(w), writes = 0;
    memcpy(from, lanes, 4u * LANES * words);
    for (int l = 0; l < LANES; l++) {
        int source = dpp_lane(mod->dpp_control, l);
        bool valid = source >= 0 && exec >> source & 1;
        bool row_on = mod->row_mask >> l / 16 & 1, bank_on = mod->bank_mask >> l % 16 / 4 & 1;
        for (unsigned k = 0; k < words; k++) {
            lanes[k * LANES + (unsigned)l] = valid ? from[k * LANES + (unsigned)source] : 0;
        }
        if (row_on && bank_on && (valid || mod->bound_zero)) writes |= 1ull << l;
    }
    return writes;
}

static uint32_t sdwa_select(uint32_t value, unsigned select, bool sign)
{
    if (select < 4) {
        value = value >> 8 * select & 0xff;
        return sign ? (uint32_t)(int8_t)value : value;
    }
    if (select < 6) {
        value = value >> 16 * (select - 4) & 0xffff;
        return sign ? (uint32_t)(int16_t)value : value;
    }
    return value;
}

static uint32_t sdwa_place(uint32_t value, uint32_t old, const modifiers_t *mod)
{
    enum { PAD, SEXT, PRESERVE };
    if (mod->dst_sel >= 6) return value;
    bool byte = mod->dst_sel < 4;
    unsigned shift = byte ? 8u * mod->dst_sel : 16u * (mod->dst_sel - 4u);
    uint32_t field = byte ? 0xff : 0xffff, placed = (value & field) << shift;
    bool negative = value >> (byte ? 7 : 15) & 1;
    if (mod->dst_unused == PRESERVE) return placed | (old & ~(field << shift));
    if (mod->dst_unused == SEXT && negative) return placed | (uint32_t)(~(uint64_t)field << shift);
    return placed;
}

static bool is_half(type_t type)
{
    return type >= TYPE_u16 && type <= TYPE_f16;
}

// Changes the sign of a source. 16-bit sources lie in the low half here.
static void sign_modify(uint32_t *lanes, type_t type, bool abs, bool neg)
{
    uint32_t sign = is_half(type) ? 0x8000 : 0x80000000;
    uint32_t *words = type_words(type) == 2 ? lanes + LANES : lanes;
    for (unsigned l = 0; l < LANES; l++) {
        if (abs) words[l] &= ~sign;
        if (neg) words[l] ^= sign;
    }
}

// Zero with the same sign in place of each denormal.
static void flush(uint32_t *lanes, type_t type)
{
    uint32_t exponent = type == TYPE_f32 ? 0x7f800000 : 0x7ff00000;
    uint32_t *words = type == TYPE_f64 ? lanes + LANES : lanes;
    for (unsigned l = 0; l < LANES; l++) {
        if (words[l] & exponent) continue;
        words[l] &= 0x80000000;
        if (type == TYPE_f64) lanes[l] = 0;
    }
}

// The same for halves, of which the upper one may be something else.
static void flush_halves(uint32_t *lanes, bool both)
{
    for (unsigned l = 0; l < LANES; l++) {
        if (!(lanes[l] & 0x7c00)) lanes[l] &= 0xffff8000;
        if (both && !(lanes[l] & 0x7c000000)) lanes[l] &= 0x8000ffff;
    }
}

void wave_flush(const wave_t *w, uint32_t *lanes, type_t type, bool out)
{
    if (!type_is_float(type)) return;
    unsigned kept = w->mode >> (type == TYPE_f32 ? 4 : 6) & 3;
    if (kept >> out & 1) return;
    if (type >= TYPE_f16) {
        flush_halves(lanes, type == TYPE_f16x2);
    } else {
        flush(lanes, type);
    }
}

// Single precision has its own rounding; the others share one.
static int rounding(const wave_t *w, const op_t *op)
{
    static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    bool single = op->dst == TYPE_f32 || op->dst == TYPE_u64; // of which packed operations make two
    return modes[w->mode >> (single ? 0 : 2) & 3];
}

const insn_t *run_float(wave_t *w, const insn_t *i)
{
    if (w->plain_mode) return i->plain(w, i);
    bool modified = i->plain == run_vector || i->plain == run_vector_mask;
    fesetround(rounding(w, i->op));
    const insn_t *next = modified ? run_vector_modified(w, i) : i->plain(w, i);
    fesetround(FE_TONEAREST);
    return next;
}

// A source after its modifiers, in w->operand[k].
static const uint32_t *modified_source(wave_t *w, const insn_t *i, unsigned k, uint64_t *writes)
{
    const modifiers_t *mod = &i->mod;
    const uint32_t *source = wave_source(w, i, k);
    if (!source) return NULL;
    uint32_t *lanes = w->operand[k];
    if (source != lanes) memcpy(lanes, source, 4u * LANES * i->src[k].words);
    if (mod->dpp && k == 0) *writes &= dpp_apply(w, mod, lanes, i->src[k].words);
    if (mod->sdwa && k < 2) {
        for (unsigned l = 0; l < LANES; l++) {
            lanes[l] = sdwa_select(lanes[l], mod->src_sel[k], mod->src_sext[k]);
        }
    }
    type_t type = i->op->src[k];
    bool from_register = i->src[k].from == FROM_VECTOR || i->src[k].from == FROM_SCALAR;
    if (is_half(type) && mod->opsel >> k & 1 && from_register) {
        for (unsigned l = 0; l < LANES; l++) lanes[l] >>= 16;
    }
    bool abs = mod->abs >> k & 1, neg = mod->neg >> k & 1;
    if (abs || neg) sign_modify(lanes, type, abs, neg);
    if (!w->plain_mode && !(i->op->flags & OP_BITS)) wave_flush(w, lanes, type, false);
    return lanes;
}

static double scale_and_clamp(double value, const modifiers_t *mod)
{
    static const double scales[] = {1, 2, 4, 0.5};
    value *= scales[mod->omod];
    if (!mod->clamp) return value;
    return value > 0 ? (value < 1 ? value : 1) : 0; // not a number becomes 0
}

static void result_scale(uint32_t *r, type_t type, const modifiers_t *mod)
{
    if (!mod->omod && !mod->clamp) return;
    for (unsigned l = 0; l < LANES; l++) {
        switch (type) {
        case TYPE_f32: PUT_f32(r, l, (float)scale_and_clamp(GET_f32(r, l), mod)); break;
        case TYPE_f64: PUT_f64(r, l, scale_and_clamp(GET_f64(r, l), mod)); break;
        case TYPE_f16: PUT_f16(r, l, (float)scale_and_clamp(GET_f16(r, l), mod)); break;
        default: break;
        }
    }
}

// 16-bit results go to one half of the register; SDWA chooses freely.
static void result_place(const wave_t *w, const insn_t *i, uint32_t *r)
{
    const modifiers_t *mod = &i->mod;
    const uint32_t *old = w->v[i->dst];
    if (mod->sdwa) {
        for (unsigned l = 0; l < LANES; l++) r[l] = sdwa_place(r[l], old[l], mod);
    } else if (is_half(i->op->dst) && mod->opsel & 8) {
        for (unsigned l = 0; l < LANES; l++) r[l] = r[l] << 16 | (old[l] & 0xffff);
    } else if (i->op->flags & OP_KEEP_HIGH) {
        for (unsigned l = 0; l < LANES; l++) r[l] = (r[l] & 0xffff) | (old[l] & 0xffff0000);
    } else if (i->op->flags & OP_KEEP_BYTES) {
        unsigned shift = 8u * (mod->opsel >> 2);
        for (unsigned l = 0; l < LANES; l++) r[l] = r[l] << shift | (old[l] & ~(0xffu << shift));
    }
}

const insn_t *run_vector_modified(wave_t *w, const insn_t *i)
{
    const op_t *op = i->op;
    bool integer = !type_is_float(op->dst);
    if (i->mod.clamp && integer && op->dst && !(op->flags & OP_SATURATES)) return run_unknown(w, i);
    uint64_t exec = wave_exec(w), writes = exec;
    const uint32_t *source[3];
    for (unsigned k = 0; k < 3; k++) source[k] = modified_source(w, i, k, &writes);
    lanes_fn *lanes = integer && i->mod.clamp ? (op + 1)->lanes : i->lanes;
    uint64_t mask = lanes(w->result, source[0], source[1], source[2], mask_in(w, i));
    if (i->dst_words) {
        if (!w->plain_mode) wave_flush(w, w->result, op->dst, true);
        result_scale(w->result, op->dst, &i->mod);
        result_place(w, i, w->result);
        wave_merge(w, i, writes);
    }
    mask_out(w, i, mask, exec);
    return insn_next(i);
}
