// SPDX-License-Identifier: Apache-2.0
// Launches of executable graphs. A flow is one run of one plan: of the whole graph, of a child, or
// of the body of a condition. A visit is one step in it; it ends when its work has, and then its
// successors are counted down.
#include "cuda/call.h"
#include "cuda/engine.h"
#include "cuda/graph.h"
#include "cuda/limits.h"
#include "cuda/module.h"

#include <stdlib.h>
#include <string.h>

typedef struct visit_t {
    task_t task;
    waiter_t waiter;
    struct flow_t *flow;
    const step_t *step;
    struct visit_t *next; // of those that can begin
    unsigned needs;
    work_t changed; // a kernel as device code has changed it
} visit_t;

typedef struct flow_t {
    struct launch_t *launch;
    const plan_t *plan;
    visit_t *parent; // NULL: the launch itself
    size_t left;
    visit_t visits[];
} flow_t;

// What a record or a wait of an event means, fixed when the launch was called.
typedef struct meeting_t {
    const step_t *step;
    mark_t *mark; // retained
} meeting_t;

typedef struct launch_t {
    plan_t *plan; // retained
    CUstream stream;
    meeting_t *meetings;
    size_t meeting_count;
    visit_t *first, *last; // that can begin
    bool advancing;
    uint32_t correlation; // of the call, for a tool
} launch_t;

static size_t meetings_count(const plan_t *plan)
{
    size_t count = 0;
    for (size_t i = 0; i < plan->count; i++) {
        count += plan->steps[i].event != NULL;
        for (unsigned k = 0; k < plan->steps[i].part_count; k++) {
            count += meetings_count(plan->steps[i].parts[k]);
        }
    }
    return count;
}

static void meetings_fix(launch_t *launch, const plan_t *plan, CUgraphNodeType type)
{
    for (size_t i = 0; i < plan->count; i++) {
        const step_t *step = &plan->steps[i];
        for (unsigned k = 0; k < step->part_count; k++) {
            meetings_fix(launch, step->parts[k], type);
        }
        if (!step->event || step->type != type) continue;
        if (type == CU_GRAPH_NODE_TYPE_EVENT_RECORD) {
            mark_release(step->event->mark);
            step->event->mark = mark_create();
        }
        if (!step->event->mark) continue; // never recorded: nothing to wait for
        launch->meetings[launch->meeting_count++] =
            (meeting_t){step, mark_retain(step->event->mark)};
    }
}

