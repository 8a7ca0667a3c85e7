// SPDX-License-Identifier: Apache-2.0
// A thread that runs tasks in order. It belongs to no object, so an object may die on it.
#ifndef SIM_METAL_WORKER_H_
#define SIM_METAL_WORKER_H_

#include <stdbool.h>

typedef struct worker_t worker_t;

typedef struct task_t {
    struct task_t *next;
    void (*run)(struct task_t *task); // may free the task
} task_t;

worker_t *worker_start(void);
// Any thread. The task stays the caller's memory, and is touched no more once it runs.
void worker_post(worker_t *worker, task_t *task);
// Runs what was posted; then the thread ends, and the worker is gone. Does not wait for that.
void worker_close(worker_t *worker);
bool worker_is_current(const worker_t *worker);

#endif
