// SPDX-License-Identifier: Apache-2.0
// Executable graphs: how they are made, and what of them may be changed.
#include "cuda/arena.h"
#include "cuda/call.h"
#include "cuda/engine.h"
#include "cuda/graph.h"
#include "cuda/module.h"
#include "cuda/variant.h"

#include <stdlib.h>
#include <string.h>

static void step_finish(step_t *step)
{
    work_finish(&step->work);
    for (unsigned i = 0; i < step->part_count; i++) plan_release(step->parts[i]);
    free(step->parts);
    free(step->next);
}

void plan_release(plan_t *plan)
{
    if (!plan || --plan->references) return;
    for (size_t i = 0; i < plan->count; i++) step_finish(&plan->steps[i]);
    graph_release(plan->graph);
    free(plan->steps);
    free(plan);
}

static plan_t *plan_new(size_t count)
{
    static uint32_t plans; // under the lock
    plan_t *plan = calloc(1, sizeof *plan);
    step_t *steps = calloc(count + 1, sizeof *steps);
    if (!plan || !steps) {
        free(plan);
        free(steps);
        return NULL;
    }
    *plan = (plan_t){.references = 1, .steps = steps, .count = count, .number = ++plans};
    return plan;
}

static bool step_clone(step_t *out, const step_t *step)
{
    *out = *step;
    out->part_count = out->next_count = 0;
    out->parts = NULL;
    out->next = NULL;
    out->work.kind = WORK_NONE;
    if (!work_clone(&out->work, &step->work)) return false;
    if (step->next_count) {
        out->next = malloc(step->next_count * sizeof *out->next);
        if (!out->next) return false;
        memcpy(out->next, step->next, step->next_count * sizeof *out->next);
        out->next_count = step->next_count;
    }
    if (step->part_count) out->parts = calloc(step->part_count, sizeof *out->parts);
    if (step->part_count && !out->parts) return false;
    for (unsigned i = 0; i < step->part_count; i++) {
        out->parts[i] = plan_clone(step->parts[i]);
        if (!out->parts[i]) return false;
        out->part_count++;
    }
    return true;
}

plan_t *plan_clone(const plan_t *plan)
{
    plan_t *copy = plan_new(plan->count);
    if (copy && plan->graph) {
        copy->graph = plan->graph;
        copy->graph->references++;
    }
    for (size_t i = 0; copy && i < plan->count; i++) {
        if (step_clone(&copy->steps[i], &plan->steps[i])) continue;
        plan_release(copy);
        return NULL;
    }
    return copy;
}

bool plan_fits(const plan_t *plan, work_fits_fn fits, const void *what)
{
    for (size_t i = 0; i < plan->count; i++) {
        const step_t *step = &plan->steps[i];
        if (step->enabled && fits(&step->work, what)) return true;
        for (unsigned k = 0; k < step->part_count; k++) {
            if (plan_fits(step->parts[k], fits, what)) return true;
        }
    }
    return false;
}

step_t *plan_find(plan_t *plan, CUgraphNode node)
{
    if (node->index < plan->count && plan->steps[node->index].node == node) {
        return &plan->steps[node->index];
    }
    for (size_t i = 0; i < plan->count; i++) {
        step_t *step = &plan->steps[i];
        if (step->node == node) return step;
        for (unsigned k = 0; k < step->part_count; k++) {
            step_t *inner = plan_find(step->parts[k], node);
            if (inner) return inner;
        }
    }
    return NULL;
}

static operand_t operand_of(uint64_t address)
{
    const range_t *range = arena_find(address);
    if (!range) return (operand_t){0};
    int kind =
        range->kind == RANGE_POOL || range->kind == RANGE_VIRTUAL ? RANGE_DEVICE : (int)range->kind;
    return (operand_t){1 + kind, range->device, range->context};
}

static bool operand_same(operand_t a, operand_t b)
{
    return a.kind == b.kind && a.device == b.device && a.context == b.context;
}

static void operands_note(step_t *step)
{
    if (step->work.kind == WORK_COPY) {
        step->from = operand_of(step->work.copy.from.address);
        step->to = operand_of(step->work.copy.to.address);
    }
    if (step->work.kind == WORK_FILL) step->to = operand_of(step->work.fill.address);
}

