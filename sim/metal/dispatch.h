// SPDX-License-Identifier: Apache-2.0
// Dispatch queues, as far as listeners of events need them: serial ones.
#ifndef SIM_METAL_DISPATCH_H_
#define SIM_METAL_DISPATCH_H_

#include "metal/classes.h"
#include "metal/worker.h"

// Runs a task after all that were posted before. The queue is alive.
void dispatch_post(void *queue, task_t *task);

// `attributes` is NULL: a serial queue. Count 1.
EXPORT void *dispatch_queue_create(const char *label, void *attributes);
EXPORT void dispatch_release(void *object);

#endif
