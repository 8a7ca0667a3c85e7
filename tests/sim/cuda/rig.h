// SPDX-License-Identifier: Apache-2.0
// What the tests of the software CUDA driver are written with. Each test runs in a process of its
// own, under settings of its own.
#ifndef TESTS_SIM_CUDA_RIG_H_
#define TESTS_SIM_CUDA_RIG_H_

#include "sim/cuda/api.h"

#include <stdbool.h>
#include <stdint.h>

typedef void (*rig_test_fn)(void);

// Runs a test with KEEL_SIM_CUDA set so; a failure is told of and counted.
void rig_run(const char *name, const char *settings, rig_test_fn test);
// The exit status for main.
int rig_result(void);

// Runs a test in a process of its own that must die of a signal.
void rig_run_dying(const char *name, const char *settings, rig_test_fn test, int signal);

#define RUN(settings, test) rig_run(#test, (settings), (test))

void rig_check(bool good, const char *what, const char *file, int line);
void rig_result_check(CUresult got, CUresult wanted, const char *what, const char *file, int line);

#define CHECK(condition)    rig_check((condition), #condition, __FILE__, __LINE__)
#define CU(call)            rig_result_check((call), CUDA_SUCCESS, #call, __FILE__, __LINE__)
#define FAILS(wanted, call) rig_result_check((call), (wanted), #call, __FILE__, __LINE__)

// Whether the library has written a line with this in it to standard error.
bool rig_said(const char *text);

// Initialises CUDA and makes the primary context of device 0 current.
CUcontext rig_context(void);
// The test's kernels, and one of them.
CUmodule rig_module(void);
CUfunction rig_kernel(const char *name);

// Where the shared object of kernels is; set by main.
extern const char *rig_kernels;

// Launches a kernel with up to three parameters of 8 bytes.
void rig_launch(const char *name, unsigned blocks, CUstream stream, const uint64_t params[3]);
// Runs a kernel on a stream of its own: by then whatever else could run has run.
void rig_pass(void);

// A gate at which a kernel (`wait`) stands until it is opened.
typedef struct gate_t {
    CUdeviceptr word; // pinned
} gate_t;
gate_t rig_gate(void);
void rig_gate_close(gate_t gate, CUstream stream); // enqueues the kernel
void rig_gate_open(gate_t gate);

#endif
