// SPDX-License-Identifier: Apache-2.0
// CUDA's driver API, found at run time: nothing is linked, and the few declarations needed are
// written here.
#include <dlfcn.h>

#include "raw_vendor.h"

typedef struct node_t {
    object_t function;
    uint32_t grid[3], block[3], shared;
    void **parameters, **extra;
    object_t kernel, context;
} node_t;

static raw_vendor_t cuda;
static object_t context;

static struct {
    int (*init)(uint32_t);
    int (*device)(int *, int);
    int (*retain)(object_t *, int);
    int (*enter)(object_t);
    int (*within)(uint64_t, uint64_t, size_t, object_t);
    int (*to_device)(uint64_t, uint64_t, size_t, object_t);
    int (*to_host)(uint64_t, uint64_t, size_t, object_t);
    int (*node_add)(object_t *, object_t, const object_t *, size_t, const node_t *);
    int (*node_set)(object_t, object_t, const node_t *);
} own;

static const raw_symbol_t symbols[] = {
    {"cuInit", &own.init},
    {"cuDeviceGet", &own.device},
    {"cuDevicePrimaryCtxRetain", &own.retain},
    {"cuCtxSetCurrent", &own.enter},
    {"cuMemcpyDtoDAsync_v2", &own.within},
    {"cuMemcpyHtoDAsync_v2", &own.to_device},
    {"cuMemcpyDtoHAsync_v2", &own.to_host},
    {"cuGraphAddKernelNode_v2", &own.node_add},
    {"cuGraphExecKernelNodeSetParams_v2", &own.node_set},
    {"cuModuleLoadData", &cuda.module_load},
    {"cuModuleUnload", &cuda.module_unload},
    {"cuModuleGetFunction", &cuda.module_function},
    {"cuStreamCreateWithPriority", &cuda.stream_create},
    {"cuStreamDestroy_v2", &cuda.stream_destroy},
    {"cuStreamSynchronize", &cuda.stream_sync},
    {"cuStreamWaitEvent", &cuda.stream_wait},
    {"cuEventCreate", &cuda.event_create},
    {"cuEventDestroy_v2", &cuda.event_destroy},
    {"cuEventRecord", &cuda.event_record},
    {"cuEventQuery", &cuda.event_query},
    {"cuEventSynchronize", &cuda.event_sync},
    {"cuLaunchKernel", &cuda.launch},
    {"cuGraphCreate", &cuda.graph_create},
    {"cuGraphDestroy", &cuda.graph_destroy},
    {"cuGraphInstantiateWithFlags", &cuda.graph_instantiate},
    {"cuGraphExecDestroy", &cuda.exec_destroy},
    {"cuGraphLaunch", &cuda.graph_launch},
    {"cuMemAlloc_v2", &cuda.alloc},
    {"cuMemFree_v2", &cuda.free},
    {"cuMemHostAlloc", &cuda.host_alloc},
    {"cuMemFreeHost", &cuda.host_free},
    {"cuMemsetD32Async", &cuda.fill},
    {"cuDeviceGetDefaultMemPool", &cuda.default_pool},
    {"cuMemPoolSetAttribute", &cuda.pool_set},
    {"cuMemAllocAsync", &cuda.pool_alloc},
    {"cuMemFreeAsync", &cuda.pool_free},
    {NULL, NULL},
};

static int enter(void)
{
    return own.enter(context);
}

static int copy(raw_copy_t kind, uint64_t target, uint64_t source, size_t size, object_t stream)
{
    if (kind == RAW_WITHIN) return own.within(target, source, size, stream);
    return (kind == RAW_TO_HOST ? own.to_host : own.to_device)(target, source, size, stream);
}

static node_t node_of(object_t function, void **parameters)
{
    return (node_t){
        .function = function, .grid = {1, 1, 1}, .block = {1, 1, 1}, .parameters = parameters};
}

static int node_add(object_t *node, object_t graph, const object_t *after, object_t function,
                    void *block)
{
    node_t made = node_of(function, &block);
    return own.node_add(node, graph, after, after != NULL, &made);
}

static int node_set(object_t exec, object_t node, object_t function, void *block)
{
    node_t made = node_of(function, &block);
    return own.node_set(exec, node, &made);
}

keel_status_t raw_cuda(int ordinal, const raw_vendor_t **vendor)
{
    int device = 0;
    *vendor = &cuda;
    if (context) return NULL;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return KEEL_ERROR(KEEL_UNSUPPORTED, "no libcuda.so.1");
    const char *missing = raw_symbols_find(library, symbols);
    if (missing) return KEEL_ERROR(KEEL_UNSUPPORTED, "libcuda.so.1 has no %s", missing);
    if (own.init(0) || own.device(&device, ordinal) || own.retain(&context, device))
        return KEEL_ERROR(KEEL_UNSUPPORTED, "no CUDA device %d", ordinal);
    cuda.ordinal = ordinal;
    cuda.pools = true;
    cuda.enter = enter;
    cuda.copy = copy;
    cuda.updates = true;
    cuda.node_add = node_add;
    cuda.node_set = node_set;
    return NULL;
}
