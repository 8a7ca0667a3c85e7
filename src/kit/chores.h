// SPDX-License-Identifier: Apache-2.0
// Things to be done by a thread of their own, in order, because they may take long and nobody is to
// wait for them.
#ifndef KEEL_SRC_KIT_CHORES_H_
#define KEEL_SRC_KIT_CHORES_H_

#include "kit/helper.h"

// On the heap, and freed when it is done. What has more to it begins with one of these.
typedef struct chore_t {
    struct chore_t *next;
    void (*run)(void *owner, struct chore_t *chore); // without a lock; may block
} chore_t;

// Whether it is time for them; asked again and again. `mark`: for the first time for those that are
// there; what comes meanwhile is asked for later.
typedef bool chores_may_t(void *owner, bool mark);

typedef struct chores_t {
    helper_t helper;
    void *owner;
    chores_may_t *may;
    uint32_t generation; // of fork
    lock_t lock;
    chore_t *first, **last;       // owned
    _Atomic uint32_t added, over; // so far
    uint32_t marked;              // up to here they came before the mark; the thread's
    _Atomic uint32_t wanted;      // threads that wait for them
    _Atomic bool stopping;        // there is no thread any more
} chores_t;

void chores_init(chores_t *chores, const char *name, chores_may_t *may, void *owner);
// Takes it over. Without a thread for it, after chores_stop and in the child of a fork it is done
// here and now.
void chores_add(chores_t *chores, chore_t *chore);
// Blocks until all that was added before has been done; not at all within a chore.
void chores_wait(chores_t *chores);
// Ends the thread, and does what is left, whatever it had to wait for.
void chores_stop(chores_t *chores);

#endif
