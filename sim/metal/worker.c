// SPDX-License-Identifier: Apache-2.0
#include "metal/worker.h"

#include "metal/base.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

struct worker_t {
    pthread_mutex_t lock;
    pthread_cond_t news;
    task_t *first; // by when they are due
    bool closed;
};

static PER_THREAD const worker_t *current;

// Until a task is due, or the worker is closed and has none left. The lock is held.
static void wait_for_task(worker_t *worker)
{
    while (worker->first || !worker->closed) {
        uint64_t due = worker->first ? worker->first->due : UINT64_MAX;
        struct timespec time = {(time_t)(due / 1000000000u), (long)(due % 1000000000u)};
        if (due <= clock_ns()) return;
        if (due == UINT64_MAX)
            pthread_cond_wait(&worker->news, &worker->lock);
        else
            pthread_cond_timedwait(&worker->news, &worker->lock, &time);
    }
}

// The next task; NULL when the worker is closed and has none left.
static task_t *take(worker_t *worker)
{
    pthread_mutex_lock(&worker->lock);
    wait_for_task(worker);
    task_t *task = worker->first;
    if (task) worker->first = task->next;
    pthread_mutex_unlock(&worker->lock);
    return task;
}

static void *work(void *pointer)
{
    worker_t *worker = pointer;
    current = worker;
    for (task_t *task; (task = take(worker)) != NULL;) task->run(task);
    pthread_cond_destroy(&worker->news);
    pthread_mutex_destroy(&worker->lock);
    free(worker);
    return NULL;
}

worker_t *worker_start(void)
{
    worker_t *worker = make(sizeof *worker);
    pthread_mutex_init(&worker->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&worker->news, &monotonic);
    pthread_condattr_destroy(&monotonic);
    // Signals are for the program's own threads, but for one that a handler here causes.
    sigset_t others, before;
    sigfillset(&others);
    sigdelset(&others, SIGABRT);
    pthread_sigmask(SIG_SETMASK, &others, &before);
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, worker)) die("no thread can be started");
    pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return worker;
}

// Behind those that are due at the same time or earlier.
static void post(worker_t *worker, task_t *task, uint64_t due)
{
    task->due = due;
    pthread_mutex_lock(&worker->lock);
    task_t **link = &worker->first;
    while (*link && (*link)->due <= due) link = &(*link)->next;
    task->next = *link;
    *link = task;
    pthread_cond_signal(&worker->news);
    pthread_mutex_unlock(&worker->lock);
}

void worker_post(worker_t *worker, task_t *task)
{
    post(worker, task, 0);
}

void worker_post_late(worker_t *worker, task_t *task)
{
    uint64_t most = settings()->late * 1000;
    post(worker, task, most ? clock_ns() + draw() % (most + 1) : 0);
}

void worker_close(worker_t *worker)
{
    pthread_mutex_lock(&worker->lock);
    worker->closed = true;
    pthread_cond_signal(&worker->news);
    pthread_mutex_unlock(&worker->lock);
}

bool worker_is_current(const worker_t *worker)
{
    return current == worker;
}
