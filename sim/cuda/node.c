// SPDX-License-Identifier: Apache-2.0
// Nodes of graphs: how they are added, asked and changed.
#include "cuda/call.h"
#include "cuda/graph.h"
#include "cuda/module.h"

#include <stdlib.h>
#include <string.h>

CUresult node_work(CUgraphNodeType type, const CUgraphNodeParams *params, work_t *out)
{
    *out = (work_t){.maker = call_name()};
    switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
        const CUDA_KERNEL_NODE_PARAMS_v3 *k = &params->kernel;
        const uint32_t dims[] = {k->gridDimX,  k->gridDimY,  k->gridDimZ,
                                 k->blockDimX, k->blockDimY, k->blockDimZ};
        CUfunction function = k->func ? k->func : (CUfunction)k->kern;
        return kernel_work(out, function, dims, k->sharedMemBytes, k->kernelParams, k->extra);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY: {
        const CUDA_MEMCPY3D *c = &params->memcpy.copyParams;
        if (!c->WidthInBytes || !c->Height || !c->Depth) return CUDA_ERROR_INVALID_VALUE;
        CUresult error = copy_work(out, c);
        if (error) return error;
        return work_check(out, WHEN_ENQUEUED) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    case CU_GRAPH_NODE_TYPE_MEMSET: {
        const CUDA_MEMSET_NODE_PARAMS_v2 *f = &params->memset;
        const CUDA_MEMSET_NODE_PARAMS fill = {f->dst,         f->pitch, f->value,
                                              f->elementSize, f->width, f->height};
        if (!f->width || !f->height) return CUDA_ERROR_INVALID_VALUE;
        CUresult error = fill_work(out, &fill);
        if (error) return error;
        return work_check(out, WHEN_ENQUEUED) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    case CU_GRAPH_NODE_TYPE_HOST:
        if (!params->host.fn) return CUDA_ERROR_INVALID_VALUE;
        out->kind = WORK_HOST;
        out->host = (host_work_t){.function = params->host.fn, .user = params->host.userData};
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return memop_work(out, params->memOp.count, params->memOp.paramArray);
    default: return CUDA_SUCCESS;
    }
}

// The context that a node runs in: its own, or that of its function, or the current one.
static CUcontext node_context(CUcontext current, const CUgraphNodeParams *params)
{
    CUcontext context = NULL;
    switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: context = params->kernel.ctx; break;
    case CU_GRAPH_NODE_TYPE_MEMCPY: context = params->memcpy.copyCtx; break;
    case CU_GRAPH_NODE_TYPE_MEMSET: context = params->memset.ctx; break;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: context = params->memOp.ctx; break;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: context = params->conditional.ctx; break;
    default: break;
    }
    return context ? context : current;
}

static condition_t *condition_of(CUgraphConditionalHandle handle)
{
    condition_t *condition = (condition_t *)(uintptr_t)handle;
    return IS(condition, MAGIC_CONDITION) ? condition : NULL;
}

static bool bodies_valid(const CUDA_CONDITIONAL_NODE_PARAMS *p)
{
    switch (p->type) {
    case CU_GRAPH_COND_TYPE_IF: return p->size == 1 || p->size == 2;
    case CU_GRAPH_COND_TYPE_WHILE: return p->size == 1;
    case CU_GRAPH_COND_TYPE_SWITCH: return p->size > 0 && p->size <= 4096;
    default: return false;
    }
}

static CUresult conditional_fill(CUgraphNode node, CUDA_CONDITIONAL_NODE_PARAMS *params)
{
    condition_t *condition = condition_of(params->handle);
    if (!condition || condition->node || !bodies_valid(params)) return CUDA_ERROR_INVALID_VALUE;
    node->bodies = calloc(params->size, sizeof *node->bodies);
    if (!node->bodies) return CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; i < params->size; i++) {
        node->bodies[i] = graph_create(NULL);
        if (!node->bodies[i]) return CUDA_ERROR_OUT_OF_MEMORY;
        node->bodies[i]->is_body = true;
        node->body_count++;
    }
    node->condition = condition;
    node->condition_type = params->type;
    condition->node = node;
    params->phGraph_out = node->bodies;
    return CUDA_SUCCESS;
}

