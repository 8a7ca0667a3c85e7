// SPDX-License-Identifier: Apache-2.0
// Graphs as they are built, the plans they are instantiated to, and the launches of these. All of
// it under the lock.
#ifndef SIM_CUDA_GRAPH_H_
#define SIM_CUDA_GRAPH_H_

#include "cuda/state.h"

// The variable behind a conditional handle. Device code sets it without the lock.
typedef struct condition_t {
    unsigned magic;
    struct condition_t *next; // of the graph
    CUcontext context;
    uint32_t value, initial;
    bool assigns; // the initial value at every launch
    CUgraphNode node;
} condition_t;

enum { MAGIC_CONDITION = 0x43000101, MAGIC_DEVICE_NODE };

// What device code has changed of a kernel node. The node's own, and its executable graph's.
struct CUgraphDeviceUpdatableNode_st {
    unsigned magic;
    bool has_grid, has_enabled, enabled;
    uint32_t grid[3];
    void *params; // owned; NULL: as the host has them
    size_t size;
};

struct CUgraphNode_st {
    unsigned magic;
    CUgraph graph;
    CUgraphNode original; // that a clone was made from
    size_t index;         // in the graph, while that is walked
    CUcontext context;
    CUgraphNodeType type;
    work_t work;          // kernel, memcpy, memset, host, memory operations
    CUgraphNodeParams as; // as they were given; pointers in it are not followed
    CUevent event;        // record and wait
    CUgraph child;        // owned
    CUgraph *bodies;      // owned
    unsigned body_count;
    CUgraphConditionalNodeType condition_type;
    condition_t *condition;
    CUgraphDeviceNode device; // owned; NULL: not updatable by devices
    int priority;
    void **pointers; // owned: to the parameters of a kernel, for those who ask
    CUgraphNode *dependencies;
    size_t dependency_count;
};

struct CUgraph_st {
    unsigned magic;
    CUcontext context;  // counts it; NULL: it is part of a node
    CUgraphNode *nodes; // in the order they were added
    size_t count, capacity;
    condition_t *conditions;
    unsigned
        references;     // the user's, and one of each plan that uses its conditions or device nodes
    unsigned instances; // executable graphs of it, where but one may exist
    bool is_body;       // of a conditional node
    kin_t kin;
};

// What memory an operand lies in, as far as updates care.
typedef struct operand_t {
    int kind; // 0: not CUDA's
    device_t *device;
    CUcontext context;
} operand_t;

// One node of an executable graph.
typedef struct step_t {
    CUgraphNode node; // that it was made from
    CUcontext context;
    CUgraphNodeType type;
    work_t work; // owned
    CUevent event;
    CUgraphConditionalNodeType condition_type;
    condition_t *condition;
    struct plan_t **parts; // owned: the child graph, or the bodies
    unsigned part_count;
    CUgraphDeviceNode device;
    bool enabled;
    operand_t from, to;
    uint32_t *next; // owned: steps that depend on this one
    unsigned next_count, needs;
} step_t;

// A graph made ready to run. Launches hold on to the one they began with.
typedef struct plan_t {
    unsigned references;
    step_t *steps; // in the order of the graph's nodes
    size_t count;
    CUgraph graph;   // retained; NULL where nothing of it is used
    uint32_t number; // for a tool
} plan_t;

struct CUgraphExec_st {
    unsigned magic;
    CUcontext context;
    cuuint64_t flags;
    plan_t *plan;
    mark_t *last;      // of the latest launch
    uint64_t uploaded; // to the stream with this id; 0: to none
    size_t updatable;  // nodes that the device may change
    size_t places;     // in the context's slabs
    kin_t kin;
};

CUgraph graph_create(CUcontext context);
void graph_release(CUgraph graph);
// A copy, whose nodes remember their originals; NULL: memory is short.
CUgraph graph_clone(CUgraph graph, CUcontext context);
bool graph_has(CUgraph graph, CUgraphNodeType type);
size_t graph_updatable(CUgraph graph); // nodes that the device may change, in all of its parts
CUresult node_add(CUgraph graph, CUgraphNodeType type, const CUgraphNode *dependencies,
                  size_t count, CUgraphNode *out);
void node_remove(CUgraphNode node);
// The graph of a node, for USES, which is before the lock; NULL when it is no node.
static inline CUgraph node_graph(CUgraphNode node)
{
    return IS(node, MAGIC_NODE) ? node->graph : NULL;
}

// Makes a plan; on failure says why, and at which node.
CUresult plan_create(CUgraph graph, bool in_body, plan_t **out, CUDA_GRAPH_INSTANTIATE_PARAMS *why);
plan_t *plan_clone(const plan_t *plan);
void plan_release(plan_t *plan);
// Whether the work of any step that is enabled fits.
bool plan_fits(const plan_t *plan, work_fits_fn fits, const void *what);
step_t *plan_find(plan_t *plan, CUgraphNode node);

// Parameters of nodes as works; the work is the caller's.
CUresult node_work(CUgraphNodeType type, const CUgraphNodeParams *params, work_t *out);

// The launch of a plan in a stream: made at the call, begun by the stream.
struct launch_t *launch_create(CUgraphExec exec);
const plan_t *launch_plan(const struct launch_t *launch);
void launch_start(struct launch_t *launch, CUstream stream);
void launch_destroy(struct launch_t *launch);

#endif
