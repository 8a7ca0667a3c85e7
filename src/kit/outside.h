// SPDX-License-Identifier: Apache-2.0
// A semaphore that another API made and shares with us: a timeline (timeline.h), and a driver that
// carries values over the border.
//
// What is signalled here stands on a list until the driver sends it, in the order of values: each
// at once, or behind the promise that the signal hangs on. For the smallest value that is awaited
// here the driver looks out, and says when the other side is that far; then the next one is the
// smallest. The other side may have got there by a signal of ours whose end is not known here yet:
// then that comes first, so that a thread that finds a point reached finds reached what led to it.
#ifndef KEEL_SRC_KIT_OUTSIDE_H_
#define KEEL_SRC_KIT_OUTSIDE_H_

#include "kit/semaphore.h"

typedef struct outside_t outside_t;

// A signal on its way out.
typedef struct outgoing_t {
    struct outgoing_t *next;
    uint64_t value;
    promise_t *promise; // retained: it comes with that; NULL: it has come
} outgoing_t;

// The driver's. Any thread, no lock held.
typedef struct outside_ops_t {
    // There is more to send, or another value is awaited.
    void (*wake)(outside_t *outside);
    // The last reference to the semaphore is gone: calls outside_detach, but in the child of a
    // fork, where it only frees memory.
    void (*forget)(outside_t *outside, bool in_child);
} outside_ops_t;

// Begins the driver's struct, of which the semaphore has a pointer. It may outlive the semaphore.
struct outside_t {
    const outside_ops_t *ops;
    lock_t lock;                 // for the next two
    keel_semaphore_t *semaphore; // borrowed; NULL: it is released
    bool closed;                 // the driver has let go of it
    // Guarded by the semaphore's lock.
    uint64_t sent;             // the largest value that was on the list
    uint64_t reached;          // by the other side
    outgoing_t *first, **last; // to be sent
};

// For drivers: makes the semaphore, without object, device and name. `fd` is what it was imported
// by, which is the semaphore's then, unless this fails.
keel_status_t outside_create(outside_t *outside, const outside_ops_t *ops, uint64_t initial, int fd,
                             keel_semaphore_t **semaphore) KEEL_MUST_USE;
// For drivers: the last reference to the semaphore is gone; the device is closed. True if the other
// of the two was before: then the caller has it alone.
bool outside_detach(outside_t *outside);
bool outside_close(outside_t *outside);
// For drivers: frees what is still on its lists.
void outside_finish(outside_t *outside);
// For drivers: the semaphore, retained; NULL: it is gone, or (*released: false) about to be.
keel_semaphore_t *outside_hold(outside_t *outside, bool *released);
// For drivers: takes what is to be sent, each released by outside_drop. `semaphore` is held, or
// NULL for one that was released.
outgoing_t *outside_take(outside_t *outside, keel_semaphore_t *semaphore);
void outside_drop(outgoing_t *outgoing) KEEL_COLD;
// For drivers: the smallest value that is awaited and that the other side is not known to have;
// UINT64_MAX: there is none. `semaphore` is held. Only the thread that calls outside_reach calls
// it.
uint64_t outside_awaited(outside_t *outside, keel_semaphore_t *semaphore);
// For drivers: the other side has come that far.
void outside_reach(outside_t *outside, keel_semaphore_t *semaphore, uint64_t value);

#endif
