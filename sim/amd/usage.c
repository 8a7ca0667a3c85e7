// SPDX-License-Identifier: Apache-2.0
#include "amd/usage.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "amd/base.h"

// A thread, from its begin to its end.
typedef struct worker {
    void *(*run)(void *);
    void *argument;
    clockid_t clock;
    struct worker *next, **link; // among those that run
} worker_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static worker_t *workers;
static uint64_t ended_ns; // of threads that are over
static atomic_ullong call_ns, call_count;

static uint64_t spent_ns(clockid_t clock)
{
    struct timespec time = {0};
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void worker_add(worker_t *worker)
{
    pthread_mutex_lock(&lock);
    worker->next = workers;
    worker->link = &workers;
    if (workers) workers->link = &worker->next;
    workers = worker;
    pthread_mutex_unlock(&lock);
}

static void worker_remove(worker_t *worker)
{
    pthread_mutex_lock(&lock);
    *worker->link = worker->next;
    if (worker->next) worker->next->link = worker->link;
    ended_ns += spent_ns(CLOCK_THREAD_CPUTIME_ID);
    pthread_mutex_unlock(&lock);
}

static void *worker_main(void *argument)
{
    worker_t *worker = argument;
    pthread_getcpuclockid(pthread_self(), &worker->clock);
    worker_add(worker);
    void *result = worker->run(worker->argument);
    worker_remove(worker);
    free(worker);
    return result;
}

int usage_thread(pthread_t *thread, void *(*run)(void *), void *argument)
{
    worker_t *worker = malloc(sizeof *worker);
    if (!worker) return ENOMEM;
    *worker = (worker_t){.run = run, .argument = argument};
    int error = pthread_create(thread, NULL, worker_main, worker);
    if (error) free(worker);
    return error;
}

uint64_t usage_begin(void)
{
    return log_enabled(LOG_TIME) ? spent_ns(CLOCK_THREAD_CPUTIME_ID) : 0;
}

void usage_end(uint64_t begin)
{
    if (!begin) return;
    atomic_fetch_add(&call_ns, spent_ns(CLOCK_THREAD_CPUTIME_ID) - begin);
    atomic_fetch_add(&call_count, 1);
}

void usage_tell(void)
{
    if (!log_enabled(LOG_TIME)) return;
    pthread_mutex_lock(&lock);
    uint64_t threads = ended_ns;
    for (const worker_t *worker = workers; worker; worker = worker->next) {
        threads += spent_ns(worker->clock);
    }
    pthread_mutex_unlock(&lock);
    uint64_t calls = atomic_load(&call_ns);
    log_line(LOG_TIME, "%.6f s of processor time: %.6f in threads, %.6f in %llu calls",
             (double)(threads + calls) * 1e-9, (double)threads * 1e-9, (double)calls * 1e-9,
             atomic_load(&call_count));
}

void usage_forget(void)
{
    pthread_mutex_init(&lock, NULL);
    workers = NULL;
    ended_ns = 0;
    atomic_store(&call_ns, 0);
    atomic_store(&call_count, 0);
}
