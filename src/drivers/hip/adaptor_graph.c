// SPDX-License-Identifier: Apache-2.0
// Graphs. HIP has no nodes that run by a condition, and none that the device changes.
#include "drivers/hip/hip.h"

HIP_FORWARDS(graph_create, hipGraphCreate, (stream_graph_h * graph), (hipGraph_t *)(void *)graph, 0)
HIP_RELEASES(graph_destroy, hipGraphDestroy, what)
HIP_FORWARDS(graph_instantiate, hipGraphInstantiateWithFlags,
             (stream_graph_h graph, stream_exec_h *exec), (hipGraphExec_t *)(void *)exec, graph, 0)
HIP_RELEASES(exec_destroy, hipGraphExecDestroy, what)
HIP_FORWARDS(exec_upload, hipGraphUpload, (stream_exec_h exec, stream_h stream), exec, stream)
HIP_FORWARDS(exec_set_copy, hipGraphExecMemcpyNodeSetParams1D,
             (stream_exec_h exec, stream_node_h node, const bound_copy_t *c), exec, node,
             hip_pointer(c->target), hip_pointer(c->source), c->size, hipMemcpyDefault)

static keel_status_t exec_run(stream_vendor_t *v, stream_exec_h exec, stream_h stream)
{
    hip_alone_enter(v);
    keel_status_t status = HIP_CALL(v->symbols, hipGraphLaunch, exec, stream);
    hip_alone_leave(v);
    return status;
}

// Where a node goes, as every function that adds one takes it.
#define PLACE(place)                                                                               \
    (place)->graph, (const hipGraphNode_t *)(const void *)(place)->after, (place)->count

static keel_status_t graph_copy(stream_vendor_t *v, const stream_place_t *place,
                                const bound_copy_t *c, stream_node_h *node)
{
    return HIP_CALL(v->symbols, hipGraphAddMemcpyNode1D, (hipGraphNode_t *)(void *)node,
                    PLACE(place), hip_pointer(c->target), hip_pointer(c->source), c->size,
                    hipMemcpyDefault);
}

static keel_status_t graph_join(stream_vendor_t *v, const stream_place_t *place,
                                stream_node_h *node)
{
    return HIP_CALL(v->symbols, hipGraphAddEmptyNode, (hipGraphNode_t *)(void *)node, PLACE(place));
}

static keel_status_t graph_order(stream_vendor_t *v, stream_graph_h graph, stream_node_h first,
                                 stream_node_h then)
{
    hipGraphNode_t from = first, to = then;
    return HIP_CALL(v->symbols, hipGraphAddDependencies, graph, &from, &to, 1);
}

// A launch, with what the vendor reads of it.
typedef struct kernel_node_t {
    stream_extra_t extra;
    hipKernelNodeParams params;
} kernel_node_t;

static const hipKernelNodeParams *kernel_init(kernel_node_t *node, const stream_launch_t *l)
{
    stream_extra_init(&node->extra, l, hip_marks);
    node->params = (hipKernelNodeParams){
        .func = l->function,
        .gridDim = {l->groups[0], l->groups[1], l->groups[2]},
        .blockDim = {l->group_size[0], l->group_size[1], l->group_size[2]},
        .sharedMemBytes = l->local_memory,
        .extra = node->extra.list,
    };
    return &node->params;
}

static keel_status_t graph_launch(stream_vendor_t *v, const stream_place_t *place,
                                  const stream_launch_t *launch, stream_node_h *node)
{
    kernel_node_t kernel;
    hip_alone_enter(v);
    keel_status_t status =
        HIP_CALL(v->symbols, hipGraphAddKernelNode, (hipGraphNode_t *)(void *)node, PLACE(place),
                 kernel_init(&kernel, launch));
    hip_alone_leave(v);
    return status;
}

static keel_status_t exec_set_launch(stream_vendor_t *v, stream_exec_h exec, stream_node_h node,
                                     const stream_launch_t *launch)
{
    kernel_node_t kernel;
    hip_alone_enter(v);
    keel_status_t status = HIP_CALL(v->symbols, hipGraphExecKernelNodeSetParams, exec, node,
                                    kernel_init(&kernel, launch));
    hip_alone_leave(v);
    return status;
}

static hipMemsetParams fill_make(const bound_fill_t *f)
{
    unsigned bits = f->size * 8;
    return (hipMemsetParams){
        .dst = hip_pointer(f->target),
        .elementSize = f->size,
        .value = f->size == 4 ? f->pattern : f->pattern & ((1u << bits) - 1),
        .width = f->count,
        .height = 1,
    };
}

static keel_status_t graph_fill(stream_vendor_t *v, const stream_place_t *place,
                                const bound_fill_t *fill, stream_node_h *node)
{
    const hipMemsetParams params = fill_make(fill);
    return HIP_CALL(v->symbols, hipGraphAddMemsetNode, (hipGraphNode_t *)(void *)node, PLACE(place),
                    &params);
}

static keel_status_t exec_set_fill(stream_vendor_t *v, stream_exec_h exec, stream_node_h node,
                                   const bound_fill_t *fill)
{
    const hipMemsetParams params = fill_make(fill);
    return HIP_CALL(v->symbols, hipGraphExecMemsetNodeSetParams, exec, node, &params);
}

void hip_fill_graph(stream_api_t *api)
{
    STREAM_GRAPH_SLOTS(STREAM_FILL)
}
