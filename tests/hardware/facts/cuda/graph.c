// SPDX-License-Identifier: Apache-2.0
// Graphs: the order of launches, what lives how long, and which changes are refused.
#include "cuda.h"

#include <string.h>

static CUcontext context;
static CUstream stream;
static uint32_t *list; // `append` counts in [0]

static CUgraph begin(void)
{
    context = cuda_begin();
    stream = cuda_stream();
    list = cuda_words();
    return cuda_graph();
}

static void run(CUgraphExec exec)
{
    CU(cu.cuGraphLaunch(exec, stream));
    CU(cu.cuStreamSynchronize(stream));
}

static void value_set(CUgraphExec exec, CUgraphNode node, uint32_t value)
{
    cuda_node_t changed;
    cuda_node(&changed, cuda_kernel("append"), (uint64_t[3]){cuda_at(list), value});
    CU(cu.cuGraphExecKernelNodeSetParams_v2(exec, node, &changed.params));
}

static void nothing(void)
{
    CUgraph graph = begin();
    CUgraphNode node;
    run(cuda_exec(graph));
    CU(cu.cuGraphAddEmptyNode(&node, graph, NULL, 0));
    run(cuda_exec(graph));
}

static void nodes_overlap(void)
{
    CUgraph graph = begin();
    ADD(graph, "gate", NULL, cuda_at(list));
    ADD(graph, "poke", NULL, cuda_at(list), 1);
    run(cuda_exec(graph));
}

static void edges(void)
{
    CUgraph graph = begin();
    CUgraphNode first = ADD(graph, "append", NULL, cuda_at(list), 1), join, last;
    CUgraphNode sides[] = {ADD(graph, "append", first, cuda_at(list), 2),
                           ADD(graph, "append", first, cuda_at(list), 3)};
    CU(cu.cuGraphAddEmptyNode(&join, graph, sides, 2));
    last = ADD(graph, "append", NULL, cuda_at(list), 4);
    CU(cu.cuGraphAddDependencies(graph, &join, &last, 1));
    CUgraphExec exec = cuda_exec(graph);
    for (int i = 0; i < 20; i++) {
        list[0] = 0;
        run(exec);
        REQUIRE(list[0] == 4 && list[1] == 1 && list[2] + list[3] == 5 && list[4] == 4);
    }
}

static void launches_are_ordered(void)
{
    CUgraph graph = begin();
    CUgraphNode node = ADD(graph, "append", NULL, cuda_at(list), 1);
    CUgraphExec exec = cuda_exec(graph);
    CUstream other = cuda_stream();
    gate_t gate = gate_close(stream);
    CU(cu.cuGraphLaunch(exec, stream));
    value_set(exec, node, 2);
    CU(cu.cuGraphLaunch(exec, other));
    // It would have been time enough, and there is nothing that could be seen instead.
    fact_nap(FACT_SHORT_MS);
    REQUIRE(__atomic_load_n(&list[0], __ATOMIC_ACQUIRE) == 0);
    gate_open(&gate);
    CU(cu.cuStreamSynchronize(other));
    REQUIRE(list[0] == 2 && list[1] == 1 && list[2] == 2);
}

static void changes_are_for_later(void)
{
    enum { COUNT = 900 };
    CUgraph graph = begin();
    CUgraphNode node = ADD(graph, "append", NULL, cuda_at(list), 0);
    CUgraphExec exec = cuda_exec(graph);
    gate_t gate = gate_close(stream);
    for (uint32_t i = 0; i < COUNT; i++) {
        value_set(exec, node, i);
        CU(cu.cuGraphLaunch(exec, stream));
    }
    gate_open(&gate);
    CU(cu.cuStreamSynchronize(stream));
    REQUIRE(list[0] == COUNT);
    for (uint32_t i = 0; i < COUNT; i++) REQUIRE(list[1 + i] == i);
}

