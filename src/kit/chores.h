// SPDX-License-Identifier: Apache-2.0
// Things to be done by a thread of their own, because they may take long and
// no caller is to wait for them. Some can be done at any time, and are done first; the others only
// when it is time for them. Each kind is done in the order in which it came.
#ifndef KEEL_SRC_KIT_CHORES_H_
#define KEEL_SRC_KIT_CHORES_H_

#include "kit/helper.h"

// On the heap, and freed when it is done, unless it is kept. What has more to it begins with one of
// these.
typedef struct chore_t {
    struct chore_t *next;
    void (*run)(void *owner, struct chore_t *chore); // without a lock; may block
    bool timed;                                      // only when it is time for it
    bool kept; // `run` sees to its memory, which may be gone when it returns
} chore_t;

// Whether it is time for the timed ones; asked again and again. `waited`: how long the oldest has
// been there, in ns; 0: some came that were not asked for yet, and those that come later are asked
// for when these are done.
typedef bool chores_may_t(void *owner, uint64_t waited);

typedef struct chores_list_t {
    chore_t *first, **last;       // owned
    _Atomic uint32_t added, over; // so far
} chores_list_t;

typedef struct chores_t {
    helper_t helper;
    void *owner;
    chores_may_t *may;
    uint32_t generation; // of fork
    lock_t lock;
    chores_list_t any, timed;
    uint32_t marked;         // up to here timed ones were asked for; the thread's
    uint64_t marked_ns;      // since then; the thread's
    _Atomic uint32_t wanted; // threads that wait for them
} chores_t;

// `may` is NULL where none is timed.
void chores_init(chores_t *chores, const char *name, chores_may_t *may, void *owner);
// Takes it over. Without a thread for it, after chores_stop and in the child of a fork it is done
// here and now.
void chores_add(chores_t *chores, chore_t *chore);
// Blocks until all that was added before has been done; not at all within a chore.
void chores_wait(chores_t *chores);
// The same, but no longer than until `enough` says so: it is asked now and after each of them.
void chores_wait_until(chores_t *chores, bool (*enough)(void *user), void *user);
// Ends the thread, and does what is left, whatever it had to wait for.
void chores_stop(chores_t *chores);

#endif
