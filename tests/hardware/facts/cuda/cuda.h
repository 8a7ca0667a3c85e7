// SPDX-License-Identifier: Apache-2.0
// What the facts about libcuda are written with: its functions, found at run time, and some
// kernels. Types and prototypes are those that sim/cuda declares, which a test compares with
// NVIDIA's header.
#ifndef TESTS_HARDWARE_FACTS_CUDA_CUDA_H_
#define TESTS_HARDWARE_FACTS_CUDA_CUDA_H_

#include "sim/cuda/api.h"
#include "tests/hardware/facts/facts.h"

// The run that most facts come from.
#define H200 "seen on an H200, driver 580.159.04, November 2026"

// Every function that a fact calls, by its name in sim/cuda/symbols.def.
#define CUDA_FUNCTIONS(F)                                                                          \
    F(cuInit)                                                                                      \
    F(cuGetProcAddress_v2)                                                                         \
    F(cuDeviceGetAttribute)                                                                        \
    F(cuDevicePrimaryCtxRetain)                                                                    \
    F(cuDevicePrimaryCtxRelease_v2)                                                                \
    F(cuDevicePrimaryCtxGetState)                                                                  \
    F(cuCtxCreate_v2)                                                                              \
    F(cuCtxDestroy_v2)                                                                             \
    F(cuCtxGetCurrent)                                                                             \
    F(cuCtxSetCurrent)                                                                             \
    F(cuCtxSynchronize)                                                                            \
    F(cuCtxGetStreamPriorityRange)                                                                 \
    F(cuStreamCreate)                                                                              \
    F(cuStreamCreateWithPriority)                                                                  \
    F(cuStreamGetPriority)                                                                         \
    F(cuStreamGetCtx)                                                                              \
    F(cuStreamDestroy_v2)                                                                          \
    F(cuStreamQuery)                                                                               \
    F(cuStreamSynchronize)                                                                         \
    F(cuStreamWaitEvent)                                                                           \
    F(cuStreamWriteValue32_v2)                                                                     \
    F(cuStreamBeginCapture_v2)                                                                     \
    F(cuStreamEndCapture)                                                                          \
    F(cuThreadExchangeStreamCaptureMode)                                                           \
    F(cuEventCreate)                                                                               \
    F(cuEventDestroy_v2)                                                                           \
    F(cuEventRecord)                                                                               \
    F(cuEventQuery)                                                                                \
    F(cuEventSynchronize)                                                                          \
    F(cuEventElapsedTime)                                                                          \
    F(cuLaunchKernel)                                                                              \
    F(cuLaunchHostFunc)                                                                            \
    F(cuMemAlloc_v2)                                                                               \
    F(cuMemFree_v2)                                                                                \
    F(cuMemGetInfo_v2)                                                                             \
    F(cuMemHostAlloc)                                                                              \
    F(cuMemFreeHost)                                                                               \
    F(cuMemHostGetDevicePointer_v2)                                                                \
    F(cuMemHostRegister_v2)                                                                        \
    F(cuMemHostUnregister)                                                                         \
    F(cuMemAllocManaged)                                                                           \
    F(cuMemGetAddressRange_v2)                                                                     \
    F(cuPointerGetAttribute)                                                                       \
    F(cuMemcpyAsync)                                                                               \
    F(cuMemcpyDtoH_v2)                                                                             \
    F(cuMemsetD8Async)                                                                             \
    F(cuMemsetD32Async)                                                                            \
    F(cuMemGetAllocationGranularity)                                                               \
    F(cuMemCreate)                                                                                 \
    F(cuMemRelease)                                                                                \
    F(cuMemAddressReserve)                                                                         \
    F(cuMemAddressFree)                                                                            \
    F(cuMemMap)                                                                                    \
    F(cuMemUnmap)                                                                                  \
    F(cuMemSetAccess)                                                                              \
    F(cuMemExportToShareableHandle)                                                                \
    F(cuMemImportFromShareableHandle)                                                              \
    F(cuMemPoolCreate)                                                                             \
    F(cuMemPoolDestroy)                                                                            \
    F(cuMemPoolSetAttribute)                                                                       \
    F(cuMemPoolGetAttribute)                                                                       \
    F(cuMemPoolTrimTo)                                                                             \
    F(cuMemAllocFromPoolAsync)                                                                     \
    F(cuMemFreeAsync)                                                                              \
    F(cuModuleLoadData)                                                                            \
    F(cuModuleUnload)                                                                              \
    F(cuModuleGetFunction)                                                                         \
    F(cuModuleGetGlobal_v2)                                                                        \
    F(cuFuncSetAttribute)                                                                          \
    F(cuFuncGetParamInfo)                                                                          \
    F(cuFuncLoad)                                                                                  \
    F(cuFuncIsLoaded)                                                                              \
    F(cuImportExternalSemaphore)                                                                   \
    F(cuGraphCreate)                                                                               \
    F(cuGraphDestroy)                                                                              \
    F(cuGraphAddKernelNode_v2)                                                                     \
    F(cuGraphAddMemcpyNode)                                                                        \
    F(cuGraphAddMemsetNode)                                                                        \
    F(cuGraphAddEmptyNode)                                                                         \
    F(cuGraphAddHostNode)                                                                          \
    F(cuGraphAddDependencies)                                                                      \
    F(cuGraphAddNode)                                                                              \
    F(cuGraphKernelNodeSetAttribute)                                                               \
    F(cuGraphConditionalHandleCreate)                                                              \
    F(cuGraphInstantiateWithFlags)                                                                 \
    F(cuGraphExecDestroy)                                                                          \
    F(cuGraphUpload)                                                                               \
    F(cuGraphLaunch)                                                                               \
    F(cuGraphExecKernelNodeSetParams_v2)                                                           \
    F(cuGraphExecMemcpyNodeSetParams)                                                              \
    F(cuGraphExecMemsetNodeSetParams)                                                              \
    F(cuGraphExecUpdate_v2)

