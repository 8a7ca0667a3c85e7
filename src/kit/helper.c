// SPDX-License-Identifier: Apache-2.0
#include "kit/helper.h"

#include <keel/base.h>

#include "base/thread.h"

typedef enum helper_state_t {
    HELPER_NONE,
    HELPER_RUNNING,
    HELPER_STOPPING,
} helper_state_t;

void helper_init(helper_t *helper, const char *name, uint64_t (*work)(void *), void *owner)
{
    helper->name = name;
    helper->work = work;
    helper->owner = owner;
}

static THREAD_LOCAL const helper_t *here;

static void *helper_main(void *argument)
{
    helper_t *helper = argument;
    here = helper;
    for (;;) {
        // acquire: pairs with the wake-up; what it was for is seen by the work.
        uint32_t seen = atomic_load_explicit(&helper->word, memory_order_acquire);
        if (atomic_load(&helper->state) == HELPER_STOPPING) return NULL;
        uint64_t next_ns = helper->work(helper->owner);
        futex_wait(&helper->word, seen, next_ns);
    }
}

static bool helper_start(helper_t *helper)
{
    lock_enter(&helper->lock);
    bool running = atomic_load(&helper->state) == HELPER_RUNNING;
    if (!running && atomic_load(&helper->state) == HELPER_NONE) {
        atomic_store(&helper->state, HELPER_RUNNING);
        running = thread_start(&helper->thread, helper->name, helper_main, helper) == 0;
        if (!running) atomic_store(&helper->state, HELPER_NONE);
    }
    lock_leave(&helper->lock);
    return running;
}

bool helper_wake(helper_t *helper)
{
    atomic_fetch_add_explicit(&helper->word, 1, memory_order_release);
    if (atomic_load(&helper->state) != HELPER_RUNNING && !helper_start(helper)) return false;
    futex_wake(&helper->word, 1);
    return true;
}

const helper_t *helper_here(void)
{
    return here;
}

void helper_stop(helper_t *helper)
{
    lock_enter(&helper->lock);
    bool running = atomic_load(&helper->state) == HELPER_RUNNING;
    atomic_store(&helper->state, HELPER_STOPPING);
    lock_leave(&helper->lock);
    if (!running) return;
    atomic_fetch_add_explicit(&helper->word, 1, memory_order_release);
    futex_wake(&helper->word, 1);
    pthread_join(helper->thread, NULL);
}
