// SPDX-License-Identifier: Apache-2.0
// What the software GPU needs of its host: settings, a log, a clock, random numbers. Any thread may
// call any of it.
#ifndef SIM_CUDA_BASE_H_
#define SIM_CUDA_BASE_H_

#include "cuda/api.h"

#include <stdbool.h>
#include <stdint.h>

// A call that is to fail.
typedef struct rule_t {
    char symbol[64]; // as it is asked for, without _v2; empty: any call
    uint64_t number; // which of its calls, from 1
    bool onwards;    // that one and all after it
    CUresult code;
} rule_t;

enum { RULES_MAX = 16 };

// How often a function was called.
typedef struct tally_t {
    char symbol[56]; // as it is exported
    uint64_t calls;
} tally_t;

// In a file of the user's, or our own.
typedef struct counters_t {
    uint64_t calls;
    uint64_t hit;      // a failure was injected
    tally_t tallies[]; // in the order of first calls, as far as the file has room
} counters_t;

// What KEEL_SIM_CUDA says; docs/sim.md describes it.
typedef struct settings_t {
    unsigned devices;
    int version;      // of CUDA, as the driver says it
    uint64_t memory;  // bytes of each device
    uint64_t seed;    // of the order in which things run; 0: as they come
    unsigned depth;   // launches a stream takes before the next one blocks
    unsigned slow_us; // that every copy takes at least
    int poison;       // the byte that fresh memory is filled with; -1: it is zero
    unsigned leaks;   // 1: say what a context still has when it ends; 2: and abort
    unsigned without; // features that are taken away; see variant.h
    unsigned quirks;  // bits of quirk_t
    bool log_calls;   // one line per call
    bool valid;       // false: something in it is not known
    rule_t lose;      // the call at which all devices are lost; number 0: none
    rule_t rules[RULES_MAX];
    unsigned rule_count;
    counters_t *counters;
    size_t tally_room;
} settings_t;

const settings_t *settings(void);

// One line to standard error, in one write, that begins with `sim: cuda:`.
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Nanoseconds of a clock that never goes back.
uint64_t clock_ns(void);

void sleep_us(unsigned us);

// A random number below `bound` from the seed, or 0 without one.
uint64_t random_below(uint64_t bound);

// With a seed, waits a little now and then.
void hold_back(void);

#endif