typedef struct cuda_t {
#define CUDA_MEMBER(name) __typeof__(name) *name;
    CUDA_FUNCTIONS(CUDA_MEMBER)
#undef CUDA_MEMBER
} cuda_t;

extern cuda_t cu;

enum { CUDA_ERROR_CAPTURED_EVENT = 907 }; // which sim/cuda does not know

// The call succeeds, or the fact cannot be tried; and it is a fact that it returns this.
#define CU(call)                                                                                   \
    do {                                                                                           \
        int code_ = (int)(call);                                                                   \
        if (code_) fact_broken(__LINE__, "%s returned %d", #call, code_);                          \
    } while (0)
#define RETURNS(wanted, call)                                                                      \
    do {                                                                                           \
        int code_ = (int)(call);                                                                   \
        if (code_ != (int)(wanted)) fact_untrue(__LINE__, "%s returned %d", #call, code_);         \
    } while (0)

// Initialises CUDA, makes the primary context of device 0 current and loads the kernels.
CUcontext cuda_begin(void);
// One of them, of the module that cuda_begin loaded; and that image once more.
CUfunction cuda_kernel(const char *name);
CUmodule cuda_load(void);

CUstream cuda_stream(void); // non-blocking
CUevent cuda_event(void);   // without times
uint32_t *cuda_words(void); // page-locked, 64 KiB, zero, at the same address on the device
CUdeviceptr cuda_memory(size_t size);
int cuda_attribute(CUdevice_attribute attribute);

static inline uint64_t cuda_at(const void *pointer)
{
    return (uintptr_t)pointer;
}

// Launches a kernel of one thread with up to three words of arguments.
void cuda_launch(const char *name, CUstream stream, const uint64_t words[3]);
#define LAUNCH(name, stream, ...) cuda_launch((name), (stream), (const uint64_t[3]){__VA_ARGS__})

// A kernel that stands in a stream until its word is not 0.
typedef struct gate_t {
    uint32_t *word;
} gate_t;
gate_t gate_close(CUstream stream);
void gate_open(void *gate);

// Whether a call waits for a kernel that stands in a stream of its own.
bool cuda_waits(void (*call)(void *user), void *user, unsigned patience_ms);

// A kernel of one thread as a node of a graph.
typedef struct cuda_node_t {
    CUDA_KERNEL_NODE_PARAMS params; // whose pointers are into this struct
    uint64_t words[3];
    void *pointers[3];
} cuda_node_t;
void cuda_node(cuda_node_t *out, CUfunction function, const uint64_t words[3]);
CUgraphNode cuda_add(CUgraph graph, const char *name, const uint64_t words[3], CUgraphNode after);
#define ADD(graph, name, after, ...)                                                               \
    cuda_add((graph), (name), (const uint64_t[3]){__VA_ARGS__}, (after))
CUgraph cuda_graph(void);
CUgraphExec cuda_exec(CUgraph graph);
// Makes a node one that the device may change, and gives what device code knows it by.
uint64_t cuda_updatable(CUgraphNode node);

extern const fact_t cuda_capture_facts[], cuda_context_facts[], cuda_error_facts[],
    cuda_event_facts[], cuda_graph_facts[], cuda_memory_facts[], cuda_module_facts[],
    cuda_pool_facts[], cuda_stream_facts[], cuda_update_facts[], cuda_wait_facts[];

#endif
