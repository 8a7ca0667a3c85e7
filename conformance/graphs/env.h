// SPDX-License-Identifier: Apache-2.0
// Devices with what graphs need of them, opened once for many graphs.
#ifndef GRAPHS_ENV_H_
#define GRAPHS_ENV_H_

#include "graphs/generate.h"
#include "graphs/graph.h"

#include <keel/keel.h>
#include <pthread.h>

typedef struct env_device_t {
    keel_device_t *device;
    keel_queue_t *queues[MAX_QUEUES]; // the first is the device's own
    keel_pool_t *pools[POOLS];
    keel_executable_t *executable;
    keel_executable_t *host_executable; // NULL: the device runs no kernel that can fail
    keel_entry_t entries[OP_KINDS];     // of operations that are kernels
    keel_buffer_t *stage;               // between host and memory that it does not see (stage.h);
    keel_queue_t *stage_queue;          // NULL: it sees all
    pthread_mutex_t stage_mutex;        // one at a time
} env_device_t;

typedef struct env_t {
    env_device_t devices[MAX_DEVICES];
    size_t count;
} env_t;

// On failure nothing stays open.
keel_status_t env_open(env_t *env, const char *const *uris, size_t count) KEEL_MUST_USE;
void env_close(env_t *env);
// Makes those of a device's queues that are NULL.
keel_status_t env_queues(const env_device_t *device, keel_queue_t **queues) KEEL_MUST_USE;
void env_traits(const env_t *env, device_traits_t *traits);

#endif
