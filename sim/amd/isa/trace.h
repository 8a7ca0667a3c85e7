// SPDX-License-Identifier: Apache-2.0
// Watching a kernel run, for logs and debuggers.
#ifndef SIM_AMD_ISA_TRACE_H_
#define SIM_AMD_ISA_TRACE_H_

#include <stdarg.h>

#include "amd/isa/state.h"

// Whether KEEL_SIM_BREAK names the kernel whose descriptor is at an address.
bool trace_breaks(uint64_t kernel);

// Calls keel_sim_break, or keel_sim_step with the instruction that comes next: where debuggers
// stop.
void trace_break(const wave_t *w);
void trace_step(const wave_t *w, const insn_t *i);
void keel_sim_break(const wave_t *wave, const char *kernel);
void keel_sim_step(const wave_t *wave, uint64_t address, const char *text);

// Runs an instruction and logs it with its registers.
const insn_t *trace_run(wave_t *w, const insn_t *i);

#endif
