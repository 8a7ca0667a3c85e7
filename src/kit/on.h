// SPDX-License-Identifier: Apache-2.0
// A wait without a thread: its owner is told once, when all or any of some points have ended.
//
//     on_begin --> points end --> ended
//                      |            ^
//                      +-- on_drop --+
//
// As with a submission, a count says how many points are linked or being told, and one more for the
// call that begins it; the thread that brings it to zero tells the owner. Who decides it before the
// last point has come unlinks the others. So nothing of it is touched after `ended`, and no thread
// waits for another.
#ifndef KEEL_SRC_KIT_ON_H_
#define KEEL_SRC_KIT_ON_H_

#include "kit/semaphore.h"

typedef struct on_t on_t;

typedef struct on_entry_t {
    waiter_t waiter;    // first
    keel_point_t point; // semaphore retained
    on_t *on;
} on_entry_t;

typedef enum on_fate_t {
    ON_OPEN,    // or all points came, one by one
    ON_DECIDED, // by a failure, or by one of which any would do
    ON_DROPPED, // by the owner
} on_fate_t;

struct on_t {
    _Atomic uint32_t left; // entries linked or being told, and calls at work on it
    _Atomic uint32_t fate; // on_fate_t
    keel_wait_mode_t mode;
    uint32_t count;
    on_entry_t *entries;   // the owner's
    keel_status_t failure; // owned; of a point that decided
    // Nothing is linked any more, and the memory is the owner's. `device` is that of the point that
    // ended it last, NULL if there are none; it is kept by the semaphores, which the owner
    // releases (on_release). Called without locks, by any thread.
    void (*ended)(on_t *on, keel_device_t *device);
};

// Retains the semaphores and links the points. `ended` may be called before this returns.
void on_begin(on_t *on, keel_points_t points, keel_wait_mode_t mode, on_entry_t *entries,
              void (*ended)(on_t *, keel_device_t *));

// For an owner that found it on a list of its own: keeps it from ending until on_drop. False: it
// is about to end.
bool on_pin(on_t *on);
// Gives up a pinned wait. True: nothing had decided it, and its fate is ON_DROPPED. `ended` is
// called either way, here or by another thread.
bool on_drop(on_t *on);

// Releases the semaphores.
void on_release(on_t *on);

#endif
