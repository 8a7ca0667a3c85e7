// SPDX-License-Identifier: Apache-2.0
// Objects are made and released on hot paths, so each thread counts for itself, without atomic
// read-modify-write; asking adds up all threads. What a thread counted stays when it ends.
#include "base/live.h"

#include <pthread.h>
#include <stdatomic.h>

#include <keel/base.h>

#include "base/list.h"
#include "base/lock.h"
#include "base/thread.h"

typedef struct counts_t {
    _Atomic int64_t of[LIVE_TYPES]; // written by their thread alone
    struct counts_t *next, *previous;
    bool listed;
} counts_t;

static THREAD_LOCAL counts_t mine;

static struct {
    lock_t lock;
    counts_t *threads;
    int64_t gone[LIVE_TYPES]; // of threads that have ended
    pthread_key_t key;        // its destructor is how we learn that a thread ends
    pthread_once_t once;
    bool has_key;
} all = {.once = PTHREAD_ONCE_INIT};

static void counts_fold(void *argument)
{
    counts_t *counts = argument;
    lock_enter(&all.lock);
    for (int i = 0; i < LIVE_TYPES; i++) {
        all.gone[i] += atomic_load_explicit(&counts->of[i], memory_order_relaxed);
        atomic_store_explicit(&counts->of[i], 0, memory_order_relaxed);
    }
    LIST_REMOVE(all.threads, counts);
    counts->listed = false;
    lock_leave(&all.lock);
}

static void all_lock(void)
{
    lock_enter(&all.lock);
}

static void all_unlock(void)
{
    lock_leave(&all.lock);
}

static void all_init(void)
{
    pthread_atfork(all_lock, all_unlock, all_unlock); // the child finds it free, and the list whole
    all.has_key = pthread_key_create(&all.key, counts_fold) == 0;
}

// The thread's first: from now on it is added up with the others. False if we would not learn of
// its end.
static bool counts_list(counts_t *counts)
{
    pthread_once(&all.once, all_init);
    if (!all.has_key || pthread_setspecific(all.key, counts) != 0) return false;
    lock_enter(&all.lock);
    LIST_ADD(all.threads, counts);
    counts->listed = true;
    lock_leave(&all.lock);
    return true;
}

static void counts_add(counts_t *counts, live_type_t type, int change)
{
    // relaxed: a statistic; a test that compares it with zero has joined the threads that count.
    int64_t count = atomic_load_explicit(&counts->of[type], memory_order_relaxed);
    atomic_store_explicit(&counts->of[type], count + change, memory_order_relaxed);
}

__attribute__((noinline)) static void live_add_first(counts_t *counts, live_type_t type, int change)
{
    if (counts_list(counts)) {
        counts_add(counts, type, change);
        return;
    }
    lock_enter(&all.lock);
    all.gone[type] += change;
    lock_leave(&all.lock);
}

KEEL_HOT void live_add(live_type_t type, int change)
{
    counts_t *counts = &mine; // finding it is most of the work
    if (__builtin_expect(counts->listed, 1))
        counts_add(counts, type, change);
    else
        live_add_first(counts, type, change);
}

static int64_t live_count(live_type_t type)
{
    int64_t count = all.gone[type];
    for (counts_t *c = all.threads; c; c = c->next)
        count += atomic_load_explicit(&c->of[type], memory_order_relaxed);
    return count;
}

void keel_live_objects(keel_live_t *out)
{
    lock_enter(&all.lock);
    *out = (keel_live_t){
        .devices = live_count(LIVE_DEVICE),
        .queues = live_count(LIVE_QUEUE),
        .semaphores = live_count(LIVE_SEMAPHORE),
        .buffers = live_count(LIVE_BUFFER),
        .pools = live_count(LIVE_POOL),
        .executables = live_count(LIVE_EXECUTABLE),
        .recordings = live_count(LIVE_RECORDING),
        .files = live_count(LIVE_FILE),
        .completions = live_count(LIVE_COMPLETION),
        .submissions = live_count(LIVE_SUBMISSION),
        .statuses = live_count(LIVE_STATUS),
    };
    lock_leave(&all.lock);
}