static bool allowed_in_body(CUgraphNodeType type)
{
    return type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_EMPTY ||
           type == CU_GRAPH_NODE_TYPE_GRAPH || type == CU_GRAPH_NODE_TYPE_MEMSET ||
           type == CU_GRAPH_NODE_TYPE_MEMCPY || type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
}

// What the host says overwrites what devices said.
static bool device_reset(step_t *step)
{
    const kernel_work_t *kernel = &step->work.kernel;
    size_t size = kernel->function->entry->param_size; // a launch may give more, a device not
    void *params = realloc(step->device->params, size + 1);
    if (!params) return false;
    memcpy(params, kernel->params, size);
    step->device->params = params;
    step->device->size = size;
    step->device->has_grid = step->device->has_enabled = false;
    return true;
}

static CUresult step_parts(step_t *step, CUgraphNode node, bool in_body,
                           CUDA_GRAPH_INSTANTIATE_PARAMS *why)
{
    unsigned count = node->child ? 1 : node->body_count;
    if (count == 0) return CUDA_SUCCESS;
    step->parts = calloc(count, sizeof *step->parts);
    if (!step->parts) return CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; i < count; i++) {
        CUgraph part = node->child ? node->child : node->bodies[i];
        CUresult error = plan_create(part, in_body || !node->child, &step->parts[i], why);
        if (error) return error;
        step->part_count++;
    }
    return CUDA_SUCCESS;
}

