// SPDX-License-Identifier: Apache-2.0
// CUDA's driver API, found at run time: nothing is linked, and the few declarations needed are
// written here.
#include "raw.h"

#include <dlfcn.h>
#include <stdlib.h>

typedef void *object_t; // context, module, function, stream, event, graph, node, instance, pool

typedef struct kernel_node_t {
    object_t function;
    uint32_t grid[3], block[3], shared;
    void **parameters;
    void **extra;
    object_t kernel, context;
} kernel_node_t;

enum {
    NOT_READY = 600,
    STREAM_NON_BLOCKING = 1,
    EVENT_BLOCKING = 1,
    EVENT_NO_TIMING = 2,
    POOL_RELEASE_THRESHOLD = 4,
    HOST_PORTABLE = 1,
};

#define CUDA_FUNCTIONS(X)                                                                          \
    X(cuInit, cuInit, (uint32_t))                                                                  \
    X(cuDeviceGet, cuDeviceGet, (int *, int))                                                      \
    X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (object_t *, int))                       \
    X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (int))                              \
    X(cuCtxSetCurrent, cuCtxSetCurrent, (object_t))                                                \
    X(cuModuleLoadData, cuModuleLoadData, (object_t *, const void *))                              \
    X(cuModuleUnload, cuModuleUnload, (object_t))                                                  \
    X(cuModuleGetFunction, cuModuleGetFunction, (object_t *, object_t, const char *))              \
    X(cuStreamCreate, cuStreamCreate, (object_t *, uint32_t))                                      \
    X(cuStreamDestroy, cuStreamDestroy_v2, (object_t))                                             \
    X(cuStreamSynchronize, cuStreamSynchronize, (object_t))                                        \
    X(cuStreamWaitEvent, cuStreamWaitEvent, (object_t, object_t, uint32_t))                        \
    X(cuEventCreate, cuEventCreate, (object_t *, uint32_t))                                        \
    X(cuEventDestroy, cuEventDestroy_v2, (object_t))                                               \
    X(cuEventRecord, cuEventRecord, (object_t, object_t))                                          \
    X(cuEventQuery, cuEventQuery, (object_t))                                                      \
    X(cuEventSynchronize, cuEventSynchronize, (object_t))                                          \
    X(cuLaunchKernel, cuLaunchKernel,                                                              \
      (object_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, object_t,   \
       void **, void **))                                                                          \
    X(cuGraphCreate, cuGraphCreate, (object_t *, uint32_t))                                        \
    X(cuGraphDestroy, cuGraphDestroy, (object_t))                                                  \
    X(cuGraphAddKernelNode, cuGraphAddKernelNode_v2,                                               \
      (object_t *, object_t, const object_t *, size_t, const kernel_node_t *))                     \
    X(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, (object_t *, object_t, uint64_t))  \
    X(cuGraphExecDestroy, cuGraphExecDestroy, (object_t))                                          \
    X(cuGraphLaunch, cuGraphLaunch, (object_t, object_t))                                          \
    X(cuGraphExecKernelNodeSetParams, cuGraphExecKernelNodeSetParams_v2,                           \
      (object_t, object_t, const kernel_node_t *))                                                 \
    X(cuDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool, (object_t *, int))                     \
    X(cuMemPoolSetAttribute, cuMemPoolSetAttribute, (object_t, int, void *))                       \
    X(cuMemAllocAsync, cuMemAllocAsync, (uint64_t *, size_t, object_t))                            \
    X(cuMemFreeAsync, cuMemFreeAsync, (uint64_t, object_t))                                        \
    X(cuMemAlloc, cuMemAlloc_v2, (uint64_t *, size_t))                                             \
    X(cuMemFree, cuMemFree_v2, (uint64_t))                                                         \
    X(cuMemHostAlloc, cuMemHostAlloc, (void **, size_t, uint32_t))                                 \
    X(cuMemFreeHost, cuMemFreeHost, (void *))                                                      \
    X(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, (uint64_t, uint64_t, size_t, object_t))             \
    X(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, (uint64_t, const void *, size_t, object_t))         \
    X(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, (void *, uint64_t, size_t, object_t))               \
    X(cuMemsetD32Async, cuMemsetD32Async, (uint64_t, uint32_t, size_t, object_t))

static struct {
#define POINTER(name, symbol, parameters) int(*name) parameters;
    CUDA_FUNCTIONS(POINTER)
} cu;

const char raw_image[] = ".version 7.0\n"
                         ".target sm_70\n"
                         ".address_size 64\n"
                         ".visible .entry raw_empty(.param .align 8 .b8 block[64])\n"
                         "{\n"
                         "    ret;\n"
                         "}\n"
                         ".visible .entry raw_nap(.param .align 8 .b8 block[64])\n"
                         "{\n"
                         "    .reg .u64 %now, %end, %nap;\n"
                         "    .reg .pred %early;\n"
                         "    ld.param.u64 %nap, [block];\n"
                         "    mov.u64 %now, %globaltimer;\n"
                         "    add.u64 %end, %now, %nap;\n"
                         "again:\n"
                         "    mov.u64 %now, %globaltimer;\n"
                         "    setp.lt.u64 %early, %now, %end;\n"
                         "    @%early bra again;\n"
                         "    ret;\n"
                         "}\n";
