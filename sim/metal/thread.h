// SPDX-License-Identifier: Apache-2.0
// A threadgroup of a kernel: each of its threads is a fiber. A barrier switches to the next one.
#ifndef SIM_METAL_THREAD_H_
#define SIM_METAL_THREAD_H_

#include "metal/runtime.h"

enum { BUFFERS = 31, LANES = 32, THREADS_MAX = 1024, GROUP_MEMORY = 32768 };

// What a kernel asks for by the name of an attribute; msl.c has the names.
typedef enum position_t {
    IN_GRID,
    IN_GROUP,
    GROUP_IN_GRID,
    THREADS_PER_GROUP,
    THREADS_PER_GRID,
    GROUPS_PER_GRID,
    INDEX_IN_GROUP,
    INDEX_IN_LANES,
    LANES_INDEX,
    LANES_PER_GROUP,
    THREADS_PER_LANES,
    POSITIONS
} position_t;

// All arguments of one thread. metal_stdlib reads it as words.
typedef struct thread_t {
    uint64_t buffers[BUFFERS]; // addresses
    uint64_t groups[BUFFERS];  // addresses of threadgroup memory
    uint32_t at[POSITIONS][3];
} thread_t;

typedef void (*kernel_fn)(const thread_t *thread);

typedef struct grid_t {
    uint32_t groups[3], threads[3]; // of a group
} grid_t;

// Runs a grid, one group after the other, on this thread. False if a barrier was not reached by all
// threads of a group: then the rest was not run.
bool grid_run(kernel_fn kernel, const thread_t *arguments, const grid_t *grid);

// Whether a kernel runs on this thread and an address lies on the stack that it runs on.
bool grid_is_own(const void *at);

// What compiled kernels call.
EXPORT void simMetalGroupBarrier(void);
EXPORT void simMetalLaneBarrier(void);
EXPORT void *simMetalLane(uint32_t lane); // where that thread of the SIMD-group shows a value
EXPORT uint32_t simMetalLaneIndex(void);
EXPORT uint32_t simMetalLaneCount(void);

#endif
