// SPDX-License-Identifier: Apache-2.0
// The compute units of a GPU, and what workgroups take of them while they run. All queues of a GPU
// share them. Any thread may call any of it.
#ifndef SIM_AMD_ISA_UNITS_H_
#define SIM_AMD_ISA_UNITS_H_

#include "amd/isa/isa.h"
#include "amd/wait.h"

// Of one unit.
typedef struct {
    unsigned waves;
    unsigned registers; // vector registers of a wave
    unsigned lds;       // bytes
} demand_t;

// NULL when memory is short.
units_t *units_create(gfx_t gfx);
void units_destroy(units_t *units);

// Takes what a workgroup needs of one of the units in a mask, or the whole unit where it has less
// than that: of the one that has the most left, and among several of these of the first behind
// number from. The number of the unit, or -1 when none has so much left.
int units_take(units_t *units, uint64_t mask, const demand_t *demand, unsigned from);

// Gives it back, and wakes who waits for units_bell.
void units_give(units_t *units, int unit, const demand_t *demand);
bell_t *units_bell(units_t *units);

// The global wave sync (GWS): barriers for waves of the whole GPU, by number. One is set to how
// many waves beside the last are to come. A wave that comes gets the phase that ends with the last
// of them, which sets the barrier anew for as many as it says.
enum { GWS_COUNT = 64 };
void gws_set(units_t *units, unsigned number, uint32_t others);
uint32_t gws_come(units_t *units, unsigned number, uint32_t others);
bool gws_over(units_t *units, unsigned number, uint32_t phase);

#endif
