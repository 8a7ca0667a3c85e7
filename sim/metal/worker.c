// SPDX-License-Identifier: Apache-2.0
#include "metal/worker.h"

#include "metal/base.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

struct worker_t {
    pthread_mutex_t lock;
    pthread_cond_t news;
    task_t *first, **last;
    bool closed;
};

static PER_THREAD const worker_t *current;

// The next task; NULL when the worker is closed and has none left.
static task_t *take(worker_t *worker)
{
    pthread_mutex_lock(&worker->lock);
    while (!worker->first && !worker->closed) pthread_cond_wait(&worker->news, &worker->lock);
    task_t *task = worker->first;
    if (task) worker->first = task->next;
    if (!worker->first) worker->last = &worker->first;
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
    pthread_cond_init(&worker->news, NULL);
    worker->last = &worker->first;
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

void worker_post(worker_t *worker, task_t *task)
{
    task->next = NULL;
    pthread_mutex_lock(&worker->lock);
    *worker->last = task;
    worker->last = &task->next;
    pthread_cond_signal(&worker->news);
    pthread_mutex_unlock(&worker->lock);
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