static CUresult child_fill(CUgraphNode node, const CUDA_CHILD_GRAPH_NODE_PARAMS *params)
{
    if (!IS(params->graph, MAGIC_GRAPH) || params->graph == node->graph) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (params->ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE ||
        graph_has(params->graph, CU_GRAPH_NODE_TYPE_CONDITIONAL)) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    node->child = graph_clone(params->graph, NULL);
    return node->child ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult event_fill(CUgraphNode node, CUevent event)
{
    if (!event_exists(event)) return CUDA_ERROR_INVALID_HANDLE;
    node->event = event;
    return CUDA_SUCCESS;
}

static CUresult node_fill(CUgraphNode node, CUgraphNodeParams *params)
{
    switch (params->type) {
    case CU_GRAPH_NODE_TYPE_GRAPH: return child_fill(node, &params->graph);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return event_fill(node, params->eventRecord.event);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return event_fill(node, params->eventWait.event);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: return conditional_fill(node, &params->conditional);
    case CU_GRAPH_NODE_TYPE_KERNEL:
    case CU_GRAPH_NODE_TYPE_MEMCPY:
    case CU_GRAPH_NODE_TYPE_MEMSET:
    case CU_GRAPH_NODE_TYPE_HOST:
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return node_work(params->type, params, &node->work);
    default: return CUDA_ERROR_NOT_SUPPORTED;
    }
}

// Where a node goes.
typedef struct place_t {
    CUgraph graph;
    const CUgraphNode *dependencies;
    size_t count;
} place_t;

static CUresult node_make(call_t *call, CUgraphNode *out, place_t place, CUgraphNodeParams *params)
{
    CUgraphNode node;
    CUcontext context = node_context(call->context, params);
    if (context && !IS(context, MAGIC_CONTEXT)) return CUDA_ERROR_INVALID_CONTEXT;
    CUresult error =
        node_add(place.graph, params->type, place.dependencies, place.count, out ? &node : NULL);
    if (error) return error;
    node->context = context;
    node->as = *params;
    error = node_fill(node, params);
    if (error) {
        node_remove(node);
        return error;
    }
    *out = node;
    return CUDA_SUCCESS;
}

CUresult cuGraphAddNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies,
                        size_t count, CUgraphNodeParams *params)
{
    USES(graph);
    CALL(CALL_PLAIN);
    if (!params) return CUDA_ERROR_INVALID_VALUE;
    return node_make(&call, out, (place_t){graph, dependencies, count}, params);
}

CUresult cuGraphAddNode_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies,
                           const CUgraphEdgeData *data, size_t count, CUgraphNodeParams *params)
{
    USES(graph);
    CALL(CALL_PLAIN);
    if (!params) return CUDA_ERROR_INVALID_VALUE;
    return node_make(&call, out, (place_t){graph, dependencies, count}, params);
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies,
                                 size_t count, const CUDA_KERNEL_NODE_PARAMS *kernel)
{
    USES(graph);
    CALL(CALL_PLAIN);
    if (!kernel) return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    memcpy(&params.kernel, kernel, sizeof *kernel);
    return node_make(&call, out, (place_t){graph, dependencies, count}, &params);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies,
                              size_t count, const CUDA_MEMCPY3D *copy, CUcontext context)
{
    USES(graph);
    CALL(CALL_PLAIN);
    if (!copy) return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};
    params.memcpy.copyCtx = context;
    params.memcpy.copyParams = *copy;
    return node_make(&call, out, (place_t){graph, dependencies, count}, &params);
}

static void memset_params(CUgraphNodeParams *out, const CUDA_MEMSET_NODE_PARAMS *fill,
                          CUcontext context)
{
    *out = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_MEMSET};
    out->memset = (CUDA_MEMSET_NODE_PARAMS_v2){
        fill->dst, fill->pitch, fill->value, fill->elementSize, fill->width, fill->height, context};
}

CUresult cuGraphAddMemsetNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies,
                              size_t count, const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext context)
{
    USES(graph);
    CALL(CALL_PLAIN);
    CUgraphNodeParams params;
    if (!fill) return CUDA_ERROR_INVALID_VALUE;
    memset_params(&params, fill, context);
    return node_make(&call, out, (place_t){graph, dependencies, count}, &params);
}

CUresult cuGraphAddHostNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies,
                            size_t count, const CUDA_HOST_NODE_PARAMS *host)
{
    USES(graph);
    CALL(CALL_PLAIN);
    if (!host) return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_HOST};
    params.host.fn = host->fn;
    params.host.userData = host->userData;
    return node_make(&call, out, (place_t){graph, dependencies, count}, &params);
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies,
                                  size_t count, CUgraph child)
{
    USES(graph);
    CALL(CALL_PLAIN);
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
    params.graph.graph = child;
    return node_make(&call, out, (place_t){graph, dependencies, count}, &params);
}

