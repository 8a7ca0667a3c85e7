// SPDX-License-Identifier: Apache-2.0
// MTLCommandQueue: the places of command buffers, and the thread that is the GPU for them.
#ifndef SIM_METAL_QUEUE_H_
#define SIM_METAL_QUEUE_H_

#include "metal/classes.h"
#include "metal/worker.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct command_t command_t;

enum { QUEUE_SETS = 32 }; // residency sets of a queue

typedef struct queue_t {
    object_t object;
    struct device_t *device; // retained
    worker_t *gpu;
    pthread_mutex_t lock;
    pthread_cond_t freed;                 // a command buffer is outstanding no more
    unsigned outstanding, most;           // made and not finished, committed or not
    unsigned open;                        // of these, not committed
    struct residency_t *sets[QUEUE_SETS]; // each retained
    unsigned set_count;
    atomic_bool entered;      // by a thread that opens an encoder, or commits
    command_t *first, **last; // enqueued, and not given to the GPU; each retained
} queue_t;

queue_t *queue_new(struct device_t *device, unsigned most);
// With `crowd`: the thread opens an encoder or commits, and no other may at that time.
void queue_alone(queue_t *queue, const void *self, sel_t cmd);
// Reserves the next place. Once for each command buffer.
void queue_enqueue(queue_t *queue, command_t *command);
// Gives the GPU those at the front that are committed.
void queue_pump(queue_t *queue);
// A command buffer is committed.
void queue_takes(queue_t *queue);
// One has finished, or died without being committed.
void queue_free_one(queue_t *queue, bool committed);

#endif