static CUresult step_fill(step_t *step, CUgraphNode node, bool in_body,
                          CUDA_GRAPH_INSTANTIATE_PARAMS *why)
{
    why->hErrNode_out = node;
    if (in_body && !allowed_in_body(node->type)) {
        why->result_out = CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED;
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    *step = (step_t){.node = node,
                     .context = node->context,
                     .type = node->type,
                     .event = node->event,
                     .condition_type = node->condition_type,
                     .condition = node->condition,
                     .device = node->device,
                     .enabled = true,
                     .needs = (unsigned)node->dependency_count};
    if (!work_clone(&step->work, &node->work)) return CUDA_ERROR_OUT_OF_MEMORY;
    operands_note(step);
    if (step->device && !device_reset(step)) return CUDA_ERROR_OUT_OF_MEMORY;
    return step_parts(step, node, in_body, why);
}

static bool edges_fill(plan_t *plan, CUgraph graph)
{
    for (size_t i = 0; i < graph->count; i++) {
        for (size_t k = 0; k < graph->nodes[i]->dependency_count; k++) {
            plan->steps[graph->nodes[i]->dependencies[k]->index].next_count++;
        }
    }
    for (size_t i = 0; i < plan->count; i++) {
        step_t *step = &plan->steps[i];
        step->next = malloc((step->next_count + 1) * sizeof *step->next);
        if (!step->next) return false;
        step->next_count = 0;
    }
    for (size_t i = 0; i < graph->count; i++) {
        for (size_t k = 0; k < graph->nodes[i]->dependency_count; k++) {
            step_t *from = &plan->steps[graph->nodes[i]->dependencies[k]->index];
            from->next[from->next_count++] = (uint32_t)i;
        }
    }
    return true;
}

// Whether every step can be reached in an order of dependencies.
static bool is_acyclic(const plan_t *plan)
{
    unsigned *needs = malloc((plan->count + 1) * sizeof *needs);
    uint32_t *ready = malloc((plan->count + 1) * sizeof *ready);
    size_t count = 0, done = 0;
    if (!needs || !ready) abort();
    for (size_t i = 0; i < plan->count; i++) {
        needs[i] = plan->steps[i].needs;
        if (needs[i] == 0) ready[count++] = (uint32_t)i;
    }
    for (; done < count; done++) {
        const step_t *step = &plan->steps[ready[done]];
        for (unsigned k = 0; k < step->next_count; k++) {
            if (--needs[step->next[k]] == 0) ready[count++] = step->next[k];
        }
    }
    free(needs);
    free(ready);
    return done == plan->count;
}

CUresult plan_create(CUgraph graph, bool in_body, plan_t **out, CUDA_GRAPH_INSTANTIATE_PARAMS *why)
{
    plan_t *plan = plan_new(graph->count);
    CUresult error = plan ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    for (const condition_t *c = graph->conditions; c && !error; c = c->next) {
        if (c->node) continue;
        why->result_out = CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED;
        why->hErrNode_out = NULL;
        error = CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; !error && i < graph->count; i++) {
        graph->nodes[i]->index = i;
        error = step_fill(&plan->steps[i], graph->nodes[i], in_body, why);
    }
    if (!error && !edges_fill(plan, graph)) error = CUDA_ERROR_OUT_OF_MEMORY;
    if (!error && !is_acyclic(plan)) {
        why->result_out = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
        error = CUDA_ERROR_INVALID_VALUE;
    }
    if (error) {
        plan_release(plan);
        return error;
    }
    why->hErrNode_out = NULL;
    *out = plan;
    return CUDA_SUCCESS;
}

// Graphs lie in slabs of device memory, as seen on a card: the first has room for some, each that
// follows for more, and what was got stays. A new one waits for all that the
// context has, and no thread can enqueue anything meanwhile. The first had room for 23 to 33 in a
// program without other graphs, and for fewer than 9 in one with some: here it has for few. A graph
// takes one place, and more for nodes that the device may change: where there was room for 44 with
// one such node, it was enough for 37 with 100, 15 with 250 and 3 with 1000.
static void make_room(CUgraphExec exec)
{
    enum { FIRST = 4, MORE = 43, NODES = 80 };
    CUcontext context = exec->context;
    if (has_quirk(QUIRK_ROOMY)) return;
    exec->places = 1 + exec->updatable / NODES;
    context->places += exec->places;
    if (!context->room) context->room = FIRST;
    if (context->places <= context->room) return;
    while (context->places > context->room) context->room += MORE;
    context_settle(context);
}

static CUresult instantiate(call_t *call, CUgraphExec *out, CUgraph graph,
                            CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    params->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
    params->hErrNode_out = NULL;
    cuuint64_t known = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                       CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                       CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
    if (!out || !IS(graph, MAGIC_GRAPH) || graph->is_body || params->flags & ~known) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    size_t updatable = graph_updatable(graph);
    bool single = updatable || graph_has(graph, CU_GRAPH_NODE_TYPE_CONDITIONAL);
    if (single && graph->instances) {
        complain("%s: a graph with conditional or device-updatable nodes has an executable graph "
                 "already, and may have but one",
                 call_name());
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUgraphExec exec = calloc(1, sizeof *exec);
    if (!exec) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult error = plan_create(graph, false, &exec->plan, params);
    if (error) {
        free(exec);
        return error;
    }
    exec->magic = MAGIC_EXEC;
    exec->context = call->context;
    exec->flags = params->flags;
    if (params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) {
        CUstream stream = stream_of(call->context, params->hUploadStream);
        exec->uploaded = stream ? stream->id : 0;
    }
    if (single) {
        exec->plan->graph = graph;
        graph->references++;
        graph->instances++;
    }
    exec->updatable = updatable;
    if (exec->context) {
        exec->context->execs++;
        context_list(exec->context, &exec->kin);
        make_room(exec);
    }
    params->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    *out = exec;
    return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
    USES(graph);
    CALL(CALL_PLAIN);
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = flags};
    if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) return CUDA_ERROR_INVALID_VALUE;
    return instantiate(&call, out, graph, &params);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *out, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    USES(graph);
    CALL(CALL_PLAIN);
    return params ? instantiate(&call, out, graph, params) : CUDA_ERROR_INVALID_VALUE;
}

// Launches that are under way keep their plan; but one with nodes that the device may change waits
// for all of them.
CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    USES(exec);
    CALL(CALL_RELEASE);
    if (!IS(exec, MAGIC_EXEC)) return CUDA_ERROR_INVALID_VALUE;
    if (exec->updatable) context_wait(exec->context);
    if (exec->context && exec->context->places >= exec->places)
        exec->context->places -= exec->places;
    if (exec->plan->graph) exec->plan->graph->instances--;
    if (exec->context && exec->context->execs) exec->context->execs--;
    plan_release(exec->plan);
    mark_release(exec->last);
    kin_remove(&exec->kin);
    object_bury(exec);
    use_end(&use);
    return call.late;
}

