// SPDX-License-Identifier: Apache-2.0
// What instructions on the workgroup's memory share.
#ifndef SIM_AMD_ISA_LDS_H_
#define SIM_AMD_ISA_LDS_H_

#include "amd/isa/atomic.h"

// The bytes at an address; NULL after a fault.
static inline uint8_t *lds_place(wave_t *w, const insn_t *i, uint64_t l, uint64_t at, unsigned size)
{
    if (at + size <= w->lds_size) return w->lds + at;
    wave_fault(w, i, FAULT_APERTURE, "lane %u: byte %llu of %u of the workgroup's memory",
               (unsigned)l, (unsigned long long)at, w->lds_size);
    return NULL;
}

// The bytes of a lane; NULL after a fault. Addresses have 32 bits: a negative one and an offset may
// come to a good one.
static inline uint8_t *place(wave_t *w, const insn_t *i, uint64_t l, uint64_t offset, unsigned size)
{
    return lds_place(w, i, l, w->v[i->address][l] + (uint32_t)offset, size);
}

#define X32(n) w->v[i->data[n]][l]
#define X64(n) (w->v[i->data[n]][l] | (uint64_t)w->v[i->data[n] + 1][l] << 32)

static inline void give32(wave_t *w, const insn_t *i, uint64_t l, uint32_t old)
{
    if (i->op->detail) w->v[i->dst][l] = old;
}

static inline void give64(wave_t *w, const insn_t *i, uint64_t l, uint64_t old)
{
    if (!i->op->detail) return;
    w->v[i->dst][l] = (uint32_t)old;
    w->v[i->dst + 1][l] = (uint32_t)(old >> 32);
}

// detail tells whether the old value is returned.
#define DEFINE_ATOMIC(name, bits, call)                                                            \
    static const insn_t *run_##name(wave_t *w, const insn_t *i)                                    \
    {                                                                                              \
        EACH_ACTIVE_LANE(wave_exec(w))                                                             \
        {                                                                                          \
            uint8_t *p = place(w, i, l, (uint64_t)i->offset, bits / 8);                            \
            if (!p) return NULL;                                                                   \
            if ((uintptr_t)p % (bits / 8)) {                                                       \
                return wave_fault(w, i, FAULT_APERTURE, "lane %u: not aligned", (unsigned)l);      \
            }                                                                                      \
            give##bits(w, i, l, call);                                                             \
        }                                                                                          \
        return insn_next(i);                                                                       \
    }

#define PLAIN(name, run, detail) {name, run, NULL, TYPE_u32, {TYPE_NONE}, 0, detail},

#endif
