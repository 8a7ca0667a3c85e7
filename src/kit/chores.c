// SPDX-License-Identifier: Apache-2.0
#include "kit/chores.h"

#include <keel/base.h>
#include <limits.h>

#include "base/clock.h"
#include "base/fork.h"
#include "base/memory.h"

enum { LOOK_NS = 2000000 };

// Whether the next one may be done.
static bool chores_may(chores_t *chores)
{
    uint32_t added = atomic_load(&chores->added), over = atomic_load(&chores->over);
    if (atomic_load(&chores->stopping) || added == over) return true;
    bool mark = chores->marked == over;
    if (mark) chores->marked = added;
    return chores->may(chores->owner, mark);
}

static uint64_t chores_work(void *argument)
{
    chores_t *chores = argument;
    for (;;) {
        if (!chores_may(chores)) return clock_deadline(LOOK_NS);
        lock_enter(&chores->lock);
        chore_t *chore = chores->first;
        if (chore && !(chores->first = chore->next)) chores->last = &chores->first;
        lock_leave(&chores->lock);
        if (!chore) return KEEL_FOREVER;
        chore->run(chores->owner, chore);
        mem_free(chore);
        atomic_fetch_add(&chores->over, 1);
        futex_wake(&chores->over, INT_MAX);
    }
}

void chores_init(chores_t *chores, const char *name, chores_may_t *may, void *owner)
{
    helper_init(&chores->helper, name, chores_work, chores);
    chores->owner = owner;
    chores->may = may;
    chores->generation = fork_generation();
    chores->last = &chores->first;
}

void chores_add(chores_t *chores, chore_t *chore)
{
    if (!fork_is_ours(chores->generation)) {
        chore->run(chores->owner, chore);
        mem_free(chore);
        return;
    }
    atomic_fetch_add(&chores->added, 1);
    chore->next = NULL;
    lock_enter(&chores->lock);
    *chores->last = chore;
    chores->last = &chore->next;
    lock_leave(&chores->lock);
    if (helper_wake(&chores->helper)) return;
    atomic_store(&chores->stopping, true);
    chores_work(chores);
}

void chores_wait(chores_t *chores)
{
    uint32_t all = atomic_load(&chores->added), over;
    if (helper_here() == &chores->helper) return; // nobody else does them
    atomic_fetch_add(&chores->wanted, 1);
    while ((int32_t)(all - (over = atomic_load(&chores->over))) > 0)
        futex_wait(&chores->over, over, KEEL_FOREVER);
    atomic_fetch_sub(&chores->wanted, 1);
}

void chores_stop(chores_t *chores)
{
    helper_stop(&chores->helper);
    atomic_store(&chores->stopping, true);
    chores_work(chores);
}