const size_t raw_image_size = sizeof raw_image;

struct raw_t {
    int device;
    object_t context, module, function, nap;
    object_t streams[RAW_STREAMS], events[RAW_EVENTS];
    object_t graph, instance, *nodes;
    uint32_t node_count, rebound;
    uint64_t block[RAW_BLOCK / 8];
    uint64_t first, second; // device memory
    void *host;
};

#define RAW_TRY(call)                                                                              \
    do {                                                                                           \
        int error_ = (call);                                                                       \
        if (error_) return KEEL_ERROR(KEEL_ABORTED, "%s fails with %d", #call, error_);            \
    } while (0)

static keel_status_t symbols_load(void)
{
    static bool loaded;
    if (loaded) return NULL;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return KEEL_ERROR(KEEL_UNSUPPORTED, "no libcuda.so.1");
#define LOAD(name, symbol, parameters)                                                             \
    *(void **)&cu.name = dlsym(library, #symbol);                                                  \
    if (!cu.name) return KEEL_ERROR(KEEL_UNSUPPORTED, "libcuda.so.1 has no " #symbol);
    CUDA_FUNCTIONS(LOAD)
    loaded = true;
    return NULL;
}

static keel_status_t objects_make(raw_t *raw)
{
    RAW_TRY(cu.cuModuleLoadData(&raw->module, raw_image));
    RAW_TRY(cu.cuModuleGetFunction(&raw->function, raw->module, "raw_empty"));
    RAW_TRY(cu.cuModuleGetFunction(&raw->nap, raw->module, "raw_nap"));
    for (int i = 0; i < RAW_STREAMS; i++)
        RAW_TRY(cu.cuStreamCreate(&raw->streams[i], STREAM_NON_BLOCKING));
    for (int i = 0; i < RAW_EVENTS; i++)
        RAW_TRY(cu.cuEventCreate(&raw->events[i],
                                 EVENT_NO_TIMING | (i == RAW_BELL ? EVENT_BLOCKING : 0)));
    uint64_t keep = UINT64_MAX;
    object_t pool;
    RAW_TRY(cu.cuDeviceGetDefaultMemPool(&pool, raw->device));
    RAW_TRY(cu.cuMemPoolSetAttribute(pool, POOL_RELEASE_THRESHOLD, &keep));
    return NULL;
}

keel_status_t raw_open(raw_t **made)
{
    KEEL_TRY(symbols_load());
    raw_t *raw = calloc(1, sizeof *raw);
    if (!raw) return KEEL_ERROR(KEEL_OUT_OF_MEMORY, "no memory");
    *made = raw;
    if (cu.cuInit(0) || cu.cuDeviceGet(&raw->device, 0))
        return KEEL_ERROR(KEEL_UNSUPPORTED, "no CUDA device");
    RAW_TRY(cu.cuDevicePrimaryCtxRetain(&raw->context, raw->device));
    RAW_TRY(cu.cuCtxSetCurrent(raw->context));
    return objects_make(raw);
}

static void graph_drop(raw_t *raw)
{
    if (raw->instance) cu.cuGraphExecDestroy(raw->instance);
    if (raw->graph) cu.cuGraphDestroy(raw->graph);
    free(raw->nodes);
}

void raw_close(raw_t *raw)
{
    if (!raw) return;
    if (raw->context) {
        cu.cuCtxSetCurrent(raw->context);
        graph_drop(raw);
        for (int i = 0; i < RAW_STREAMS; i++)
            if (raw->streams[i]) cu.cuStreamDestroy(raw->streams[i]);
        for (int i = 0; i < RAW_EVENTS; i++)
            if (raw->events[i]) cu.cuEventDestroy(raw->events[i]);
        if (raw->first) cu.cuMemFree(raw->first);
        if (raw->second) cu.cuMemFree(raw->second);
        if (raw->host) cu.cuMemFreeHost(raw->host);
        if (raw->module) cu.cuModuleUnload(raw->module);
        cu.cuCtxSetCurrent(NULL);
        cu.cuDevicePrimaryCtxRelease(raw->device);
    }
    free(raw);
}

keel_status_t raw_launch(raw_t *raw, int stream)
{
    void *parameters[] = {raw->block};
    RAW_TRY(cu.cuLaunchKernel(raw->function, 1, 1, 1, 1, 1, 1, 0, raw->streams[stream], parameters,
                              NULL));
    return NULL;
}

keel_status_t raw_nap(raw_t *raw, int stream, uint64_t ns)
{
    uint64_t block[RAW_BLOCK / 8] = {ns};
    void *parameters[] = {block};
    RAW_TRY(
        cu.cuLaunchKernel(raw->nap, 1, 1, 1, 1, 1, 1, 0, raw->streams[stream], parameters, NULL));
    return NULL;
}

keel_status_t raw_record(raw_t *raw, int event, int stream)
{
    RAW_TRY(cu.cuEventRecord(raw->events[event], raw->streams[stream]));
    return NULL;
}

keel_status_t raw_wait(raw_t *raw, int stream, int event)
{
    RAW_TRY(cu.cuStreamWaitEvent(raw->streams[stream], raw->events[event], 0));
    return NULL;
}

keel_status_t raw_spin(raw_t *raw, int event)
{
    int error;
    while ((error = cu.cuEventQuery(raw->events[event])) == NOT_READY) {
    }
    RAW_TRY(error);
    return NULL;
}

keel_status_t raw_sleep(raw_t *raw, int event)
{
    RAW_TRY(cu.cuCtxSetCurrent(raw->context)); // any thread
    RAW_TRY(cu.cuEventSynchronize(raw->events[event]));
    return NULL;
}

keel_status_t raw_sync(raw_t *raw)
{
    for (int i = 0; i < RAW_STREAMS; i++) RAW_TRY(cu.cuStreamSynchronize(raw->streams[i]));
    return NULL;
}

static kernel_node_t node_of(raw_t *raw, void **parameters)
{
    *parameters = raw->block;
    return (kernel_node_t){
        .function = raw->function, .grid = {1, 1, 1}, .block = {1, 1, 1}, .parameters = parameters};
}

keel_status_t raw_graph(raw_t *raw, uint32_t count)
{
    void *parameters;
    kernel_node_t node = node_of(raw, &parameters);
    raw->nodes = calloc(count, sizeof *raw->nodes);
    if (!raw->nodes) return KEEL_ERROR(KEEL_OUT_OF_MEMORY, "no memory");
    raw->node_count = count;
    RAW_TRY(cu.cuGraphCreate(&raw->graph, 0));
    for (uint32_t i = 0; i < count; i++)
        RAW_TRY(cu.cuGraphAddKernelNode(&raw->nodes[i], raw->graph, i ? &raw->nodes[i - 1] : NULL,
                                        i != 0, &node));
    RAW_TRY(cu.cuGraphInstantiateWithFlags(&raw->instance, raw->graph, 0));
    return NULL;
}

keel_status_t raw_replay(raw_t *raw)
{
    RAW_TRY(cu.cuGraphLaunch(raw->instance, raw->streams[0]));
    return NULL;
}

keel_status_t raw_rebind(raw_t *raw)
{
    void *parameters;
    kernel_node_t node = node_of(raw, &parameters);
    uint64_t buffer = UINT64_C(1) << 40 | (uint64_t)(++raw->rebound % 2) << 21; // never looked at
    for (uint32_t i = 0; i < raw->node_count; i++) {
        for (uint32_t k = 0; k < 3; k++) raw->block[k] = buffer + (i * 3 + k) % 48 * 64;
        RAW_TRY(cu.cuGraphExecKernelNodeSetParams(raw->instance, raw->nodes[i], &node));
    }
    return NULL;
}

keel_status_t raw_pair(raw_t *raw, uint64_t size)
{
    uint64_t address;
    RAW_TRY(cu.cuMemAllocAsync(&address, size, raw->streams[0]));
    RAW_TRY(cu.cuMemFreeAsync(address, raw->streams[0]));
    return NULL;
}

keel_status_t raw_spans(raw_t *raw, uint64_t size, bool host)
{
    if (host)
        RAW_TRY(cu.cuMemHostAlloc(&raw->host, size, HOST_PORTABLE));
    else
        RAW_TRY(cu.cuMemAlloc(&raw->first, size));
    RAW_TRY(cu.cuMemAlloc(&raw->second, size));
    return NULL;
}

keel_status_t raw_copy(raw_t *raw, uint64_t size)
{
    if (raw->host)
        RAW_TRY(cu.cuMemcpyHtoDAsync(raw->second, raw->host, size, raw->streams[0]));
    else
        RAW_TRY(cu.cuMemcpyDtoDAsync(raw->second, raw->first, size, raw->streams[0]));
    return NULL;
}

keel_status_t raw_copy_back(raw_t *raw, uint64_t size)
{
    RAW_TRY(cu.cuMemcpyDtoHAsync(raw->host, raw->second, size, raw->streams[0]));
    return NULL;
}

keel_status_t raw_fill(raw_t *raw, uint64_t size)
{
    RAW_TRY(cu.cuMemsetD32Async(raw->second, 7, size / 4, raw->streams[0]));
    return NULL;
}
