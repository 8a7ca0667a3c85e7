// SPDX-License-Identifier: Apache-2.0
// What the operating system says about the machine.
#ifndef KEEL_SRC_BASE_SYSTEM_H_
#define KEEL_SRC_BASE_SYSTEM_H_

#include <stddef.h>
#include <stdint.h>

// Bytes of memory there are, and bytes that can be taken without making the system swap.
void system_memory(uint64_t *total, uint64_t *available);

// The processor's name, or "CPU" if the system does not tell.
void system_cpu_name(char *name, size_t size);

#endif
