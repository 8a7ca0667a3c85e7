// SPDX-License-Identifier: Apache-2.0
// The border between imported semaphores and the APIs that made them (outside.h), for drivers whose
// vendor can only queue up signals and waits: one thread of the device carries values.
//
// Out: signals go to a queue of the semaphore's own, so they are made in the order of values.
//
// In: whatever waits for the other side may wait for ever, so it waits where nothing else is done,
// in lanes, and no thread waits for these: behind each wait the vendor calls us, which wakes the
// thread. Values on a lane grow, so that one does not wait for a later one; a value below all
// lanes' last gets a lane of its own. Nothing takes a wait back: what never comes keeps its lane,
// and the place where lanes are, which may outlive the device.
//
//     awaited --> on a lane: wait, call --> came: told --> left: freed
#ifndef KEEL_SRC_KIT_BORDER_H_
#define KEEL_SRC_KIT_BORDER_H_

#include "kit/helper.h"
#include "kit/outside.h"

// The driver's. `place` is its struct, `ours` and `theirs` what it has of a semaphore for sending
// and for looking out. All are called on one thread at a time and may block for a moment.
typedef struct border_ops_t {
    keel_status_t (*send)(void *place, void *ours, const outgoing_t *outgoing);
    void (*ours_close)(void *place, void *ours);    // when all that was sent has been made
    keel_status_t (*lost)(void *place);             // why the device is; NULL: it is not
    void (*lose)(void *place, keel_status_t cause); // consumes
    // An error of the calls above or below, passed on.
    keel_status_t (*note)(void *place, keel_status_t status);

    // A wait calls came(user) once, when the other side is that far, on any thread, but not after
    // an error of the place. One that fails has left nothing on the lane.
    keel_status_t (*lane_create)(void *place, void **lane);
    keel_status_t (*lane_wait)(void *place, void *lane, void *theirs, uint64_t value,
                               void (*came)(void *user), void *user);
    // What follows is also called when the device is gone.
    void (*lane_destroy)(void *place, void *lane);
    void (*theirs_close)(void *place, void *theirs);
    keel_status_t (*check)(void *place); // why no lane will ever go on; NULL: they will
    void (*close)(void *place);
} border_ops_t;

typedef struct carrier_t carrier_t;
typedef struct lookout_t lookout_t;

// Of a device. Memory of the C library's, which does not count as ours, as are lookouts.
typedef struct border_t {
    const border_ops_t *ops;
    void *place; // owned
    helper_t helper;
    _Atomic(carrier_t *) fresh; // imported since the thread looked
    carrier_t *carriers;        // the thread's
    lookout_t *stranded;        // owned: waits for values that are no longer wanted
    bool dead;                  // the place has failed: nothing is freed that it may still touch
} border_t;

// Takes `place` over, also when it fails.
keel_status_t border_create(const border_ops_t *ops, void *place, border_t **border);
// For these three NULL is fine.
// All work of the device has ended: what was signalled is sent, and what never came is left.
void border_close(border_t *border);
// After that. Closes the place, now or, if something is stranded there, when that has come.
void border_destroy(border_t *border);
void border_wake(border_t *border); // the device is lost

// What the driver has of a semaphore: for sending, and for looking out.
typedef struct border_sides_t {
    void *ours, *theirs;
} border_sides_t;

// Makes a semaphore of the border, as outside_create does. Takes the two sides over, also when it
// fails.
keel_status_t border_import(border_t *border, const border_sides_t *sides, uint64_t initial, int fd,
                            keel_semaphore_t **semaphore) KEEL_MUST_USE;

// lookout.c: the eyes of one semaphore.
lookout_t *lookout_create(void *theirs); // NULL: no memory
// Gives it up, now or when nothing of it is parked any more.
void lookout_destroy(border_t *border, lookout_t *lookout);
void lookout_free(lookout_t *lookout); // its memory
keel_status_t lookout_watch(border_t *border, lookout_t *lookout, uint64_t value);
// Tells the semaphore of `outside` (NULL: it is gone) what has come. True if something is parked.
bool lookout_tell(lookout_t *lookout, outside_t *outside, keel_semaphore_t *semaphore);
// Gives back what is over by now. False if something is not.
bool lookouts_sweep(border_t *border);

#endif
