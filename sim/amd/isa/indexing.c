// SPDX-License-Identifier: Apache-2.0
// Vector registers by number: between s_set_gpr_idx_on and s_set_gpr_idx_off an index is added to
// the registers of vector instructions. The instruction that turns it on runs those in between, on
// copies with other registers, so that nothing else needs to know.
#include "amd/isa/state.h"

enum { INDEX_SRC0 = 1, INDEX_DST = 8 };

static bool is_vector(const insn_t *i)
{
    return i->run == run_vector || i->run == run_vector_mask || i->run == run_vector_modified ||
           i->run == run_float;
}

// M0 holds the index in its low byte and, in bits 12 to 15, what it is added to.
static insn_t indexed(const wave_t *w, const insn_t *i)
{
    insn_t copy = *i;
    unsigned index = w->s[SGPR_M0] & 0xff, what = w->s[SGPR_M0] >> 12 & 15;
    for (unsigned k = 0; k < 3; k++) {
        if (what & INDEX_SRC0 << k && copy.src[k].from == FROM_VECTOR) {
            copy.src[k].index = (uint16_t)((copy.src[k].index + index) & 255);
        }
    }
    if (what & INDEX_DST) copy.dst = (uint16_t)((copy.dst + index) & 255);
    return copy;
}

static const insn_t *run_off(wave_t *w, const insn_t *i)
{
    return insn_next(i);
}

static uint32_t index_source(const wave_t *w, const insn_t *i)
{
    return i->src[0].from == FROM_SCALAR ? w->s[i->src[0].index] : (uint32_t)i->value[0].bits;
}

static void set_index(wave_t *w, uint32_t index)
{
    w->s[SGPR_M0] = (w->s[SGPR_M0] & ~0xffu) | (index & 0xff);
}

static void set_what(wave_t *w, uint32_t what)
{
    w->s[SGPR_M0] = (w->s[SGPR_M0] & ~0xf000u) | (what & 15) << 12;
}

static const insn_t *run_on(wave_t *w, const insn_t *i)
{
    set_index(w, index_source(w, i));
    set_what(w, i->raw[0] >> 8);
    i = insn_next(i);
    while (i && i->run != run_off) {
        if (i->run == run_undecoded) {
            i = run_undecoded(w, i);
        } else if (is_vector(i)) {
            insn_t copy = indexed(w, i);
            i = copy.run(w, &copy) ? insn_next(i) : NULL;
        } else {
            i = i->run(w, i);
        }
    }
    return i;
}

static const insn_t *run_index(wave_t *w, const insn_t *i)
{
    set_index(w, index_source(w, i));
    return insn_next(i);
}

static const insn_t *run_mode(wave_t *w, const insn_t *i)
{
    set_what(w, i->raw[0]);
    return insn_next(i);
}

static const op_t ops[] = {
    {"s_set_gpr_idx_on", run_on, NULL, TYPE_NONE, {TYPE_u32}, 0, 0},
    {"s_set_gpr_idx_off", run_off, NULL, TYPE_NONE, {TYPE_NONE}, 0, 0},
    {"s_set_gpr_idx_idx", run_index, NULL, TYPE_NONE, {TYPE_u32}, 0, 0},
    {"s_set_gpr_idx_mode", run_mode, NULL, TYPE_NONE, {TYPE_NONE}, 0, 0},
};
const op_list_t indexing_ops = {ops, sizeof ops / sizeof *ops};
