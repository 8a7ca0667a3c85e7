// SPDX-License-Identifier: Apache-2.0
// A libamdhip64 for NVIDIA's GPUs: each function of HIP's calls libcuda. So Keel's HIP driver runs
// on hardware that works on its own time, where there is no AMD card. It plays HIP 6, or what
// HIP_ON_CUDA_RELEASE says (5, 6 or 7), and has what that driver uses, and `keel bench` beside it.
// Its target is "nvptx:sm_90" or the like, and what it loads are images for such.
//
//   device.c  releases, errors, devices, the thread's device
//   stream.c  streams, events, calls of the host
//   memory.c  allocations, copies, fills
//   module.c  code and launches
//   graph.c   graphs
#ifndef HIP_ON_CUDA_HIP_H_
#define HIP_ON_CUDA_HIP_H_

#include "cuda.h"

enum {
    hipSuccess = 0,
    hipErrorInvalidValue = 1,
    hipErrorOutOfMemory = 2,
    hipErrorNoBinaryForGpu = 209,
    hipErrorNotReady = 600,
    hipErrorLaunchFailure = 719,
    hipErrorNotSupported = 801,
    hipErrorUnknown = 999,
};

// A function of the library's: declared and begun.
#define HIP(name, ...)                                                                             \
    __attribute__((visibility("default"))) int name(__VA_ARGS__);                                  \
    int name(__VA_ARGS__)

// The release that it plays: 5, 6 or 7; 0 if HIP_ON_CUDA_RELEASE names another.
int hip_major(void);

// HIP's error for one of CUDA's, which the thread remembers for hipGetLastError.
int done(int error);

// Makes the primary context of the thread's device current. CUDA's error.
int here(void);

// Returns what a call of CUDA's does in the context of the thread's device.
#define FORWARD(call)                                                                              \
    do {                                                                                           \
        int error_ = here();                                                                       \
        return done(error_ ? error_ : (call));                                                     \
    } while (0)

// The same for calls whose handles say which context is meant, as most on the way of a submission.
#define FORWARD_PLAINLY(call) return done(call)

// The primary context of a device, retained the first time; NULL and an error of CUDA's if that
// fails.
int context_of(int device, void **context);

// The current context.
void *context_now(void);

static inline uint64_t address_of(const void *pointer)
{
    return (uintptr_t)pointer;
}

// Arguments of a launch as one block, in CUDA's form.
typedef struct extra_t {
    size_t size;
    void *list[5];
} extra_t;

// The list for CUDA; NULL where HIP's is.
void **extra_make(extra_t *extra, void **hip);

#endif
