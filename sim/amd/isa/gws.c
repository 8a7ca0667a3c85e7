// SPDX-License-Identifier: Apache-2.0
// The instructions of the global wave sync, with which the workgroups of a cooperative launch wait
// for each other.
#include "amd/isa/state.h"

// The number of the barrier is in M0 and the offset; the value is that of the first active lane.
static unsigned number_of(const wave_t *w, const insn_t *i)
{
    return ((w->s[SGPR_M0] >> 16) + (uint32_t)i->offset) % GWS_COUNT;
}

static uint32_t value_of(const wave_t *w, const insn_t *i)
{
    return w->v[i->address][__builtin_ctzll(wave_exec(w))];
}

static const insn_t *fault(wave_t *w, const insn_t *i)
{
    return wave_fault(w, i, FAULT_INSTRUCTION, "its queue is not for cooperative launches");
}

static const insn_t *run_init(wave_t *w, const insn_t *i)
{
    if (!w->isa->dispatch->gws) return fault(w, i);
    if (wave_exec(w)) gws_set(w->isa->units, number_of(w, i), value_of(w, i));
    return insn_next(i);
}

// A wave that waits runs the instruction again at each turn.
static const insn_t *run_barrier(wave_t *w, const insn_t *i)
{
    if (!w->isa->dispatch->gws) return fault(w, i);
    if (!wave_exec(w)) return insn_next(i);
    unsigned number = number_of(w, i);
    if (!w->gws_waits) w->gws_phase = gws_come(w->isa->units, number, value_of(w, i));
    w->gws_waits = !gws_over(w->isa->units, number, w->gws_phase);
    return w->gws_waits ? wave_leave(w, i, WAVE_YIELDED) : insn_next(i);
}

static const op_t ops[] = {
    {"ds_gws_init", run_init, NULL, TYPE_NONE, {TYPE_NONE}, 0, 0},
    {"ds_gws_barrier", run_barrier, NULL, TYPE_NONE, {TYPE_NONE}, 0, 0},
};
const op_list_t gws_ops = {ops, sizeof ops / sizeof *ops};
