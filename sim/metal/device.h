// SPDX-License-Identifier: Apache-2.0
// MTLDevice.
#ifndef SIM_METAL_DEVICE_H_
#define SIM_METAL_DEVICE_H_

#include "metal/classes.h"
#include "metal/worker.h"

#include <pthread.h>

typedef struct device_t {
    object_t object;
    unsigned index;
    pthread_mutex_t lock;         // of the next
    unsigned queues;              // alive
    worker_t *handlers;           // runs the handlers of command buffers; NULL: there are no queues
    atomic_uint_fast64_t started; // command buffers that the GPU has begun
    atomic_uint_fast64_t deaths;  // of command buffers, by `kill`
} device_t;

typedef struct extent_t {
    unsigned long width, height, depth;
} extent_t;

// A queue begins and ends: its handlers need a thread, which stays no longer than they do.
void device_queue_begins(device_t *device);
void device_queue_ends(device_t *device);

// Count 1 each time. Devices themselves live as long as the process.
EXPORT void *MTLCreateSystemDefaultDevice(void);
void *devices_all(void);

#endif
