// SPDX-License-Identifier: Apache-2.0
// Dispatch queues, as far as listeners of events need them: serial ones. And data, of which
// libraries are made.
#ifndef SIM_METAL_DISPATCH_H_
#define SIM_METAL_DISPATCH_H_

#include "metal/classes.h"
#include "metal/worker.h"

// Runs a task after all that were posted before; with `late`, some time later, in any order. The
// queue is alive.
void dispatch_post(void *queue, task_t *task);

typedef struct data_t {
    object_t object;
    char *bytes; // owned; a zero follows them
    size_t size;
} data_t;

// A copy of the bytes: `destructor` is NULL. Count 1.
EXPORT void *dispatch_data_create(const void *bytes, size_t size, void *queue, void *destructor);

// `attributes` is NULL: a serial queue. Count 1.
EXPORT void *dispatch_queue_create(const char *label, void *attributes);
EXPORT void dispatch_release(void *object);

#endif
