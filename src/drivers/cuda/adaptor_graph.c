// SPDX-License-Identifier: Apache-2.0
// Graphs.
#include "drivers/cuda/cuda.h"

CUDA_FORWARDS(graph_create, cuGraphCreate, (stream_graph_h * graph), (CUgraph *)(void *)graph, 0)
CUDA_RELEASES(graph_destroy, cuGraphDestroy, what)
CUDA_FORWARDS(graph_instantiate, cuGraphInstantiateWithFlags,
              (stream_graph_h graph, stream_exec_h *exec), (CUgraphExec *)(void *)exec, graph, 0)
CUDA_RELEASES(exec_destroy, cuGraphExecDestroy, what)
CUDA_FORWARDS(KEEL_HOT exec_run, cuGraphLaunch, (stream_exec_h exec, stream_h stream), exec, stream)
CUDA_FORWARDS(exec_upload, cuGraphUpload, (stream_exec_h exec, stream_h stream), exec, stream)

static CUDA_KERNEL_NODE_PARAMS kernel_params(const stream_launch_t *l, stream_extra_t *extra)
{
    stream_extra_init(extra, l, cuda_marks);
    return (CUDA_KERNEL_NODE_PARAMS){
        .func = l->function,
        .gridDimX = l->groups[0],
        .gridDimY = l->groups[1],
        .gridDimZ = l->groups[2],
        .blockDimX = l->group_size[0],
        .blockDimY = l->group_size[1],
        .blockDimZ = l->group_size[2],
        .sharedMemBytes = l->local_memory,
        .extra = extra->list,
    };
}

static CUDA_MEMCPY3D copy_params(const bound_copy_t *c)
{
    return (CUDA_MEMCPY3D){
        .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
        .srcDevice = c->source,
        .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
        .dstDevice = c->target,
        .WidthInBytes = c->size,
        .Height = 1,
        .Depth = 1,
    };
}

static CUDA_MEMSET_NODE_PARAMS fill_params(const bound_fill_t *f)
{
    uint32_t mask = f->size == 4 ? UINT32_MAX : (1u << f->size * 8) - 1;
    return (CUDA_MEMSET_NODE_PARAMS){
        .dst = f->target,
        .value = f->pattern & mask,
        .elementSize = f->size,
        .width = f->count,
        .height = 1,
    };
}

static const CUgraphNode *after_of(const stream_place_t *place)
{
    return (const CUgraphNode *)(const void *)place->after;
}

static CUgraphNode *node_of(stream_node_h *node)
{
    return (CUgraphNode *)(void *)node;
}

static keel_status_t graph_launch(stream_vendor_t *v, const stream_place_t *place,
                                  const stream_launch_t *launch, stream_node_h *node)
{
    stream_extra_t extra;
    CUDA_KERNEL_NODE_PARAMS params = kernel_params(launch, &extra);
    return CUDA_CALL(v->symbols, cuGraphAddKernelNode, node_of(node), place->graph, after_of(place),
                     place->count, &params);
}

static keel_status_t graph_copy(stream_vendor_t *v, const stream_place_t *place,
                                const bound_copy_t *copy, stream_node_h *node)
{
    CUDA_MEMCPY3D params = copy_params(copy);
    return CUDA_CALL(v->symbols, cuGraphAddMemcpyNode, node_of(node), place->graph, after_of(place),
                     place->count, &params, v->context);
}

static keel_status_t graph_fill(stream_vendor_t *v, const stream_place_t *place,
                                const bound_fill_t *fill, stream_node_h *node)
{
    CUDA_MEMSET_NODE_PARAMS params = fill_params(fill);
    return CUDA_CALL(v->symbols, cuGraphAddMemsetNode, node_of(node), place->graph, after_of(place),
                     place->count, &params, v->context);
}

static keel_status_t graph_join(stream_vendor_t *v, const stream_place_t *place,
                                stream_node_h *node)
{
    return CUDA_CALL(v->symbols, cuGraphAddEmptyNode, node_of(node), place->graph, after_of(place),
                     place->count);
}

static keel_status_t graph_order(stream_vendor_t *v, stream_graph_h graph, stream_node_h first,
                                 stream_node_h then)
{
    CUgraphNode from = first, to = then;
    return CUDA_CALL(v->symbols, cuGraphAddDependencies, graph, &from, &to, 1);
}

static keel_status_t graph_condition(stream_vendor_t *v, stream_graph_h graph, uint64_t *condition)
{
    enum { ASSIGN_DEFAULT = 1 };
    return CUDA_CALL(v->symbols, cuGraphConditionalHandleCreate, condition, graph, v->context, 0,
                     ASSIGN_DEFAULT);
}

static keel_status_t graph_branch(stream_vendor_t *v, const stream_place_t *place,
                                  stream_condition_t kind, uint64_t condition, stream_node_h *node,
                                  stream_graph_h *body)
{
    CUgraphNodeParams params = {
        .type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
        .conditional =
            {
                .handle = condition,
                .type = kind == STREAM_IF ? CU_GRAPH_COND_TYPE_IF : CU_GRAPH_COND_TYPE_WHILE,
                .size = 1,
                .ctx = v->context,
            },
    };
    KEEL_TRY(CUDA_CALL(v->symbols, cuGraphAddNode, node_of(node), place->graph, after_of(place),
                       place->count, &params));
    *body = params.conditional.phGraph_out[0];
    return NULL;
}

static keel_status_t graph_updatable(stream_vendor_t *v, stream_node_h node, uint64_t *handle)
{
    CUlaunchAttributeValue value = {.deviceUpdatableKernelNode = {.deviceUpdatable = 1}};
    KEEL_TRY(CUDA_CALL(v->symbols, cuGraphKernelNodeSetAttribute, node,
                       CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &value));
    *handle = (uint64_t)(uintptr_t)value.deviceUpdatableKernelNode.devNode;
    return NULL;
}

static keel_status_t exec_set_launch(stream_vendor_t *v, stream_exec_h exec, stream_node_h node,
                                     const stream_launch_t *launch)
{
    stream_extra_t extra;
    CUDA_KERNEL_NODE_PARAMS params = kernel_params(launch, &extra);
    return CUDA_CALL(v->symbols, cuGraphExecKernelNodeSetParams, exec, node, &params);
}

static keel_status_t exec_set_copy(stream_vendor_t *v, stream_exec_h exec, stream_node_h node,
                                   const bound_copy_t *copy)
{
    CUDA_MEMCPY3D params = copy_params(copy);
    return CUDA_CALL(v->symbols, cuGraphExecMemcpyNodeSetParams, exec, node, &params, v->context);
}

static keel_status_t exec_set_fill(stream_vendor_t *v, stream_exec_h exec, stream_node_h node,
                                   const bound_fill_t *fill)
{
    CUDA_MEMSET_NODE_PARAMS params = fill_params(fill);
    return CUDA_CALL(v->symbols, cuGraphExecMemsetNodeSetParams, exec, node, &params, v->context);
}

void cuda_fill_graph(stream_api_t *api)
{
    STREAM_GRAPH_SLOTS(STREAM_FILL)
    STREAM_CONDITION_SLOTS(STREAM_FILL)
    STREAM_UPDATABLE_SLOTS(STREAM_FILL)
}