static void other_kernel(void)
{
    CUgraph graph = begin();
    CUgraphNode node = ADD(graph, "empty", NULL, 0);
    CUgraphExec exec = cuda_exec(graph);
    CUfunction append;
    cuda_node_t changed;
    CU(cu.cuModuleGetFunction(&append, cuda_load(), "append"));
    cuda_node(&changed, append, (uint64_t[3]){cuda_at(list), 10});
    changed.params.gridDimX = 3;
    RETURNS(CUDA_SUCCESS, cu.cuGraphExecKernelNodeSetParams_v2(exec, node, &changed.params));
    run(exec);
    REQUIRE(list[0] == 3 && list[1] + list[2] + list[3] == 33);
}

static void refused_change(void)
{
    CUgraph graph = begin();
    CUgraphNode node = ADD(graph, "append", NULL, cuda_at(list), 6);
    CUgraphExec exec = cuda_exec(graph);
    cuda_node_t changed;
    cuda_node(&changed, cuda_kernel("append"), (uint64_t[3]){cuda_at(list), 7});
    changed.params.gridDimX = 0;
    RETURNS(CUDA_ERROR_INVALID_VALUE,
            cu.cuGraphExecKernelNodeSetParams_v2(exec, node, &changed.params));
    changed.params.gridDimX = 1;
    changed.params.sharedMemBytes = 1 << 20;
    RETURNS(CUDA_ERROR_INVALID_VALUE,
            cu.cuGraphExecKernelNodeSetParams_v2(exec, node, &changed.params));
    run(exec);
    REQUIRE(list[0] == 1 && list[1] == 6);
}

static void setter_refused(void)
{
    CUgraph graph = begin();
    CUgraphNode node = ADD(graph, "empty", NULL, 0);
    CUgraphExec exec = cuda_exec(graph);
    cuda_node_t changed;
    cuda_node(&changed, cuda_kernel("regrid"), (uint64_t[3]){0, 1});
    RETURNS(CUDA_ERROR_INVALID_VALUE,
            cu.cuGraphExecKernelNodeSetParams_v2(exec, node, &changed.params));
}

static CUDA_MEMCPY3D line(CUdeviceptr to, CUdeviceptr from, size_t size)
{
    return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .srcDevice = from,
                           .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .dstDevice = to,
                           .WidthInBytes = size,
                           .Height = 1,
                           .Depth = 1};
}

static uint32_t word_of(CUdeviceptr address)
{
    uint32_t word = 0;
    CU(cu.cuMemcpyDtoH_v2(&word, address, 4));
    return word;
}

static void transfers_change(void)
{
    CUgraph graph = begin();
    CUdeviceptr a = cuda_memory(64), b = cuda_memory(64), c = cuda_memory(64);
    CUgraphNode fill, copy;
    CUDA_MEMSET_NODE_PARAMS set = {
        .dst = a, .value = 7, .elementSize = 4, .width = 16, .height = 1};
    CUDA_MEMCPY3D move = line(b, a, 64);
    CU(cu.cuGraphAddMemsetNode(&fill, graph, NULL, 0, &set, context));
    CU(cu.cuGraphAddMemcpyNode(&copy, graph, &fill, 1, &move, context));
    CUgraphExec exec = cuda_exec(graph);
    run(exec);
    REQUIRE(word_of(b) == 7 && word_of(b + 60) == 7);
    set.value = 9;
    set.dst = c;
    RETURNS(CUDA_SUCCESS, cu.cuGraphExecMemsetNodeSetParams(exec, fill, &set, context));
    move = line(b, c, 32);
    RETURNS(CUDA_SUCCESS, cu.cuGraphExecMemcpyNodeSetParams(exec, copy, &move, context));
    run(exec);
    REQUIRE(word_of(b) == 9 && word_of(b + 28) == 9 && word_of(b + 32) == 7);
}

