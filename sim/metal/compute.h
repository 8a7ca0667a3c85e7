// SPDX-License-Identifier: Apache-2.0
// MTLComputeCommandEncoder, and what indirect commands have of it.
#ifndef SIM_METAL_COMPUTE_H_
#define SIM_METAL_COMPUTE_H_

#include "metal/buffer.h"
#include "metal/command.h"
#include "metal/device.h"
#include "metal/library.h"

// What is bound at an index: a buffer with an offset, or bytes.
typedef struct bound_t {
    buffer_t *buffer;
    unsigned long offset;
    void *bytes; // of the command buffer's
} bound_t;

// What a dispatch takes.
typedef struct bindings_t {
    pipeline_t *pipeline;
    bound_t bound[BUFFERS];
    unsigned long group_lengths[BUFFERS];
} bindings_t;

typedef struct dispatch_t {
    work_t work;
    pipeline_t *pipeline; // one of what it uses
    thread_t arguments;
    grid_t grid;
    const buffer_t *counts; // one of what it uses: has the groups of the grid; NULL: `grid` has
    unsigned long counts_at;
    unsigned long group_lengths[BUFFERS];
    unsigned encoder; // its number
    bool serial;
} dispatch_t;

// Count 1.
void *compute_new(command_t *command);

// Ends the process unless there is a pipeline, what its kernel takes is bound, and groups may have
// so many threads; and unless there are groups.
void bindings_check(const void *self, sel_t cmd, const bindings_t *bindings, extent_t threads);
void groups_check(const void *self, sel_t cmd, extent_t groups);
void group_length_check(const void *self, sel_t cmd, unsigned long length);
void dispatch_fill(dispatch_t *dispatch, const bindings_t *bindings, extent_t threads);
void dispatch_groups(dispatch_t *dispatch, extent_t groups);
unsigned dispatch_perform(dispatch_t *dispatch); // as a perform_fn

#endif
