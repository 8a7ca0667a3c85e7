// SPDX-License-Identifier: Apache-2.0
// What the software GPU needs of its host: a log, settings, a clock. Any thread may call any of it.
#ifndef SIM_AMD_BASE_H_
#define SIM_AMD_BASE_H_

#include <stdbool.h>
#include <stdint.h>

// What KEEL_SIM_LOG may name, separated by commas; errors are always written.
typedef enum {
    LOG_ERROR = 0,
    LOG_CALLS = 1 << 0,   // calls of the runtime into the library
    LOG_PACKETS = 1 << 1, // packets of queues
    LOG_ISA = 1 << 2,     // every instruction, with what it left in its destination
    LOG_TIME = 1 << 3,    // at the end, the processor time that all this took
} log_topic_t;

// One line to standard error, in one write.
void log_line(log_topic_t topic, const char *format, ...) __attribute__((format(printf, 2, 3)));

bool log_enabled(log_topic_t topic);

// What the environment asks for; read once.
typedef struct {
    uint64_t seed;       // KEEL_SIM_SEED: of the random order of everything; 0: no such
    unsigned threads;    // KEEL_SIM_THREADS: that run one dispatch
    unsigned queues;     // KEEL_SIM_QUEUES: compute queues of a GPU that run at a time
    uint64_t weak;       // KEEL_SIM_WEAK: the seed of weak memory; 0: memory is strong
    bool strict;         // KEEL_SIM_STRICT: what is allowed and odd is reported, too
    bool atomics;        // KEEL_SIM_ATOMICS: the links of the GPUs to the host carry them
    bool bar;            // KEEL_SIM_BAR: the host sees all memory of the GPUs
    bool doorbells;      // KEEL_SIM_DOORBELLS: those of a GPU can be mapped for other GPUs
    bool links;          // KEEL_SIM_LINKS: GPUs reach each other's memory
    bool svm;            // KEEL_SIM_SVM: GPUs use memory of the host at its own addresses
    uint64_t watchdog_s; // KEEL_SIM_WATCHDOG: seconds until a packet is reported; 0: never
} settings_t;
const settings_t *sim_settings(void);

// A number below a bound, by xorshift; the state is not 0.
static inline uint64_t random_below(uint64_t *state, uint64_t bound)
{
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    *state = x;
    return (x >> 11) % bound;
}

// Nanoseconds of a clock that never stops. The clocks of the GPUs run beside it (isa/isa.h).
uint64_t clock_ns(void);

#endif