launch_t *launch_create(CUgraphExec exec)
{
    launch_t *launch = calloc(1, sizeof *launch);
    if (!launch) abort();
    launch->correlation = call_correlation();
    launch->plan = exec->plan;
    launch->plan->references++;
    size_t count = meetings_count(launch->plan);
    launch->meetings = calloc(count + 1, sizeof *launch->meetings);
    if (!launch->meetings) abort();
    if (count) {
        meetings_fix(launch, launch->plan, CU_GRAPH_NODE_TYPE_WAIT_EVENT);
        meetings_fix(launch, launch->plan, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
    }
    return launch;
}

const plan_t *launch_plan(const launch_t *launch)
{
    return launch->plan;
}

void launch_destroy(launch_t *launch)
{
    if (!launch) return;
    for (size_t i = 0; i < launch->meeting_count; i++) {
        // A launch that was dropped leaves no waiter behind.
        if (launch->meetings[i].step->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD) {
            mark_reach(launch->meetings[i].mark);
        }
        mark_release(launch->meetings[i].mark);
    }
    plan_release(launch->plan);
    free(launch->meetings);
    free(launch);
}

static mark_t *meeting_of(const launch_t *launch, const step_t *step)
{
    for (size_t i = 0; i < launch->meeting_count; i++) {
        if (launch->meetings[i].step == step) return launch->meetings[i].mark;
    }
    return NULL;
}

static void visit_ready(visit_t *visit)
{
    launch_t *launch = visit->flow->launch;
    visit->next = NULL;
    if (launch->first)
        launch->last->next = visit;
    else
        launch->first = visit;
    launch->last = visit;
}

static void flow_begin(launch_t *launch, const plan_t *plan, visit_t *parent)
{
    flow_t *flow = calloc(1, sizeof *flow + plan->count * sizeof flow->visits[0]);
    if (!flow) abort();
    flow->launch = launch;
    flow->plan = plan;
    flow->parent = parent;
    flow->left = plan->count;
    for (size_t i = 0; i < plan->count; i++) {
        visit_t *visit = &flow->visits[i];
        visit->flow = flow;
        visit->step = &plan->steps[i];
        visit->needs = visit->step->needs;
        if (visit->needs == 0) visit_ready(visit);
    }
}

// The part of a conditional node that its variable chooses, or NULL.
static const plan_t *condition_choose(const step_t *step)
{
    uint32_t value = __atomic_load_n(&step->condition->value, __ATOMIC_ACQUIRE);
    switch (step->condition_type) {
    case CU_GRAPH_COND_TYPE_IF:
        if (value) return step->parts[0];
        return step->part_count > 1 ? step->parts[1] : NULL;
    case CU_GRAPH_COND_TYPE_WHILE: return value ? step->parts[0] : NULL;
    default: return value < step->part_count ? step->parts[value] : NULL;
    }
}

static bool has_failed(const visit_t *visit)
{
    return visit->flow->launch->stream->context->error != CUDA_SUCCESS;
}

// Runs a part, where there is one with something in it.
static bool part_begin(visit_t *visit, const plan_t *plan)
{
    if (!plan || plan->count == 0 || has_failed(visit)) return false;
    flow_begin(visit->flow->launch, plan, visit);
    return true;
}

static bool is_loop(const step_t *step)
{
    return step->type == CU_GRAPH_NODE_TYPE_CONDITIONAL &&
           step->condition_type == CU_GRAPH_COND_TYPE_WHILE;
}

// Counts a step as done, and with the last one of a part the node that it is part of. True: the
// launch is over.
static bool visit_end(visit_t *visit)
{
    for (;;) {
        flow_t *flow = visit->flow;
        const step_t *step = visit->step;
        for (unsigned i = 0; i < step->next_count; i++) {
            visit_t *next = &flow->visits[step->next[i]];
            if (--next->needs == 0) visit_ready(next);
        }
        if (--flow->left) return false;
        visit_t *parent = flow->parent;
        free(flow);
        if (!parent) return true;
        if (is_loop(parent->step) && part_begin(parent, condition_choose(parent->step))) {
            return false;
        }
        visit = parent;
    }
}

static bool visit_begin(visit_t *visit);

static void launch_over(launch_t *launch)
{
    CUstream stream = launch->stream;
    stream_pop(stream); // and the launch with it
    stream_pump(stream);
}

// Begins whatever can begin.
static void launch_advance(launch_t *launch)
{
    if (launch->advancing) return;
    launch->advancing = true;
    for (visit_t *visit; (visit = launch->first);) {
        launch->first = visit->next;
        if (visit_begin(visit) || !visit_end(visit)) continue;
        launch_over(launch);
        return;
    }
    launch->advancing = false;
}

static void visit_run(task_t *task)
{
    visit_t *visit = (visit_t *)task;
    const launch_t *launch = visit->flow->launch;
    work_run(visit->changed.kind ? &visit->changed : &visit->step->work,
             (origin_t){.stream = launch->stream,
                        .correlation = launch->correlation,
                        .graph = launch->plan->number,
                        .node = (uint64_t)visit->flow->plan->number << 32 |
                                (uint64_t)(visit->step - visit->flow->plan->steps + 1)});
}

static void visit_done(task_t *task)
{
    visit_t *visit = (visit_t *)task;
    launch_t *launch = visit->flow->launch;
    work_finish(&visit->changed);
    if (visit_end(visit))
        launch_over(launch);
    else
        launch_advance(launch);
}

static void visit_wake(waiter_t *waiter)
{
    visit_t *visit = (visit_t *)((char *)waiter - offsetof(visit_t, waiter));
    launch_t *launch = visit->flow->launch;
    if (visit_end(visit))
        launch_over(launch);
    else
        launch_advance(launch);
}

// What device code has made of a kernel node; false: it has switched it off.
static bool device_apply(visit_t *visit)
{
    CUgraphDeviceNode device = visit->step->device;
    if (!device) return true;
    if (device->has_enabled && !device->enabled) return false;
    if (!device->has_grid && !device->params) return true;
    if (!work_clone(&visit->changed, &visit->step->work)) abort();
    kernel_work_t *kernel = &visit->changed.kernel;
    if (device->has_grid) memcpy(kernel->grid, device->grid, sizeof kernel->grid);
    if (device->params) memcpy(kernel->params, device->params, device->size);
    return true;
}

// True: it goes on until another step ends it. False: it is over.
static bool visit_begin(visit_t *visit)
{
    const step_t *step = visit->step;
    launch_t *launch = visit->flow->launch;
    if (has_failed(visit) || !step->enabled) return false;
    switch (step->type) {
    case CU_GRAPH_NODE_TYPE_EMPTY: return false;
    case CU_GRAPH_NODE_TYPE_GRAPH: return part_begin(visit, step->parts[0]);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: return part_begin(visit, condition_choose(step));
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: mark_reach(meeting_of(launch, step)); return false;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: {
        mark_t *mark = meeting_of(launch, step);
        visit->waiter.wake = visit_wake;
        return mark && mark_watch(mark, &visit->waiter);
    }
    default: break;
    }
    if (!device_apply(visit)) return false;
    visit->task = (task_t){NULL, launch->stream->priority, visit_run, visit_done};
    engine_push(launch->stream->context, &visit->task);
    return true;
}

static void conditions_assign(const plan_t *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        condition_t *condition = plan->steps[i].condition;
        if (condition && condition->assigns) {
            __atomic_store_n(&condition->value, condition->initial, __ATOMIC_RELEASE);
        }
        for (unsigned k = 0; k < plan->steps[i].part_count; k++) {
            conditions_assign(plan->steps[i].parts[k]);
        }
    }
}