CUresult cuGraphAddEmptyNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies,
                             size_t count)
{
    USES(graph);
    CALL(CALL_PLAIN);
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
    return node_make(&call, out, (place_t){graph, dependencies, count}, &params);
}

CUresult cuGraphAddEventRecordNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies,
                                   size_t count, CUevent event)
{
    USES(graph);
    CALL(CALL_PLAIN);
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD};
    params.eventRecord.event = event;
    return node_make(&call, out, (place_t){graph, dependencies, count}, &params);
}

CUresult cuGraphAddEventWaitNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies,
                                 size_t count, CUevent event)
{
    USES(graph);
    CALL(CALL_PLAIN);
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT};
    params.eventWait.event = event;
    return node_make(&call, out, (place_t){graph, dependencies, count}, &params);
}

CUresult cuGraphAddBatchMemOpNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies,
                                  size_t count, const CUDA_BATCH_MEM_OP_NODE_PARAMS *ops)
{
    USES(graph);
    CALL(CALL_PLAIN);
    if (!ops) return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP};
    memcpy(&params.memOp, ops, sizeof *ops);
    return node_make(&call, out, (place_t){graph, dependencies, count}, &params);
}

static CUresult node_set(CUgraphNode node, CUgraphNodeParams *params)
{
    work_t work;
    if (!IS(node, MAGIC_NODE) || node->type != params->type) return CUDA_ERROR_INVALID_VALUE;
    if (node->type == CU_GRAPH_NODE_TYPE_CONDITIONAL || node->type == CU_GRAPH_NODE_TYPE_GRAPH) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (node->event) return node_fill(node, params);
    CUresult error = node_work(node->type, params, &work);
    if (error) return error;
    work_finish(&node->work);
    node->work = work;
    node->as = *params;
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *params)
{
    USES(node_graph(node));
    CALL(CALL_PLAIN);
    return params ? node_set(node, params) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *kernel)
{
    USES(node_graph(node));
    CALL(CALL_PLAIN);
    if (!kernel) return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    memcpy(&params.kernel, kernel, sizeof *kernel);
    return node_set(node, &params);
}

// Parameters of a kernel are given back as pointers into the node's own copy.
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *out)
{
    USES(node_graph(node));
    CALL(CALL_PLAIN);
    if (!IS(node, MAGIC_NODE) || node->type != CU_GRAPH_NODE_TYPE_KERNEL || !out) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const cuda_host_entry_t *entry = node->work.kernel.function->entry;
    void **pointers = realloc(node->pointers, (entry->param_count + 1) * sizeof *pointers);
    if (!pointers) return CUDA_ERROR_OUT_OF_MEMORY;
    node->pointers = pointers;
    for (uint32_t i = 0; i < entry->param_count; i++) {
        pointers[i] = (char *)node->work.kernel.params + entry->params[i].offset;
    }
    memcpy(out, &node->as.kernel, sizeof *out);
    out->kernelParams = pointers;
    out->extra = NULL;
    return CUDA_SUCCESS;
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D *out)
{
    USES(node_graph(node));
    CALL(CALL_PLAIN);
    if (!IS(node, MAGIC_NODE) || node->type != CU_GRAPH_NODE_TYPE_MEMCPY || !out) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = node->as.memcpy.copyParams;
    return CUDA_SUCCESS;
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *copy)
{
    USES(node_graph(node));
    CALL(CALL_PLAIN);
    if (!copy) return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};
    params.memcpy.copyParams = *copy;
    return node_set(node, &params);
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *out)
{
    USES(node_graph(node));
    CALL(CALL_PLAIN);
    if (!IS(node, MAGIC_NODE) || node->type != CU_GRAPH_NODE_TYPE_MEMSET || !out) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    memcpy(out, &node->as.memset, sizeof *out);
    return CUDA_SUCCESS;
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *fill)
{
    USES(node_graph(node));
    CALL(CALL_PLAIN);
    CUgraphNodeParams params;
    if (!fill) return CUDA_ERROR_INVALID_VALUE;
    memset_params(&params, fill, NULL);
    return node_set(node, &params);
}

CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS *out)
{
    USES(node_graph(node));
    CALL(CALL_PLAIN);
    if (!IS(node, MAGIC_NODE) || node->type != CU_GRAPH_NODE_TYPE_HOST || !out) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = (CUDA_HOST_NODE_PARAMS){node->as.host.fn, node->as.host.userData};
    return CUDA_SUCCESS;
}

CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS *host)
{
    USES(node_graph(node));
    CALL(CALL_PLAIN);
    if (!host) return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_HOST};
    params.host.fn = host->fn;
    params.host.userData = host->userData;
    return node_set(node, &params);
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *out)
{
    USES(node_graph(node));
    CALL(CALL_PLAIN);
    if (!IS(node, MAGIC_NODE) || !node->child || !out) return CUDA_ERROR_INVALID_VALUE;
    *out = node->child;
    return CUDA_SUCCESS;
}

static CUresult event_get(CUgraphNode node, CUgraphNodeType type, CUevent *out)
{
    if (!IS(node, MAGIC_NODE) || node->type != type || !out) return CUDA_ERROR_INVALID_VALUE;
    *out = node->event;
    return CUDA_SUCCESS;
}

static CUresult event_set(CUgraphNode node, CUgraphNodeType type, CUevent event)
{
    if (!IS(node, MAGIC_NODE) || node->type != type) return CUDA_ERROR_INVALID_VALUE;
    return event_fill(node, event);
}

CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent *out)
{
    USES(node_graph(node));
    CALL(CALL_PLAIN);
    return event_get(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, out);
}

CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event)
{
    USES(node_graph(node));
    CALL(CALL_PLAIN);
    return event_set(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent *out)
{
    USES(node_graph(node));
    CALL(CALL_PLAIN);
    return event_get(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, out);
}

CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event)
{
    USES(node_graph(node));
    CALL(CALL_PLAIN);
    return event_set(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

static bool is_kernel(CUgraphNode node)
{
    return IS(node, MAGIC_NODE) && node->type == CU_GRAPH_NODE_TYPE_KERNEL;
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, CUkernelNodeAttrID attribute,
                                       CUkernelNodeAttrValue *out)
{
    USES(node_graph(node));
    CALL(CALL_PLAIN);
    if (!is_kernel(node) || !out) return CUDA_ERROR_INVALID_VALUE;
    memset(out, 0, sizeof *out);
    switch (attribute) {
    case CU_LAUNCH_ATTRIBUTE_PRIORITY: out->priority = node->priority; break;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE: out->cooperative = 0; break;
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        out->deviceUpdatableKernelNode.deviceUpdatable = node->device != NULL;
        out->deviceUpdatableKernelNode.devNode = node->device;
        break;
    default: return CUDA_ERROR_NOT_SUPPORTED;
    }
    return CUDA_SUCCESS;
}

static CUresult updatable_set(CUgraphNode node, CUkernelNodeAttrValue *value)
{
    int wanted = value->deviceUpdatableKernelNode.deviceUpdatable;
    if (wanted != 0 && wanted != 1) return CUDA_ERROR_INVALID_VALUE;
    // What has opted in cannot opt out.
    if (wanted == 0) return node->device ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    if (!node->device) node->device = calloc(1, sizeof *node->device);
    if (!node->device) return CUDA_ERROR_OUT_OF_MEMORY;
    node->device->magic = MAGIC_DEVICE_NODE;
    value->deviceUpdatableKernelNode.devNode = node->device;
    return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUkernelNodeAttrID attribute,
                                       const CUkernelNodeAttrValue *value)
{
    USES(node_graph(node));
    CALL(CALL_PLAIN);
    if (!is_kernel(node) || !value) return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_LAUNCH_ATTRIBUTE_PRIORITY: node->priority = value->priority; return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        return value->cooperative ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        // The declaration says const, and the handle is returned through it all the same.
        return updatable_set(node, (CUkernelNodeAttrValue *)(uintptr_t)value);
    default: return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle *out, CUgraph graph,
                                        CUcontext context, unsigned int initial, unsigned int flags)
{
    USES(graph);
    CALL(CALL_PLAIN);
    if (!out || !IS(graph, MAGIC_GRAPH) || flags & ~(unsigned)CU_GRAPH_COND_ASSIGN_DEFAULT) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    condition_t *condition = calloc(1, sizeof *condition);
    if (!condition) return CUDA_ERROR_OUT_OF_MEMORY;
    *condition = (condition_t){.magic = MAGIC_CONDITION,
                               .next = graph->conditions,
                               .context = context,
                               .initial = initial,
                               .assigns = flags & CU_GRAPH_COND_ASSIGN_DEFAULT};
    graph->conditions = condition;
    *out = (uintptr_t)condition;
    return CUDA_SUCCESS;
}
