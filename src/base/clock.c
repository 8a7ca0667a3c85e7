// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <stdatomic.h>
#include <time.h>

// It stands still while the machine sleeps. Metal's times are on this one.
#ifdef __APPLE__
enum { STEADY = CLOCK_UPTIME_RAW };
#else
enum { STEADY = CLOCK_MONOTONIC };
#endif

uint64_t keel_now_ns(void)
{
    struct timespec now;
    clock_gettime(STEADY, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// Ticks per microsecond, times 1024.
static uint64_t clock_measure(void)
{
#if defined(__aarch64__)
    uint64_t per_second;
    __asm__("mrs %0, cntfrq_el0" : "=r"(per_second));
    return per_second * 1024 / 1000000;
#else
    uint64_t ns = keel_now_ns(), ticks = clock_ticks(), end = ns + 200000, now;
    do now = keel_now_ns();
    while (now < end);
    return (clock_ticks() - ticks) * 1024 * 1000 / (now - ns);
#endif
}

uint64_t clock_ticks_of_ns(uint64_t ns)
{
    static _Atomic uint64_t rate;
    // relaxed: each thread that measures gets the same number, and nothing else depends on it.
    uint64_t known = atomic_load_explicit(&rate, memory_order_relaxed);
    if (!known) {
        known = clock_measure();
        if (!known) known = 1;
        atomic_store_explicit(&rate, known, memory_order_relaxed);
    }
    return ns / 1000 * known / 1024 + ns % 1000 * known / 1024000;
}

uint64_t clock_deadline(uint64_t timeout_ns)
{
    if (timeout_ns == KEEL_FOREVER) return KEEL_FOREVER;
    uint64_t now = keel_now_ns();
    return timeout_ns > KEEL_FOREVER - now ? KEEL_FOREVER : now + timeout_ns;
}

void clock_sleep(uint64_t ns)
{
    nanosleep(&(struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)}, NULL);
}
