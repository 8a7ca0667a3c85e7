// SPDX-License-Identifier: Apache-2.0
// Targets of host images: MACHINE-SYSTEM, with :LEVEL if they need more of the processor than all
// of its kind have.
#ifndef KEEL_SRC_DRIVERS_CPU_TARGET_H_
#define KEEL_SRC_DRIVERS_CPU_TARGET_H_

#include <stddef.h>
#include <stdint.h>

// The best target for a processor of that level (base/processor.h).
void cpu_target_name(uint32_t level, char *text, size_t size);

// What executable_rank answers for a target on such a processor.
uint32_t cpu_target_rank(uint32_t level, const char *target);

#endif
