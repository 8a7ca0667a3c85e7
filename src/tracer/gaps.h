// SPDX-License-Identifier: Apache-2.0
// How busy a device was, and why it was not.
#ifndef KEEL_SRC_TRACER_GAPS_H_
#define KEEL_SRC_TRACER_GAPS_H_

#include "tracer/model.h"

// Why nothing but copies ran for some time, until an operation did.
typedef enum gap_cause_t {
    GAP_HOST,       // the host had not made the call
    GAP_DEPENDENCY, // it had: the operation waited for something
    GAP_COPY,       // copies ran for at least half of the time
    GAP_UNKNOWN,    // the trace does not tell which call made the operation
    GAP_CAUSES,
} gap_cause_t;

enum { GAP_SIZES = 6 }; // below 1 us, 10 us, 100 us, 1 ms, 10 ms, and above

typedef struct gaps_t {
    uint64_t ops;
    uint64_t busy_ns; // at least one operation ran: the union of their intervals
    uint64_t total_ns[GAP_CAUSES];
    uint64_t count[GAP_CAUSES][GAP_SIZES];
} gaps_t;

// Called for each gap: its cause, from when, and the operation that ended it.
typedef keel_status_t (*gap_fn)(void *user, gap_cause_t cause, uint64_t from_ns,
                                const event_t *next);
keel_status_t gaps_find(const model_t *model, uint32_t device, gaps_t *gaps, gap_fn fn,
                        void *user) KEEL_MUST_USE;

// "host late".
const char *gaps_cause(gap_cause_t cause);

#endif
