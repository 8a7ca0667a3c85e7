// SPDX-License-Identifier: Apache-2.0
#include "rig.h"

#include <sched.h>
#include <stdatomic.h>

#if defined(__linux__) && !KEEL_PORTABLE

// What the process was started with; threads inherit the mask of their maker, so it is read once.
static const cpu_set_t *allowed(void)
{
    static cpu_set_t set;
    static bool known;
    if (!known) known = !sched_getaffinity(0, sizeof set, &set);
    return &set;
}

int place_cpu(int index)
{
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, allowed()) && index-- == 0) return cpu;
    return -1;
}

void place_pin(int cpu)
{
    cpu_set_t set = *allowed();
    if (cpu >= 0) {
        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
    }
    sched_setaffinity(0, sizeof set, &set);
}

#else

int place_cpu(int index)
{
    (void)index;
    return -1;
}

void place_pin(int cpu)
{
    (void)cpu;
}

#endif

void place_first(place_t place)
{
    if (place != PLACE_FREE) place_pin(place_cpu(0));
}

void place_second(place_t place)
{
    if (place != PLACE_FREE) place_pin(place_cpu(place == PLACE_APART));
}

void place_until(const job_t *job, _Atomic uint32_t *word, uint32_t value)
{
    bool shared = job->place != PLACE_APART;
    while (atomic_load_explicit(word, memory_order_acquire) != value)
        if (shared) sched_yield();
    for (uint64_t end = keel_now_ns() + job->asleep_us * UINT64_C(1000); keel_now_ns() < end;)
        if (shared) sched_yield();
}
