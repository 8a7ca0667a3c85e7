// SPDX-License-Identifier: Apache-2.0
// The options of a cpu:// URI; device.h of the API lists them.
#ifndef KEEL_SRC_DRIVERS_CPU_OPTIONS_H_
#define KEEL_SRC_DRIVERS_CPU_OPTIONS_H_

#include <keel/driver/driver.h>

typedef struct cpu_options_t {
    bool is_inline;
    uint32_t threads; // of each node; 0: not given
    uint32_t nodes;
    uint64_t spin_us;
    const char *cpus; // borrowed from the URI; NULL: not given
    uint8_t discrete; // memory types are those of a card
    bool shuffle;
    uint64_t seed;
} cpu_options_t;

keel_status_t cpu_options_parse(const keel_uri_t *uri, cpu_options_t *options) KEEL_MUST_USE;

#endif
