// SPDX-License-Identifier: Apache-2.0
#include "kit/chores.h"

#include <keel/base.h>
#include <limits.h>

#include "base/clock.h"
#include "base/fork.h"
#include "base/memory.h"

enum { LOOK_NS = 2000000 };

// Whether the next of the timed ones may be done.
static bool chores_may(chores_t *chores)
{
    uint64_t now = keel_now_ns();
    bool first = chores->marked == atomic_load(&chores->timed.over);
    if (first) {
        chores->marked = atomic_load(&chores->timed.added);
        chores->marked_ns = now;
    }
    return chores->may(chores->owner, first ? 0 : now - chores->marked_ns);
}

static bool list_is_empty(const chores_list_t *list)
{
    return atomic_load(&list->added) == atomic_load(&list->over);
}

static void chore_do(chores_t *chores, chore_t *chore)
{
    bool kept = chore->kept;
    chore->run(chores->owner, chore);
    if (!kept) mem_free(chore);
}

// False if there is none.
static bool list_do_next(chores_t *chores, chores_list_t *list)
{
    lock_enter(&chores->lock);
    chore_t *chore = list->first;
    if (chore && !(list->first = chore->next)) list->last = &list->first;
    lock_leave(&chores->lock);
    if (!chore) return false;
    chore_do(chores, chore);
    atomic_fetch_add(&list->over, 1);
    futex_wake(&list->over, INT_MAX);
    return true;
}

static uint64_t chores_work(void *argument)
{
    chores_t *chores = argument;
    for (;;) {
        if (list_do_next(chores, &chores->any)) continue;
        if (list_is_empty(&chores->timed)) return KEEL_FOREVER;
        if (!chores_may(chores)) return clock_deadline(LOOK_NS);
        if (!list_do_next(chores, &chores->timed)) return KEEL_FOREVER;
    }
}

static void chores_do_all(chores_t *chores)
{
    while (list_do_next(chores, &chores->any) || list_do_next(chores, &chores->timed)) {
    }
}

void chores_init(chores_t *chores, const char *name, chores_may_t *may, void *owner)
{
    helper_init(&chores->helper, name, chores_work, chores);
    chores->owner = owner;
    chores->may = may;
    chores->generation = fork_generation();
    chores->any.last = &chores->any.first;
    chores->timed.last = &chores->timed.first;
}

void chores_add(chores_t *chores, chore_t *chore)
{
    chores_list_t *list = chore->timed ? &chores->timed : &chores->any;
    if (!fork_is_ours(chores->generation)) {
        chore_do(chores, chore);
        return;
    }
    chore->next = NULL;
    lock_enter(&chores->lock);
    *list->last = chore;
    list->last = &chore->next;
    atomic_fetch_add(&list->added, 1); // a thread that sees that there is one finds it
    lock_leave(&chores->lock);
    if (!helper_wake(&chores->helper)) chores_do_all(chores);
}

// False if it was enough before all of them were over.
static bool list_wait(chores_list_t *list, uint32_t all, bool (*enough)(void *user), void *user)
{
    uint32_t over;
    while ((int32_t)(all - (over = atomic_load(&list->over))) > 0) {
        if (enough && enough(user)) return false;
        futex_wait(&list->over, over, KEEL_FOREVER);
    }
    return true;
}

void chores_wait_until(chores_t *chores, bool (*enough)(void *user), void *user)
{
    uint32_t any = atomic_load(&chores->any.added), timed = atomic_load(&chores->timed.added);
    if (helper_here() == &chores->helper) return; // no other thread does them
    atomic_fetch_add(&chores->wanted, 1);
    if (list_wait(&chores->any, any, enough, user)) list_wait(&chores->timed, timed, enough, user);
    atomic_fetch_sub(&chores->wanted, 1);
}

void chores_wait(chores_t *chores)
{
    chores_wait_until(chores, NULL, NULL);
}

void chores_stop(chores_t *chores)
{
    helper_stop(&chores->helper);
    chores_do_all(chores);
}