static void copy_kinds_stay(void)
{
    CUgraph graph = begin();
    CUdeviceptr a = cuda_memory(64), b = cuda_memory(64);
    CUgraphNode copy;
    CUDA_MEMCPY3D move = line(b, a, 64);
    CU(cu.cuGraphAddMemcpyNode(&copy, graph, NULL, 0, &move, context));
    CUgraphExec exec = cuda_exec(graph);
    move = line(cuda_at(list), a, 64);
    RETURNS(CUDA_ERROR_INVALID_VALUE,
            cu.cuGraphExecMemcpyNodeSetParams(exec, copy, &move, context));
    move = line(b, a, 64);
    RETURNS(CUDA_SUCCESS, cu.cuGraphExecMemcpyNodeSetParams(exec, copy, &move, context));
}

static void lengths_stay_above_zero(void)
{
    CUgraph graph = begin();
    CUdeviceptr a = cuda_memory(64), b = cuda_memory(64);
    CUgraphNode fill, copy;
    CUDA_MEMSET_NODE_PARAMS set = {
        .dst = a, .value = 7, .elementSize = 1, .width = 64, .height = 1};
    CUDA_MEMCPY3D move = line(b, a, 64);
    CU(cu.cuGraphAddMemsetNode(&fill, graph, NULL, 0, &set, context));
    CU(cu.cuGraphAddMemcpyNode(&copy, graph, NULL, 0, &move, context));
    CUgraphExec exec = cuda_exec(graph);
    set.width = 0;
    RETURNS(CUDA_ERROR_INVALID_VALUE, cu.cuGraphExecMemsetNodeSetParams(exec, fill, &set, context));
    move = line(b, a, 0);
    RETURNS(CUDA_ERROR_INVALID_VALUE,
            cu.cuGraphExecMemcpyNodeSetParams(exec, copy, &move, context));
}

static void outlives_graph(void)
{
    CUgraph graph = begin();
    ADD(graph, "append", NULL, cuda_at(list), 4);
    CUgraphExec exec = cuda_exec(graph);
    CU(cu.cuGraphDestroy(graph));
    run(exec);
    REQUIRE(list[0] == 1 && list[1] == 4);
}

static void destroyed_in_flight(void)
{
    CUgraph graph = begin();
    ADD(graph, "append", NULL, cuda_at(list), 4);
    CUgraphExec exec = cuda_exec(graph);
    gate_t gate = gate_close(stream);
    CU(cu.cuGraphLaunch(exec, stream));
    CU(cu.cuGraphExecDestroy(exec)); // returns, or the gate stays closed
    gate_open(&gate);
    CU(cu.cuStreamSynchronize(stream));
    REQUIRE(list[0] == 1 && list[1] == 4);
}

static void several_instances(void)
{
    CUgraph graph = begin();
    CUgraphNode node = ADD(graph, "append", NULL, cuda_at(list), 1);
    CUgraphExec first = cuda_exec(graph), second = cuda_exec(graph);
    value_set(second, node, 2);
    run(second);
    run(first);
    REQUIRE(list[0] == 2 && list[1] == 2 && list[2] == 1);
}

static void no_context(void)
{
    CUgraph graph = begin();
    CUgraphNode node = ADD(graph, "append", NULL, cuda_at(list), 1);
    CUgraphExec exec = cuda_exec(graph);
    cuda_node_t changed;
    cuda_node(&changed, cuda_kernel("append"), (uint64_t[3]){cuda_at(list), 7});
    CU(cu.cuCtxSetCurrent(NULL));
    RETURNS(CUDA_ERROR_INVALID_CONTEXT,
            cu.cuGraphExecKernelNodeSetParams_v2(exec, node, &changed.params));
}

// A conditional node with one body; its condition is 0 at the beginning of each launch.
static CUgraph conditional(CUgraph graph, CUgraphConditionalNodeType type, CUgraphNode after,
                           CUgraphConditionalHandle handle)
{
    CUgraphNode node;
    CUgraphNodeParams params = {
        .type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
        .conditional = {.handle = handle, .type = type, .size = 1, .ctx = context}};
    CU(cu.cuGraphAddNode(&node, graph, &after, after != NULL, &params));
    return params.conditional.phGraph_out[0];
}

