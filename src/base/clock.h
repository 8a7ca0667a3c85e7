// SPDX-License-Identifier: Apache-2.0
// Time. keel_now_ns is the clock of the API; ticks are the cheapest counter the processor has, for
// decisions inside.
#ifndef KEEL_SRC_BASE_CLOCK_H_
#define KEEL_SRC_BASE_CLOCK_H_

#include <stdint.h>

#include <keel/base.h>

static inline uint64_t clock_ticks(void)
{
#if defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#elif defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return keel_now_ns();
#endif
}

// How many ticks make so many nanoseconds. The first call may take 0.2 ms to find out. Any thread.
uint64_t clock_ticks_of_ns(uint64_t ns);

// The moment `timeout_ns` from now, KEEL_FOREVER if that is never.
uint64_t clock_deadline(uint64_t timeout_ns);

// Blocks for about so long; a signal may end it early.
void clock_sleep(uint64_t ns);

#endif
