// SPDX-License-Identifier: Apache-2.0
#include "capture/hsa/watch.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/memory.h"
#include "capture/hsa/collect.h"

struct watch_t {
    struct watch_t *next;
    work_t work;
    hsa_signal_t signal; // borrowed
    int64_t done;        // the signal's value at which this and what was before it has ended
    // Other work has the same signal, which has the times of what ended last.
    bool is_shared;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static watch_t *pending;       // under `lock`
static _Atomic uint64_t count; // of these

static hsa_status_t time_get(const watch_t *watch, hsa_time_t *time)
{
    if (watch->work.op == TRACE_OP_COPY)
        return hsa.profiling_get_async_copy_time(watch->signal, time);
    return hsa.profiling_get_dispatch_time(watch->work.agent, watch->signal, time);
}

// Records work: with its times if it has ended and its signal has them.
static void watch_end(const watch_t *watch, bool over)
{
    hsa_time_t time;
    if (over && !watch->is_shared && time_get(watch, &time) == 0)
        work_end(&watch->work, time);
    else
        work_note(&watch->work);
}

static void watch_remove(watch_t **at)
{
    watch_t *watch = *at;
    *at = watch->next;
    mem_free(watch);
    atomic_fetch_sub_explicit(&count, 1, memory_order_release);
}

static bool watch_is_over(const watch_t *watch)
{
    // scacquire: the times are written before.
    return hsa.signal_load_scacquire(watch->signal) <= watch->done;
}

uint64_t watch_collect(uint64_t *ended)
{
    uint64_t left = 0;
    pthread_mutex_lock(&lock);
    for (watch_t **at = &pending; *at;) {
        if (!watch_is_over(*at)) {
            left++;
            at = &(*at)->next;
            continue;
        }
        watch_end(*at, true);
        watch_remove(at);
        ++*ended;
    }
    pthread_mutex_unlock(&lock);
    return left;
}

watch_t *watch_add(const work_t *work, hsa_signal_t signal)
{
    watch_t *watch = signal ? mem_zalloc(sizeof *watch) : NULL;
    if (!watch) return NULL;
    watch->work = *work;
    watch->signal = signal;
    pthread_mutex_lock(&lock);
    watch->done = hsa.signal_load_scacquire(signal) - 1;
    for (watch_t *other = pending; other; other = other->next) {
        if (other->signal != signal) continue;
        // The signal is counted down once more than for the last of those before.
        if (!watch->is_shared || other->done <= watch->done) watch->done = other->done - 1;
        watch->is_shared = other->is_shared = true;
    }
    watch->next = pending;
    pending = watch;
    atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
    pthread_mutex_unlock(&lock);
    collect_wake();
    return watch;
}

void watch_cancel(watch_t *watch)
{
    pthread_mutex_lock(&lock);
    watch_t **at = &pending;
    while (*at && *at != watch) at = &(*at)->next;
    if (*at) watch_remove(at);
    pthread_mutex_unlock(&lock);
}

static uint64_t watch_left(const void *unused)
{
    // acquire: what is not left any more is recorded.
    return atomic_load_explicit(&count, memory_order_acquire);
}

bool watch_wait(void)
{
    return collect_wait(watch_left, NULL);
}

void watch_drain(void)
{
    if (watch_wait()) return;
    pthread_mutex_lock(&lock);
    while (pending) {
        watch_end(pending, false);
        watch_remove(&pending);
    }
    pthread_mutex_unlock(&lock);
}

void watch_child(void)
{
    pthread_mutex_init(&lock, NULL);
    pending = NULL;
    atomic_store(&count, 0);
}

static bool is_watching(void)
{
    // relaxed: a thread that may change a signal knows of what was submitted with it.
    return __builtin_expect(atomic_load_explicit(&count, memory_order_relaxed) != 0, 0);
}

// The application is about to change or to destroy a signal.
__attribute__((noinline)) static void signal_settle(hsa_signal_t signal)
{
    pthread_mutex_lock(&lock);
    for (watch_t **at = &pending; *at;) {
        if ((*at)->signal != signal) {
            at = &(*at)->next;
            continue;
        }
        watch_end(*at, watch_is_over(*at));
        watch_remove(at);
    }
    pthread_mutex_unlock(&lock);
}

// What replaces a function that sets a signal. Doorbells are rung by it, so it is short.
#define STORE(name)                                                                                \
    __attribute__((noinline)) static void name##_late(hsa_signal_t signal, int64_t value)          \
    {                                                                                              \
        signal_settle(signal);                                                                     \
        hsa.signal_##name(signal, value);                                                          \
    }                                                                                              \
    static void name(hsa_signal_t signal, int64_t value)                                           \
    {                                                                                              \
        if (is_watching())                                                                         \
            name##_late(signal, value);                                                            \
        else                                                                                       \
            hsa.signal_##name(signal, value);                                                      \
    }
STORE(store_relaxed)
STORE(store_screlease)
STORE(silent_store_relaxed)
STORE(silent_store_screlease)

static hsa_status_t destroy(hsa_signal_t signal)
{
    if (is_watching()) signal_settle(signal);
    return hsa.signal_destroy(signal);
}

void watch_replace(hsa_functions_t *ours)
{
    ours->signal_store_relaxed = store_relaxed;
    ours->signal_store_screlease = store_screlease;
    ours->signal_silent_store_relaxed = silent_store_relaxed;
    ours->signal_silent_store_screlease = silent_store_screlease;
    ours->signal_destroy = destroy;
}