void launch_start(launch_t *launch, CUstream stream)
{
    launch->stream = stream;
    conditions_assign(launch->plan);
    if (launch->plan->count == 0) {
        launch_over(launch);
        return;
    }
    flow_begin(launch, launch->plan, NULL);
    launch_advance(launch);
}

static void set_conditional(uint64_t handle, uint32_t value)
{
    condition_t *condition = (condition_t *)(uintptr_t)handle;
    if (!IS(condition, MAGIC_CONDITION)) {
        complain("device code sets a condition that there is not: %#llx",
                 (unsigned long long)handle);
        return;
    }
    __atomic_store_n(&condition->value, value, __ATOMIC_RELEASE);
}

// Device code runs without the lock, and a bad handle must not fault while that is held.
static int node_set_grid(void *node, uint32_t x, uint32_t y, uint32_t z)
{
    CUgraphDeviceNode device = node;
    if (!IS(device, MAGIC_DEVICE_NODE) || !x || !y || !z) return CUDA_ERROR_INVALID_VALUE;
    if (x > LIMIT_GRID_X || y > LIMIT_GRID_Y || z > LIMIT_GRID_Z) return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&state.lock);
    device->grid[0] = x;
    device->grid[1] = y;
    device->grid[2] = z;
    device->has_grid = true;
    pthread_mutex_unlock(&state.lock);
    return CUDA_SUCCESS;
}

static int node_set_enabled(void *node, int enabled)
{
    CUgraphDeviceNode device = node;
    if (!IS(device, MAGIC_DEVICE_NODE)) return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&state.lock);
    device->enabled = enabled != 0;
    device->has_enabled = true;
    pthread_mutex_unlock(&state.lock);
    return CUDA_SUCCESS;
}

static int node_set_param(void *node, size_t offset, const void *value, size_t size)
{
    char bytes[LIMIT_PARAMS];
    CUgraphDeviceNode device = node;
    if (!IS(device, MAGIC_DEVICE_NODE) || size > sizeof bytes) return CUDA_ERROR_INVALID_VALUE;
    memcpy(bytes, value, size);
    pthread_mutex_lock(&state.lock);
    bool fits = device->params && offset <= device->size && size <= device->size - offset;
    if (fits) memcpy((char *)device->params + offset, bytes, size);
    pthread_mutex_unlock(&state.lock);
    return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

const cuda_host_services_t services = {set_conditional, node_set_grid, node_set_enabled,
                                       node_set_param};
