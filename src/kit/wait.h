// SPDX-License-Identifier: Apache-2.0
// A wait of the host: for all or any of some points, by a thread that sleeps or polls.
//
// The waiting thread owns the memory, and a signalling thread must
// not touch it once the waiting thread may have gone on. So the last thing a signaller does to it
// is one atomic subtraction; the wake-up after it needs the address alone. A waiter never has to
// spin until a preempted signaller is done with it.
#ifndef KEEL_SRC_KIT_WAIT_H_
#define KEEL_SRC_KIT_WAIT_H_

#include "kit/semaphore.h"

typedef struct wait_t wait_t;

typedef struct wait_entry_t {
    waiter_t waiter; // first
    keel_point_t point;
    wait_t *wait;
} wait_entry_t;

struct wait_t {
    _Atomic uint32_t word; // entries linked or being told, and the bits below
    keel_wait_mode_t mode;
    _Atomic size_t index;                // the point that decided; SIZE_MAX: none yet
    struct keel_status *_Atomic failure; // owned
    wait_entry_t *entries;
    size_t count;
};

#define WAIT_DECIDED  (UINT32_C(1) << 31)
#define WAIT_SLEEPING (UINT32_C(1) << 30)
#define WAIT_COUNT    (WAIT_SLEEPING - 1)

// Links `entries` (point set) to their points. The wait may be decided at once.
void wait_begin(wait_t *wait, keel_wait_mode_t mode, wait_entry_t *entries, size_t count);

// Sleeps until it is decided or the deadline has passed; polls for `spin_ns` first.
void wait_sleep(wait_t *wait, uint64_t deadline_ns, uint64_t spin_ns);

// Unlinks everything; the memory is the caller's again. NULL, the cause of a failure, or the
// time-out. `index`, if not NULL, receives the point that decided.
keel_status_t wait_end(wait_t *wait, size_t *index);

#endif
