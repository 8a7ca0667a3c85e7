// SPDX-License-Identifier: Apache-2.0
// What the operating system says about the machine.
#ifndef KEEL_SRC_BASE_SYSTEM_H_
#define KEEL_SRC_BASE_SYSTEM_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Bytes of memory there are, and bytes that can be taken without making the system swap.
void system_memory(uint64_t *total, uint64_t *available);

// The processor's name, or "CPU" if the system does not tell.
void system_cpu_name(char *name, size_t size);

// A variable of the environment; NULL if there is none, and in a program that runs with more rights
// than the user has who started it.
const char *system_variable(const char *name);

// The arguments of this process with a blank between them, cut off where `size` ends; "" if the
// system does not tell.
void system_command(char *text, size_t size);

// Gives the bytes from `offset`, at which a file ends or has never been written, room on the disk.
// They read as 0. Returns 0 or an errno: ENOSPC if the disk is full, EFBIG beyond
// the size that the process may write (without the signal that a write would send).
int system_file_extend(int fd, uint64_t offset, uint64_t size);

// The time since the machine was started, suspended or not, in ns; where the system has no such
// clock, keel_now_ns.
uint64_t system_boot_ns(void);

// A name for this start of the machine, the same in all processes; "" if the system has none.
void system_boot_name(char *name, size_t size);

// The processor's counter (clock_ticks) runs at one rate on all cores, asleep or not.
bool system_ticks_are_steady(void);

#endif
