// SPDX-License-Identifier: Apache-2.0
#include "capture/hsa/clock.h"

enum { NS_PER_S = 1000000000 };
static uint64_t frequency = NS_PER_S;

void hsa_clock_read(void)
{
    uint64_t told = 0;
    if (hsa.system_get_info(HSA_SYSTEM_TIMESTAMP_FREQUENCY, &told) == 0 && told) frequency = told;
}

static uint64_t ns_of(uint64_t ticks)
{
    if (frequency == NS_PER_S) return ticks;
    return ticks / frequency * NS_PER_S + ticks % frequency * NS_PER_S / frequency;
}

hsa_time_t hsa_clock_ns(hsa_time_t ticks)
{
    return (hsa_time_t){ns_of(ticks.start), ns_of(ticks.end)};
}
