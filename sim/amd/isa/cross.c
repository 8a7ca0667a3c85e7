// SPDX-License-Identifier: Apache-2.0
// Vector instructions that reach across lanes or between register files.
#include "amd/isa/lanes.h"

static uint32_t lane_of(wave_t *w, const insn_t *i, unsigned k, unsigned lane)
{
    return wave_source(w, i, k)[lane];
}

static const insn_t *run_nothing(wave_t *w, const insn_t *i)
{
    return insn_next(i);
}

static const insn_t *run_readfirstlane(wave_t *w, const insn_t *i)
{
    uint64_t exec = wave_exec(w);
    w->s[i->dst & 127] = lane_of(w, i, 0, exec ? (unsigned)__builtin_ctzll(exec) : 0);
    return insn_next(i);
}

static const insn_t *run_readlane(wave_t *w, const insn_t *i)
{
    unsigned lane = lane_of(w, i, 1, 0) & 63;
    w->s[i->dst & 127] = lane_of(w, i, 0, lane);
    return insn_next(i);
}

static const insn_t *run_writelane(wave_t *w, const insn_t *i)
{
    unsigned lane = lane_of(w, i, 1, 0) & 63;
    w->v[i->dst][lane] = lane_of(w, i, 0, 0);
    return insn_next(i);
}

static const insn_t *run_swap(wave_t *w, const insn_t *i)
{
    const uint32_t *mask = wave_lane_mask(w);
    uint32_t *x = w->v[i->dst], *y = w->v[i->src[0].index];
    EACH_LANE
    {
        uint32_t difference = (x[l] ^ y[l]) & mask[l];
        x[l] ^= difference;
        y[l] ^= difference;
    }
    return insn_next(i);
}

// Accumulation registers are numbered like vector registers; the instruction tells which is meant.
static const insn_t *move(wave_t *w, const uint32_t *from, uint32_t *to, const insn_t *i)
{
    const uint32_t *mask = wave_lane_mask(w);
    EACH_LANE to[l] = (from[l] & mask[l]) | (to[l] & ~mask[l]);
    return insn_next(i);
}

static const insn_t *run_acc_read(wave_t *w, const insn_t *i)
{
    return move(w, w->v[VGPR_ACC + (i->src[0].index & 255)], w->v[i->dst], i);
}

static const insn_t *run_acc_write(wave_t *w, const insn_t *i)
{
    return move(w, wave_source(w, i, 0), w->v[VGPR_ACC + i->dst], i);
}

static const insn_t *run_acc_move(wave_t *w, const insn_t *i)
{
    return move(w, w->v[VGPR_ACC + (i->src[0].index & 255)], w->v[VGPR_ACC + i->dst], i);
}

static const op_t ops[] = {
    {"v_nop", run_nothing, NULL, TYPE_NONE, {TYPE_NONE}, 0, 0},
    {"v_clrexcp", run_nothing, NULL, TYPE_NONE, {TYPE_NONE}, 0, 0},
    {"v_readfirstlane_b32", run_readfirstlane, NULL, TYPE_u32, {TYPE_u32}, OP_SCALAR_DST, 0},
    {"v_readlane_b32", run_readlane, NULL, TYPE_u32, {TYPE_u32, TYPE_u32}, OP_SCALAR_DST, 0},
    {"v_writelane_b32", run_writelane, NULL, TYPE_u32, {TYPE_u32, TYPE_u32}, 0, 0},
    {"v_swap_b32", run_swap, NULL, TYPE_u32, {TYPE_u32}, 0, 0},
    {"v_accvgpr_read_b32", run_acc_read, NULL, TYPE_u32, {TYPE_u32}, 0, 0},
    {"v_accvgpr_write_b32", run_acc_write, NULL, TYPE_u32, {TYPE_u32}, 0, 0},
    {"v_accvgpr_mov_b32", run_acc_move, NULL, TYPE_u32, {TYPE_u32}, 0, 0},
};
const op_list_t cross_ops = {ops, sizeof ops / sizeof *ops};
