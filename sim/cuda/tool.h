// SPDX-License-Identifier: Apache-2.0
// A tool that watches: the library that CUDA_INJECTION64_PATH names is loaded by cuInit, and what
// serves it (sim/cupti) is told of calls, work and memory.
#ifndef SIM_CUDA_TOOL_H_
#define SIM_CUDA_TOOL_H_

#include <stdint.h>

// Times are ns of CLOCK_MONOTONIC.
typedef struct sim_call_t {
    const char *name; // of the exported function
    uint64_t start, end;
    uint32_t correlation; // its number
    int result;           // 0 if the function itself found what is wrong
} sim_call_t;

typedef enum sim_work_kind_t { SIM_KERNEL, SIM_COPY, SIM_SET } sim_work_kind_t;

typedef struct sim_work_t {
    sim_work_kind_t kind;
    const char *name; // of a kernel
    uint64_t start, end;
    uint32_t device, context, stream;
    uint32_t correlation; // the call that enqueued it
    uint32_t graph;       // 0: it comes from none
    uint64_t node;
    uint32_t grid[3], block[3], shared;
    uint64_t bytes;
    int from_host, to_host; // of a copy
} sim_work_t;

typedef struct sim_memory_t {
    int allocated; // else it is freed
    uint32_t device, context, correlation;
    uint64_t address, bytes, time;
} sim_memory_t;

// Each may be called by any thread, also with the library's lock held: it must not call CUDA.
typedef struct sim_tool_t {
    void (*begin)(const sim_call_t *call); // it has no end yet
    void (*call)(const sim_call_t *call);
    void (*work)(const sim_work_t *work);
    void (*memory)(const sim_memory_t *memory);
} sim_tool_t;

// From now on a tool is told. Never undone.
__attribute__((visibility("default"))) void simCudaWatch(const sim_tool_t *tool);

// Inside of the library. The tool; NULL: there is none.
const sim_tool_t *tool_get(void);
// Loads the library that the environment names, once.
void tool_inject(void);

#endif
