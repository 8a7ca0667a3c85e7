// SPDX-License-Identifier: Apache-2.0
// How threads of the software GPU wait. Doorbells, signals and what device code polls are plain
// words: most changes of them come without notice, so a thread looks again and again, ever more
// rarely. Where the simulator itself makes a change, it rings a bell, and who waits looks at once.
// Any thread may call any of it.
#ifndef SIM_AMD_WAIT_H_
#define SIM_AMD_WAIT_H_

#include <stdatomic.h>
#include <stdint.h>

typedef struct {
    atomic_uint rings, sleepers;
} bell_t;

// Rung when the simulator has changed a signal or ended a kernel, for all that may depend on it.
extern bell_t memory_bell;

// Wakes every thread that waits for the bell.
void bell_ring(bell_t *bell);

// One wait of a thread; all zero before it.
typedef struct {
    uint64_t since;     // clock_ns when it began
    const bell_t *bell; // that was waited for last
    unsigned seen;      // its rings then
} patience_t;

// Waits between two looks at what may have changed. It returns at once in the first microseconds,
// and whenever the bell has rung since the call before; later it sleeps an eighth of the time that
// the wait has lasted, at most limit_ns, or until the bell rings.
void bell_wait(bell_t *bell, patience_t *patience, uint64_t limit_ns);

#endif
