// SPDX-License-Identifier: Apache-2.0
#include "capture/hsa/collect.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"

enum { LEAST_NS = 50000, MOST_NS = 1000000, PATIENCE_NS = 1000000000 };

static collect_fn sources[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t woken = PTHREAD_COND_INITIALIZER;
static _Atomic bool asleep; // or about to sleep
static _Atomic bool running;
_Atomic bool collect_asked_;

static void sleep_until_woken(void)
{
    pthread_mutex_lock(&lock);
    // seq_cst, all four: this thread sees what was asked, or collect_ask that it sleeps.
    for (;;) {
        atomic_store(&asleep, true); // each time: the one that wakes it has cleared it
        if (atomic_load(&collect_asked_)) break;
        pthread_cond_wait(&woken, &lock);
    }
    atomic_store(&asleep, false);
    pthread_mutex_unlock(&lock);
}

static void *collect(void *unused)
{
    uint64_t pause = LEAST_NS;
    for (;;) {
        uint64_t ended = 0, left = 0;
        atomic_store(&collect_asked_, false); // before it looks
        for (int i = 0; i < 2; i++) left += sources[i](&ended);
        // It naps a few times before it sleeps, so that launches one by one need not wake it.
        if (!left && pause == MOST_NS) {
            sleep_until_woken();
            pause = LEAST_NS;
            continue;
        }
        pause = ended ? LEAST_NS : pause * 2 < MOST_NS ? pause * 2 : MOST_NS;
        clock_sleep(pause);
    }
    return unused;
}

// The child of a fork has no such thread, and no GPU either: ROCR does not survive a fork.
static void child(void)
{
    atomic_store(&running, false);
    atomic_store(&asleep, false);
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&woken, NULL);
}

bool collect_start(collect_fn dispatches, collect_fn copies)
{
    pthread_t thread;
    if (atomic_load(&running)) return true;
    sources[0] = dispatches;
    sources[1] = copies;
    int error = thread_start(&thread, "keel-trace", collect, NULL);
    if (error) {
        log_say(KEEL_LOG_WARNING, "GPUs are not traced: no thread: %s", strerror(error));
        return false;
    }
    pthread_detach(thread);
    pthread_atfork(NULL, NULL, child);
    atomic_store(&running, true);
    return true;
}

void collect_ask(void)
{
    atomic_store(&collect_asked_, true);
    // Of those that ask at once, one wakes it.
    if (!atomic_load(&asleep) || !atomic_exchange(&asleep, false)) return;
    pthread_mutex_lock(&lock);
    pthread_cond_signal(&woken);
    pthread_mutex_unlock(&lock);
}

bool collect_wait(uint64_t (*left)(const void *of), const void *of)
{
    uint64_t least = UINT64_MAX, since = keel_now_ns(), now;
    while ((now = left(of))) {
        if (!atomic_load(&running)) return false;
        if (now < least) since = keel_now_ns();
        if (now < least) least = now;
        if (keel_now_ns() - since > PATIENCE_NS) return false;
        collect_wake();
        clock_sleep(LEAST_NS);
    }
    return true;
}
