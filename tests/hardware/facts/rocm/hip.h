// SPDX-License-Identifier: Apache-2.0
// What facts about HIP share.
#ifndef TESTS_HARDWARE_FACTS_ROCM_HIP_H_
#define TESTS_HARDWARE_FACTS_ROCM_HIP_H_

#include "tests/hardware/facts/facts.h"

#define SIM "seen with HIP 5.2.3 on sim/amd, November 2026; on no card yet"

#define SIM6 "seen with HIP 6.4.3 on sim/amd, November 2026; on no card yet"

// The part of HIP that facts use, declared here. Handles are pointers.
typedef void (*hip_callback_fn)(void *stream, int status, void *user);

typedef struct hip_kernel_node_t {
    uint32_t block[3];
    void **extra;
    void *function;
    uint32_t grid[3];
    void **parameters;
    uint32_t shared;
} hip_kernel_node_t;

typedef struct hip_fill_node_t {
    void *target;
    uint32_t word; // bytes of what is repeated
    size_t height, pitch;
    uint32_t value;
    size_t count;
} hip_fill_node_t;

enum {
    HIP_INVALID_VALUE = 1,
    HIP_OUT_OF_MEMORY = 2,
    HIP_SHARED_OBJECT_INIT_FAILED = 303,
    HIP_NOT_FOUND = 500,
    HIP_NOT_READY = 600,
    HIP_NOT_SUPPORTED = 801,
    HIP_NON_BLOCKING = 1,
    HIP_NO_TIMES = 2,
    HIP_PORTABLE = 1,     // memory of the host, for all GPUs
    HIP_DEFAULT_KIND = 4, // of a copy
    HIP_POOLS_SUPPORTED = 88,
    HIP_MOVES_PAGES = 9, // concurrent managed access
    HIP_HANDLES_SUPPORTED = 89,
    HIP_CLOCK_RATE = 10017,
    HIP_TIMELINE_FD = 9, // a kind of semaphore
};

#define HIP_FUNCTIONS(F)                                                                           \
    F(hipInit, (unsigned))                                                                         \
    F(hipRuntimeGetVersion, (int *))                                                               \
    F(hipGetDeviceCount, (int *))                                                                  \
    F(hipSetDevice, (int))                                                                         \
    F(hipDeviceGetAttribute, (int *, int, int))                                                    \
    F(hipDeviceSynchronize, (void))                                                                \
    F(hipModuleLoad, (void **, const char *))                                                      \
    F(hipModuleGetFunction, (void **, void *, const char *))                                       \
    F(hipModuleLaunchKernel, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,  \
                              unsigned, void *, void **, void **))                                 \
    F(hipStreamCreateWithFlags, (void **, unsigned))                                               \
    F(hipStreamCreateWithPriority, (void **, unsigned, int))                                       \
    F(hipDeviceGetStreamPriorityRange, (int *, int *))                                             \
    F(hipStreamDestroy, (void *))                                                                  \
    F(hipStreamQuery, (void *))                                                                    \
    F(hipStreamSynchronize, (void *))                                                              \
    F(hipStreamWaitEvent, (void *, void *, unsigned))                                              \
    F(hipStreamAddCallback, (void *, hip_callback_fn, void *, unsigned))                           \
    F(hipStreamBeginCapture, (void *, int))                                                        \
    F(hipStreamEndCapture, (void *, void **))                                                      \
    F(hipEventCreateWithFlags, (void **, unsigned))                                                \
    F(hipEventRecord, (void *, void *))                                                            \
    F(hipEventQuery, (void *))                                                                     \
    F(hipEventSynchronize, (void *))                                                               \
    F(hipGetLastError, (void))                                                                     \
    F(hipMalloc, (void **, size_t))                                                                \
    F(hipFree, (void *))                                                                           \
    F(hipHostMalloc, (void **, size_t, unsigned))                                                  \
    F(hipHostRegister, (void *, size_t, unsigned))                                                 \
    F(hipHostUnregister, (void *))                                                                 \
    F(hipHostGetDevicePointer, (void **, void *, unsigned))                                        \
    F(hipMemcpyAsync, (void *, const void *, size_t, int, void *))                                 \
    F(hipMemset, (void *, int, size_t))                                                            \
    F(hipMemsetAsync, (void *, int, size_t, void *))                                               \
    F(hipImportExternalSemaphore, (void **, const void *))                                         \
    F(hipMallocAsync, (void **, size_t, void *))                                                   \
    F(hipFreeAsync, (void *, void *))                                                              \
    F(hipDeviceGetDefaultMemPool, (void **, int))                                                  \
    F(hipMemPoolTrimTo, (void *, size_t))                                                          \
    F(hipGraphCreate, (void **, unsigned))                                                         \
    F(hipGraphGetNodes, (void *, void **, size_t *))                                               \
    F(hipGraphAddKernelNode, (void **, void *, void *const *, size_t, const hip_kernel_node_t *))  \
    F(hipGraphAddMemcpyNode1D,                                                                     \
      (void **, void *, void *const *, size_t, void *, const void *, size_t, int))                 \
    F(hipGraphAddMemsetNode, (void **, void *, void *const *, size_t, const hip_fill_node_t *))    \
    F(hipGraphInstantiate, (void **, void *, void **, char *, size_t))                             \
    F(hipGraphLaunch, (void *, void *))                                                            \
    F(hipGraphExecKernelNodeSetParams, (void *, void *, const hip_kernel_node_t *))

typedef struct hip_t {
#define MEMBER(name, parameters) int(*name) parameters;
    HIP_FUNCTIONS(MEMBER)
#undef MEMBER
} hip_t;
extern hip_t hip;

#define HIP(call)                                                                                  \
    do {                                                                                           \
        int code_ = (call);                                                                        \
        if (code_) fact_broken(__LINE__, "%s returned %d", #call, code_);                          \
    } while (0)
#define RETURNS(wanted, call)                                                                      \
    do {                                                                                           \
        int code_ = (call);                                                                        \
        if (code_ != (wanted)) fact_untrue(__LINE__, "%s returned %d", #call, code_);              \
    } while (0)

// Of the process that tries a fact. A GPU is there, and the kernels are loaded; else the fact ends.
void hip_begin(void);
int hip_version(void); // 50221153: 5.2
void *hip_stream_new(void);
uint32_t *hip_words_new(void); // a page of zeros that the GPU sees
// A kernel that counts the first word up and puts the value behind those that are there.
void hip_append(void *stream, uint32_t *log, uint32_t value);
// A kernel that stands in a stream until its first word is 1.
uint32_t *hip_gate_close(void *stream);
void hip_gate_open(uint32_t *word);
void hip_gate_release(void *gate); // the same, for fact_try_t
// The signal by which a process ends that uses HIP so; 0: it does not.
int hip_ends_by(void (*use)(void));

extern const fact_t hip_memory_facts[]; // ends with an empty one

#endif
