// SPDX-License-Identifier: Apache-2.0
// HIP's API, found at run time: nothing is linked, and the few declarations needed are written
// here.
#include <dlfcn.h>

#include "raw_vendor.h"

typedef struct node_t {
    uint32_t block[3];
    void **extra;
    object_t function;
    uint32_t grid[3];
    void **parameters;
    uint32_t shared;
} node_t;

static raw_vendor_t hip;

static struct {
    int (*init)(uint32_t);
    int (*enter)(int);
    int (*attribute)(int *, int, int);
    int (*copy)(uint64_t, uint64_t, size_t, int, object_t);
    int (*node_add)(object_t *, object_t, const object_t *, size_t, const node_t *);
    int (*node_set)(object_t, object_t, const node_t *);
} own;

static const raw_symbol_t symbols[] = {
    {"hipInit", &own.init},
    {"hipSetDevice", &own.enter},
    {"hipDeviceGetAttribute", &own.attribute},
    {"hipMemcpyAsync", &own.copy},
    {"hipGraphAddKernelNode", &own.node_add},
    {"hipGraphExecKernelNodeSetParams", &own.node_set},
    {"hipModuleLoadData", &hip.module_load},
    {"hipModuleUnload", &hip.module_unload},
    {"hipModuleGetFunction", &hip.module_function},
    {"hipStreamCreateWithPriority", &hip.stream_create},
    {"hipStreamDestroy", &hip.stream_destroy},
    {"hipStreamSynchronize", &hip.stream_sync},
    {"hipStreamWaitEvent", &hip.stream_wait},
    {"hipEventCreateWithFlags", &hip.event_create},
    {"hipEventDestroy", &hip.event_destroy},
    {"hipEventRecord", &hip.event_record},
    {"hipEventQuery", &hip.event_query},
    {"hipEventSynchronize", &hip.event_sync},
    {"hipModuleLaunchKernel", &hip.launch},
    {"hipGraphCreate", &hip.graph_create},
    {"hipGraphDestroy", &hip.graph_destroy},
    {"hipGraphInstantiateWithFlags", &hip.graph_instantiate},
    {"hipGraphExecDestroy", &hip.exec_destroy},
    {"hipGraphLaunch", &hip.graph_launch},
    {"hipMalloc", &hip.alloc},
    {"hipFree", &hip.free},
    {"hipHostMalloc", &hip.host_alloc},
    {"hipHostFree", &hip.host_free},
    {"hipMemsetD32Async", &hip.fill},
    {NULL, NULL},
};

static const raw_symbol_t pool_symbols[] = {
    {"hipDeviceGetDefaultMemPool", &hip.default_pool},
    {"hipMemPoolSetAttribute", &hip.pool_set},
    {"hipMallocAsync", &hip.pool_alloc},
    {"hipFreeAsync", &hip.pool_free},
    {NULL, NULL},
};

// The one that the process has open already, which is Keel's, or the newest.
static void *library_open(void)
{
    static const char *const files[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"};
    static const int ways[] = {RTLD_NOW | RTLD_NOLOAD, RTLD_NOW | RTLD_LOCAL};
    for (size_t way = 0; way < 2; way++)
        for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
            void *library = dlopen(files[i], ways[way]);
            if (library) return library;
        }
    return NULL;
}

static int enter(void)
{
    return own.enter(hip.ordinal);
}

static int copy(raw_copy_t kind, uint64_t target, uint64_t source, size_t size, object_t stream)
{
    return own.copy(target, source, size, (int)kind, stream);
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

keel_status_t raw_hip(int ordinal, const raw_vendor_t **vendor)
{
    enum { POOLS_SUPPORTED = 88 }; // an attribute; old releases do not know it
    int pools = 0;
    *vendor = &hip;
    if (hip.enter) return NULL;
    void *library = library_open();
    if (!library) return KEEL_ERROR(KEEL_UNSUPPORTED, "no libamdhip64");
    const char *missing = raw_symbols_find(library, symbols);
    if (missing) return KEEL_ERROR(KEEL_UNSUPPORTED, "libamdhip64 has no %s", missing);
    if (own.init(0) || own.enter(ordinal))
        return KEEL_ERROR(KEEL_UNSUPPORTED, "no HIP device %d", ordinal);
    hip.pools = !raw_symbols_find(library, pool_symbols) &&
                !own.attribute(&pools, POOLS_SUPPORTED, ordinal) && pools;
    hip.ordinal = ordinal;
    hip.copy = copy;
    hip.node_add = node_add;
    hip.node_set = node_set;
    hip.enter = enter;
    return NULL;
}
