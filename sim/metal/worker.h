// SPDX-License-Identifier: Apache-2.0
// A thread that runs tasks in the order in which they are due. It belongs to no object, so an
// object may die on it.
#ifndef SIM_METAL_WORKER_H_
#define SIM_METAL_WORKER_H_

#include <stdbool.h>
#include <stdint.h>

typedef struct worker_t worker_t;

typedef struct task_t {
    struct task_t *next;
    uint64_t due;                     // by clock_ns; 0: at once
    void (*run)(struct task_t *task); // may free the task
} task_t;

worker_t *worker_start(void);
// Any thread. The task stays the caller's memory, and is touched no more once it runs.
void worker_post(worker_t *worker, task_t *task);
// The same, later by what `late` allows and the seed decides: others overtake it.
void worker_post_late(worker_t *worker, task_t *task);
// Runs what was posted; then the thread ends, and the worker is gone. Does not wait for that.
void worker_close(worker_t *worker);
bool worker_is_current(const worker_t *worker);

#endif
