// SPDX-License-Identifier: Apache-2.0
// The runtime's agents: GPUs by their numbers, and the host.
#ifndef KEEL_SRC_CAPTURE_HSA_AGENTS_H_
#define KEEL_SRC_CAPTURE_HSA_AGENTS_H_

#include "capture/hsa/table.h"

// Asks the runtime for them.
void agents_read(void);

// The number of a GPU, from 0; -1: it is none.
int agents_gpu(hsa_agent_t agent);

// "gpu 0 (gfx90a)"; "host" for what is no GPU.
const char *agents_name(hsa_agent_t agent);

// The number, in the trace, of the queue on which a GPU's copies are shown; of the host if it is
// none.
uint32_t agents_copies(hsa_agent_t agent);

#endif
