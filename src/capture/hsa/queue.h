// SPDX-License-Identifier: Apache-2.0
// The application's queues, as intercept queues of ROCR: its packets pass through this library on
// the thread that rings the doorbell.
#ifndef KEEL_SRC_CAPTURE_HSA_QUEUE_H_
#define KEEL_SRC_CAPTURE_HSA_QUEUE_H_

#include "capture/hsa/table.h"

// What replaces the runtime's functions.
HSA_FUNCTION(queue_create, HSA_QUEUE_CREATE);
hsa_status_t queue_destroy(hsa_queue_t *queue);
hsa_status_t queue_set_profiler(hsa_queue_t *queue, int on);

// Queues that this thread makes from here on are left alone, or no more.
void queue_leave(bool leave);

// Has all recorded that is in flight: the runtime or the process ends. Queues are not destroyed
// meanwhile.
void queue_drain_all(void);

// Waits in the same way, but gives nothing up: what does not end in time may end later.
void queue_wait_all(void);

// The runtime ends, and its queues with it.
void queue_forget_all(void);

// In the child of a fork: its parent's queues are passed on to the runtime, and not known here.
void queue_child(void);

#endif