static CUgraphConditionalHandle condition(CUgraph graph, unsigned initial)
{
    CUgraphConditionalHandle handle;
    CU(cu.cuGraphConditionalHandleCreate(&handle, graph, context, initial,
                                         CU_GRAPH_COND_ASSIGN_DEFAULT));
    return handle;
}

static void condition_default(void)
{
    CUgraph graph = begin();
    CUgraphConditionalHandle no = condition(graph, 0), yes = condition(graph, 1);
    ADD(conditional(graph, CU_GRAPH_COND_TYPE_IF, NULL, no), "append", NULL, cuda_at(list), 1);
    ADD(conditional(graph, CU_GRAPH_COND_TYPE_IF, NULL, yes), "append", NULL, cuda_at(list), 2);
    CUgraphExec exec = cuda_exec(graph);
    run(exec);
    run(exec);
    REQUIRE(list[0] == 2 && list[1] == 2 && list[2] == 2);
}

// What a kernel set in one launch is forgotten in the next.
static void condition_is_reset(void)
{
    CUgraph graph = begin();
    CUgraphConditionalHandle handle = condition(graph, 0);
    CUgraphNode node = ADD(graph, "choose", NULL, handle, 1);
    ADD(conditional(graph, CU_GRAPH_COND_TYPE_IF, node, handle), "append", NULL, cuda_at(list), 1);
    CUgraphExec exec = cuda_exec(graph);
    run(exec);
    REQUIRE(list[0] == 1);
    cuda_node_t changed;
    cuda_node(&changed, cuda_kernel("choose"), (uint64_t[3]){handle, 0});
    CU(cu.cuGraphExecKernelNodeSetParams_v2(exec, node, &changed.params));
    run(exec);
    REQUIRE(list[0] == 1);
}

static void loop(void)
{
    CUgraph graph = begin();
    uint32_t *left = cuda_words();
    CUgraphConditionalHandle handle = condition(graph, 1);
    CUgraph body = conditional(graph, CU_GRAPH_COND_TYPE_WHILE, NULL, handle);
    CUgraphNode node = ADD(body, "append", NULL, cuda_at(list), 3);
    ADD(body, "countdown", node, cuda_at(left), handle);
    CUgraphExec exec = cuda_exec(graph);
    for (uint32_t i = 1; i <= 3; i++) {
        list[0] = 0;
        *left = 10 * i;
        run(exec);
        REQUIRE(list[0] == 10 * i && *left == 0);
    }
}

// Nodes in a body are changed from outside, like any other.
static void body_changes(void)
{
    CUgraph graph = begin();
    CUgraphConditionalHandle handle = condition(graph, 1);
    CUgraph body = conditional(graph, CU_GRAPH_COND_TYPE_IF, NULL, handle);
    CUgraphNode node = ADD(body, "append", NULL, cuda_at(list), 1);
    CUgraphExec exec = cuda_exec(graph);
    value_set(exec, node, 8);
    run(exec);
    REQUIRE(list[0] == 1 && list[1] == 8);
}

static void conditional_once(void)
{
    CUgraph graph = begin();
    CUgraphExec exec;
    ADD(conditional(graph, CU_GRAPH_COND_TYPE_IF, NULL, condition(graph, 0)), "empty", NULL, 0);
    cuda_exec(graph);
    REQUIRE(cu.cuGraphInstantiateWithFlags(&exec, graph, 0) != CUDA_SUCCESS);
}

static void host_fn(void *user) {}

static void no_host_in_body(void)
{
    CUgraph graph = begin();
    CUgraph body = conditional(graph, CU_GRAPH_COND_TYPE_IF, NULL, condition(graph, 0));
    CUDA_HOST_NODE_PARAMS host = {.fn = host_fn};
    CUgraphNode node;
    CUgraphExec exec;
    REQUIRE(cu.cuGraphAddHostNode(&node, body, NULL, 0, &host) != CUDA_SUCCESS ||
            cu.cuGraphInstantiateWithFlags(&exec, graph, 0) != CUDA_SUCCESS);
}