CUresult cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t *out)
{
    USES(exec);
    CALL(CALL_PLAIN);
    if (!IS(exec, MAGIC_EXEC) || !out) return CUDA_ERROR_INVALID_VALUE;
    *out = exec->flags;
    return CUDA_SUCCESS;
}

static bool plan_has_updatable(const plan_t *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        if (plan->steps[i].device) return true;
        for (unsigned k = 0; k < plan->steps[i].part_count; k++) {
            if (plan_has_updatable(plan->steps[i].parts[k])) return true;
        }
    }
    return false;
}

static bool plan_events_exist(const plan_t *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        const step_t *step = &plan->steps[i];
        if (step->event && !event_exists(step->event)) {
            complain("%s: a graph records or waits for an event that is destroyed", call_name());
            return false;
        }
        for (unsigned k = 0; k < step->part_count; k++) {
            if (!plan_events_exist(step->parts[k])) return false;
        }
    }
    return true;
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream handle)
{
    USES(exec);
    CALL_ON(handle, CALL_CONTEXT);
    if (!IS(exec, MAGIC_EXEC)) return CUDA_ERROR_INVALID_VALUE;
    CUstream stream = stream_of(call.context, handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    exec->uploaded = stream->id;
    work_t work = {.kind = WORK_NONE}; // which takes room on the stream, as on an H200
    return stream_work(stream, &work);
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream handle)
{
    USES(exec);
    CALL_ON(handle, CALL_CONTEXT);
    if (!IS(exec, MAGIC_EXEC)) return CUDA_ERROR_INVALID_VALUE;
    CUstream stream = stream_of(call.context, handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    // On another stream than that of the upload a card lost what a kernel changed before the first
    // launch.
    if (exec->uploaded != stream->id && plan_has_updatable(exec->plan)) {
        complain(
            "%s: a graph with device-updatable nodes must be uploaded to the stream that it is "
            "launched on, and again after changes from the host",
            call_name());
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!plan_events_exist(exec->plan)) return CUDA_ERROR_INVALID_VALUE;
    command_t *command = command_create(COMMAND_GRAPH);
    command->launch = launch_create(exec);
    // Launches of one executable graph come after each other, in whatever streams.
    if (exec->last) stream_wait(stream, exec->last);
    mark_release(exec->last);
    exec->last = NULL;
    stream_push(stream, command);
    exec->last = stream_mark(stream);
    return CUDA_SUCCESS;
}

// The step of a node, in a plan that no launch has.
static CUresult step_open(CUgraphExec exec, CUgraphNode node, CUgraphNodeType type, step_t **out)
{
    if (!IS(exec, MAGIC_EXEC) || !IS(node, MAGIC_NODE)) return CUDA_ERROR_INVALID_VALUE;
    if (!IS(node->graph, MAGIC_GRAPH)) {
        complain("%s: the graph that has the node is destroyed, and its nodes with it",
                 call_name());
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (exec->plan->references > 1) {
        plan_t *plan = plan_clone(exec->plan);
        if (!plan) return CUDA_ERROR_OUT_OF_MEMORY;
        plan_release(exec->plan);
        exec->plan = plan;
    }
    *out = plan_find(exec->plan, node);
    return *out && (*out)->type == type ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static bool is_line(const copy_work_t *copy)
{
    return copy->height == 1 && copy->depth == 1;
}

// Whether a step may do this instead of what it does.
static bool change_allowed(const step_t *step, const work_t *work)
{
    switch (work->kind) {
    case WORK_KERNEL:
        return work->kernel.function->module->context ==
               step->work.kernel.function->module->context;
    case WORK_COPY:
        return is_line(&step->work.copy) && is_line(&work->copy) &&
               step->work.copy.from.type == work->copy.from.type &&
               step->work.copy.to.type == work->copy.to.type &&
               operand_same(step->from, operand_of(work->copy.from.address)) &&
               operand_same(step->to, operand_of(work->copy.to.address));
    case WORK_FILL:
        if (step->work.fill.height != work->fill.height) return false;
        if (work->fill.height > 1 && (step->work.fill.width != work->fill.width ||
                                      step->work.fill.pitch != work->fill.pitch ||
                                      step->work.fill.element != work->fill.element)) {
            return false;
        }
        return operand_same(step->to, operand_of(work->fill.address));
    case WORK_MEMOPS: return step->work.memops.count == work->memops.count;
    default: return true;
    }
}

// What device code may change is not the host's while a launch is under way: both write to one
// place.
static bool is_under_way(CUgraphExec exec)
{
    if (!exec->last || exec->last->done) return false;
    complain("%s: a device-updatable node is changed by the host while its graph is under way",
             call_name());
    return true;
}

// Takes the work, if it returns 0.
static CUresult step_change(CUgraphExec exec, step_t *step, work_t *work)
{
    if (!change_allowed(step, work)) return CUDA_ERROR_INVALID_VALUE;
    if (step->device && is_under_way(exec)) return CUDA_ERROR_INVALID_VALUE;
    work_finish(&step->work);
    step->work = *work;
    if (!step->device) return CUDA_SUCCESS;
    exec->uploaded = 0;
    return device_reset(step) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult step_set(CUgraphExec exec, CUgraphNode node, const CUgraphNodeParams *params)
{
    if (has_quirk(QUIRK_RIGID)) return CUDA_ERROR_NOT_SUPPORTED;
    step_t *step;
    work_t work;
    CUresult error = step_open(exec, node, params->type, &step);
    if (!error) error = node_work(params->type, params, &work);
    if (error) return error;
    error = step_change(exec, step, &work);
    if (error) work_finish(&work);
    return error;
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS *kernel)
{
    USES_NODE(exec, node);
    CALL(CALL_CONTEXT); // without one an H200 crashes
    if (!kernel) return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    memcpy(&params.kernel, kernel, sizeof *kernel);
    return step_set(exec, node, &params);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMCPY3D *copy, CUcontext context)
{
    USES_NODE(exec, node);
    CALL(CALL_PLAIN);
    if (!copy) return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};
    params.memcpy.copyParams = *copy;
    return step_set(exec, node, &params);
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext context)
{
    USES_NODE(exec, node);
    CALL(CALL_PLAIN);
    if (!fill) return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
    params.memset = (CUDA_MEMSET_NODE_PARAMS_v2){
        fill->dst, fill->pitch, fill->value, fill->elementSize, fill->width, fill->height, context};
    return step_set(exec, node, &params);
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                      const CUDA_HOST_NODE_PARAMS *host)
{
    USES_NODE(exec, node);
    CALL(CALL_PLAIN);
    if (!host) return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_HOST};
    params.host.fn = host->fn;
    params.host.userData = host->userData;
    return step_set(exec, node, &params);
}

static CUresult step_set_event(CUgraphExec exec, CUgraphNode node, CUgraphNodeType type,
                               CUevent event)
{
    step_t *step;
    if (!event_exists(event)) return CUDA_ERROR_INVALID_HANDLE;
    CUresult error = step_open(exec, node, type, &step);
    if (!error) step->event = event;
    return error;
}

CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event)
{
    USES_NODE(exec, node);
    CALL(CALL_PLAIN);
    return step_set_event(exec, node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event)
{
    USES_NODE(exec, node);
    CALL(CALL_PLAIN);
    return step_set_event(exec, node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *params)
{
    USES_NODE(exec, node);
    CALL(CALL_PLAIN);
    if (!params) return CUDA_ERROR_INVALID_VALUE;
    switch (params->type) {
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return step_set_event(exec, node, params->type, params->eventRecord.event);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return step_set_event(exec, node, params->type, params->eventWait.event);
    case CU_GRAPH_NODE_TYPE_GRAPH:
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: return CUDA_ERROR_NOT_SUPPORTED;
    default: return step_set(exec, node, params);
    }
}

static bool can_be_disabled(const step_t *step)
{
    return step->type == CU_GRAPH_NODE_TYPE_KERNEL || step->type == CU_GRAPH_NODE_TYPE_MEMSET ||
           step->type == CU_GRAPH_NODE_TYPE_MEMCPY;
}

CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int enabled)
{
    USES_NODE(exec, node);
    CALL(CALL_PLAIN);
    step_t *step;
    if (!IS(node, MAGIC_NODE)) return CUDA_ERROR_INVALID_VALUE;
    CUresult error = step_open(exec, node, node->type, &step);
    if (error) return error;
    if (!can_be_disabled(step)) return CUDA_ERROR_INVALID_VALUE;
    if (step->device && is_under_way(exec)) return CUDA_ERROR_INVALID_VALUE;
    step->enabled = enabled != 0;
    if (step->device) {
        step->device->has_enabled = false;
        exec->uploaded = 0;
    }
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int *out)
{
    USES_NODE(exec, node);
    CALL(CALL_PLAIN);
    if (!IS(exec, MAGIC_EXEC) || !IS(node, MAGIC_NODE) || !out) return CUDA_ERROR_INVALID_VALUE;
    step_t *step = plan_find(exec->plan, node);
    if (!step || !can_be_disabled(step)) return CUDA_ERROR_INVALID_VALUE;
    *out = step->enabled;
    return CUDA_SUCCESS;
}

// Whether the steps of two plans differ in nothing but what they do.
static CUgraphExecUpdateResult plans_compare(const plan_t *a, const plan_t *b, size_t *at)
{
    if (a->count != b->count) return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    for (size_t i = *at = 0; i < a->count; *at = ++i) {
        const step_t *old = &a->steps[i], *new = &b->steps[i];
        if (old->type != new->type) return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
        if (old->device || new->device) return CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
        if (old->needs != new->needs || old->next_count != new->next_count ||
            memcmp(old->next, new->next, old->next_count * sizeof *old->next) != 0 ||
            old->part_count != new->part_count || old->condition_type != new->condition_type) {
            return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
        }
        if (!change_allowed(old, &new->work)) return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
        for (unsigned k = 0; k < old->part_count; k++) {
            size_t inner;
            CUgraphExecUpdateResult result = plans_compare(old->parts[k], new->parts[k], &inner);
            if (result) return result;
        }
    }
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

// Steps of the new plan stand for the nodes of the old one, by which the user knows them.
static void plans_rename(const plan_t *old, plan_t *new)
{
    for (size_t i = 0; i < old->count; i++) {
        step_t *step = &new->steps[i];
        step->node = old->steps[i].node;
        step->enabled = old->steps[i].enabled;
        step->condition = old->steps[i].condition;
        for (unsigned k = 0; k < step->part_count; k++) {
            plans_rename(old->steps[i].parts[k], step->parts[k]);
        }
    }
}

static CUgraphExecUpdateResult plan_replace(plan_t **plan, CUgraph graph, size_t *at)
{
    plan_t *new;
    CUDA_GRAPH_INSTANTIATE_PARAMS why = {0};
    if (plan_create(graph, false, &new, &why)) return CU_GRAPH_EXEC_UPDATE_ERROR;
    CUgraphExecUpdateResult result = plans_compare(*plan, new, at);
    if (result) {
        plan_release(new);
        return result;
    }
    plans_rename(*plan, new);
    new->graph = (*plan)->graph;
    if (new->graph) new->graph->references++;
    plan_release(*plan);
    *plan = new;
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *out)
{
    USES(exec);
    CALL(CALL_PLAIN);
    size_t at = 0;
    if (!IS(exec, MAGIC_EXEC) || !IS(graph, MAGIC_GRAPH) || !out) return CUDA_ERROR_INVALID_VALUE;
    *out = (CUgraphExecUpdateResultInfo){0};
    out->result = plan_replace(&exec->plan, graph, &at);
    if (out->result == CU_GRAPH_EXEC_UPDATE_SUCCESS) return CUDA_SUCCESS;
    if (at < graph->count) out->errorNode = graph->nodes[at];
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child)
{
    USES_NODE(exec, node);
    CALL(CALL_PLAIN);
    step_t *step;
    size_t at = 0;
    if (!IS(child, MAGIC_GRAPH)) return CUDA_ERROR_INVALID_VALUE;
    CUresult error = step_open(exec, node, CU_GRAPH_NODE_TYPE_GRAPH, &step);
    if (error) return error;
    return plan_replace(&step->parts[0], child, &at) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
