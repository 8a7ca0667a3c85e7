// SPDX-License-Identifier: Apache-2.0
// MTLCommandBuffer: a list of works, what they use, and what is called when they have ended.
#ifndef SIM_METAL_COMMAND_H_
#define SIM_METAL_COMMAND_H_

#include "metal/block.h"
#include "metal/queue.h"

// MTLCommandBufferStatus
typedef enum state_t { MADE, ENQUEUED, COMMITTED, SCHEDULED, COMPLETED, FAILED } state_t;

// MTLCommandBufferError
enum {
    ERROR_NONE = 0,
    ERROR_VICTIM = 1, // an internal one, by its text
    ERROR_TIMEOUT = 2,
    ERROR_INVALID_RESOURCE = 9,
    ERROR_DEVICE_REMOVED = 11
};

typedef struct work_t work_t;

// Runs on the GPU's thread, and may wait. Answers ERROR_NONE, or what the command buffer dies of.
typedef unsigned (*perform_fn)(work_t *work);

// What the GPU does at one point. Others begin with it.
struct work_t {
    work_t *next;
    perform_fn perform;
    object_t **uses; // owned; each retained, or held if the command buffer retains nothing
    unsigned use_count;
    bool ordered; // what comes before it is done before, and what comes after it after
};

// Bytes that a work needs.
typedef struct blob_t {
    struct blob_t *next;
    _Alignas(16) char bytes[];
} blob_t;

typedef struct handler_t {
    struct handler_t *next;
    block_t *block; // owned
} handler_t;

struct command_t {
    object_t object;
    task_t task;     // on the queue's GPU, then on the device's handlers
    command_t *next; // in the queue
    queue_t *queue;  // retained
    bool retains;    // what its works use
    unsigned number; // of hazard.h; 0: none
    void *encoder;   // the open one, borrowed; NULL: none
    work_t *works, **last_work;
    blob_t *blobs;
    struct {
        object_t **objects; // owned; each retained
        unsigned count;
    } resident[QUEUE_SETS]; // what the queue's sets had when it was committed
    unsigned resident_count;
    handler_t *scheduled, **last_scheduled, *completed, **last_completed;
    pthread_mutex_t lock; // of what is below
    pthread_cond_t changed;
    state_t state;
    bool over;   // handlers have returned
    void *error; // retained
    uint64_t start_ns, end_ns;
};

// Count 1. It counts as outstanding already.
command_t *command_new(queue_t *queue, bool retains);
bool command_is_committed(command_t *command);
// A work of `size` bytes at the end of the list, that uses these objects.
void *command_add(command_t *command, size_t size, perform_fn perform, void *const *uses,
                  unsigned use_count);
// A copy of bytes, zero if `bytes` is NULL, aligned to 16, that lives as long as the works.
void *command_keep(command_t *command, const void *bytes, size_t size);

#endif