const fact_t cuda_graph_facts[] = {
    {"graph.nothing", "a graph without work is launched, and ends",
     "CUDA driver API, cuGraphLaunch", nothing, HOLDS, HOLDS, NULL},
    {"graph.nodes_overlap", "nodes without edges between them may wait for each other",
     "docs/stream.md, Recordings", nodes_overlap, HOLDS, HOLDS, NULL},
    {"graph.edges", "a node runs when all that it depends on has ended",
     "CUDA driver API, cuGraphAddDependencies", edges, HOLDS, HOLDS, NULL},
    {"graph.launches_are_ordered", "launches of one executable graph follow each other, anywhere",
     "CUDA driver API, cuGraphLaunch", launches_are_ordered, HOLDS, HOLDS, NULL},
    {"graph.changes_are_for_later", "900 launches under way keep their arguments when these change",
     H200, changes_are_for_later, HOLDS, HOLDS, NULL},
    {"graph.other_kernel", "a node takes another kernel, of another module, with another grid",
     H200, other_kernel, HOLDS, HOLDS, NULL},
    {"graph.refused_change", "a refused change leaves the node as it was", H200, refused_change,
     HOLDS, HOLDS, NULL},
    {"graph.setter_refused", "no node is changed to a kernel that sets nodes", H200, setter_refused,
     DIFFERS, HOLDS, "images of sim/cuda do not say which kernels set nodes"},
    {"graph.transfers_change",
     "fills take other addresses and values, copies other addresses and lengths",
     "CUDA driver API, cuGraphExecMemcpyNodeSetParams", transfers_change, HOLDS, HOLDS, NULL},
    {"graph.copy_kinds_stay", "a copy within the device is not changed to one to the host",
     "CUDA driver API, cuGraphExecMemcpyNodeSetParams; docs/stream.md, Recordings", copy_kinds_stay,
     HOLDS, DIFFERS, "an H200 takes that change"},
    {"graph.lengths", "neither copies nor fills are changed to no length",
     "CUDA driver API, cuGraphExecMemsetNodeSetParams; docs/stream.md, Recordings",
     lengths_stay_above_zero, HOLDS, HOLDS, NULL},
    {"graph.outlives_graph", "an executable graph does without the graph it was made of",
     "CUDA driver API, cuGraphDestroy", outlives_graph, HOLDS, HOLDS, NULL},
    {"graph.destroyed_in_flight", "an executable graph in flight can be destroyed, and goes on",
     H200, destroyed_in_flight, HOLDS, HOLDS, NULL},
    {"graph.several_instances", "executable graphs of one graph are changed apart",
     "CUDA driver API, cuGraphInstantiate", several_instances, HOLDS, HOLDS, NULL},
    {"graph.no_context", "without a current context no node is changed", H200, no_context, HOLDS,
     NOT_RUN, "a card's library crashes in cuGraphExecKernelNodeSetParams"},
    {"graph.condition_default", "a condition has its default in each launch",
     "CUDA driver API, CU_GRAPH_COND_ASSIGN_DEFAULT", condition_default, HOLDS, HOLDS, NULL},
    {"graph.condition_is_reset", "and forgets what a kernel set in the launch before",
     "CUDA driver API, CU_GRAPH_COND_ASSIGN_DEFAULT", condition_is_reset, HOLDS, HOLDS, NULL},
    {"graph.loop", "a body runs again as long as its kernels set the condition",
     "CUDA driver API, conditional nodes", loop, HOLDS, HOLDS, NULL},
    {"graph.body_changes", "nodes of a body are changed as all others are",
     H200 " (branch.several_in_flight)", body_changes, HOLDS, HOLDS, NULL},
    {"graph.conditional_once", "a graph with conditional nodes has one executable graph at a time",
     "CUDA driver API, CU_GRAPH_NODE_TYPE_CONDITIONAL", conditional_once, HOLDS, HOLDS, NULL},
    {"graph.no_host_in_body", "a body has no host functions",
     "CUDA driver API, CUDA_CONDITIONAL_NODE_PARAMS", no_host_in_body, HOLDS, HOLDS, NULL},
    {0},
};
