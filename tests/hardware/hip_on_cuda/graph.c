// SPDX-License-Identifier: Apache-2.0
#include "hip.h"

typedef struct hip_kernel_t { // hipKernelNodeParams
    unsigned block[3];
    void **extra;
    void *function;
    unsigned grid[3];
    void **parameters;
    unsigned shared;
} hip_kernel_t;

typedef struct hip_fill_t { // hipMemsetParams
    void *target;
    unsigned element;
    size_t height, pitch;
    unsigned value;
    size_t width;
} hip_fill_t;

static cuda_kernel_t kernel_make(const hip_kernel_t *hip, extra_t *extra)
{
    return (cuda_kernel_t){
        .function = hip->function,
        .grid = {hip->grid[0], hip->grid[1], hip->grid[2]},
        .block = {hip->block[0], hip->block[1], hip->block[2]},
        .shared = hip->shared,
        .parameters = hip->parameters,
        .extra = extra_make(extra, hip->extra),
    };
}

static cuda_copy_t copy_make(const void *target, const void *source, size_t size)
{
    return (cuda_copy_t){
        .source_type = CU_MEMORYTYPE_UNIFIED,
        .source = address_of(source),
        .target_type = CU_MEMORYTYPE_UNIFIED,
        .target = address_of(target),
        .width = size,
        .height = 1,
        .depth = 1,
    };
}

static cuda_fill_t fill_make(const hip_fill_t *hip)
{
    return (cuda_fill_t){
        .target = address_of(hip->target),
        .pitch = hip->pitch,
        .value = hip->value,
        .element = hip->element,
        .width = hip->width,
        .height = hip->height,
    };
}

HIP(hipGraphCreate, void **graph, unsigned flags)
{
    FORWARD(cuGraphCreate(graph, flags));
}

HIP(hipGraphDestroy, void *graph)
{
    FORWARD(cuGraphDestroy(graph));
}

HIP(hipGraphAddKernelNode, void **node, void *graph, void *const *after, size_t count,
    const hip_kernel_t *params)
{
    extra_t extra;
    cuda_kernel_t kernel = kernel_make(params, &extra);
    FORWARD(cuGraphAddKernelNode_v2(node, graph, after, count, &kernel));
}

HIP(hipGraphAddMemcpyNode1D, void **node, void *graph, void *const *after, size_t count,
    void *target, const void *source, size_t size, int kind)
{
    cuda_copy_t copy = copy_make(target, source, size);
    FORWARD(cuGraphAddMemcpyNode(node, graph, after, count, &copy, context_now()));
}

HIP(hipGraphAddMemsetNode, void **node, void *graph, void *const *after, size_t count,
    const hip_fill_t *params)
{
    cuda_fill_t fill = fill_make(params);
    FORWARD(cuGraphAddMemsetNode(node, graph, after, count, &fill, context_now()));
}

HIP(hipGraphAddEmptyNode, void **node, void *graph, void *const *after, size_t count)
{
    FORWARD(cuGraphAddEmptyNode(node, graph, after, count));
}

HIP(hipGraphAddDependencies, void *graph, void *const *from, void *const *to, size_t count)
{
    FORWARD(cuGraphAddDependencies(graph, from, to, count));
}

HIP(hipGraphInstantiateWithFlags, void **exec, void *graph, unsigned long long flags)
{
    FORWARD(cuGraphInstantiateWithFlags(exec, graph, flags));
}

HIP(hipGraphExecDestroy, void *exec)
{
    FORWARD(cuGraphExecDestroy(exec));
}

HIP(hipGraphLaunch, void *exec, void *stream)
{
    FORWARD_PLAINLY(cuGraphLaunch(exec, stream));
}

HIP(hipGraphUpload, void *exec, void *stream)
{
    FORWARD_PLAINLY(cuGraphUpload(exec, stream));
}

HIP(hipGraphExecKernelNodeSetParams, void *exec, void *node, const hip_kernel_t *params)
{
    extra_t extra;
    cuda_kernel_t kernel = kernel_make(params, &extra);
    FORWARD(cuGraphExecKernelNodeSetParams_v2(exec, node, &kernel));
}

HIP(hipGraphExecMemcpyNodeSetParams1D, void *exec, void *node, void *target, const void *source,
    size_t size, int kind)
{
    cuda_copy_t copy = copy_make(target, source, size);
    FORWARD(cuGraphExecMemcpyNodeSetParams(exec, node, &copy, context_now()));
}

HIP(hipGraphExecMemsetNodeSetParams, void *exec, void *node, const hip_fill_t *params)
{
    cuda_fill_t fill = fill_make(params);
    FORWARD(cuGraphExecMemsetNodeSetParams(exec, node, &fill, context_now()));
}
