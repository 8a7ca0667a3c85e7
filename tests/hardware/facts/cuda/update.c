// SPDX-License-Identifier: Apache-2.0
// Nodes that kernels change.
#include "cuda.h"

static CUstream stream;
static uint32_t *list; // `append` counts in [0]
static CUgraph graph;
static CUgraphNode node;
static uint64_t handle; // of the node, for kernels

// A graph of one kernel, which appends 10 and may be changed by the device.
static CUgraphExec begin(void)
{
    cuda_begin();
    stream = cuda_stream();
    list = cuda_words();
    graph = cuda_graph();
    node = ADD(graph, "append", NULL, cuda_at(list), 10);
    handle = cuda_updatable(node);
    return cuda_exec(graph);
}

static void grid(void)
{
    CUgraphExec exec = begin();
    CU(cu.cuGraphUpload(exec, stream));
    for (uint64_t blocks = 1; blocks <= 5; blocks++) {
        list[0] = 0;
        LAUNCH("regrid", stream, handle, blocks);
        CU(cu.cuGraphLaunch(exec, stream));
        CU(cu.cuStreamSynchronize(stream));
        REQUIRE(list[0] == blocks);
    }
}

static void parameters(void)
{
    enum { COUNT = 50 };
    CUgraphExec exec = begin();
    uint64_t *values = (uint64_t *)(void *)cuda_words();
    CU(cu.cuGraphUpload(exec, stream));
    for (uint64_t i = 0; i < COUNT; i++) {
        values[i] = 100 + i;
        LAUNCH("reparam", stream, handle, cuda_at(&values[i]), 8);
        CU(cu.cuGraphLaunch(exec, stream)); // none of which is waited for
    }
    CU(cu.cuStreamSynchronize(stream));
    REQUIRE(list[0] == COUNT);
    for (uint32_t i = 0; i < COUNT; i++) REQUIRE(list[1 + i] == 100 + i);
}

static void changes_stay(void)
{
    CUgraphExec exec = begin();
    CU(cu.cuGraphUpload(exec, stream));
    LAUNCH("regrid", stream, handle, 3);
    CU(cu.cuGraphLaunch(exec, stream));
    CU(cu.cuGraphUpload(exec, stream));
    CU(cu.cuGraphLaunch(exec, stream));
    CU(cu.cuStreamSynchronize(stream));
    REQUIRE(list[0] == 6);
}

// The host's own change, of a graph that is not under way.
static void host_changes(void)
{
    CUgraphExec exec = begin();
    cuda_node_t changed;
    CU(cu.cuGraphUpload(exec, stream));
    CU(cu.cuGraphLaunch(exec, stream));
    CU(cu.cuStreamSynchronize(stream));
    cuda_node(&changed, cuda_kernel("append"), (uint64_t[3]){cuda_at(list), 20});
    RETURNS(CUDA_SUCCESS, cu.cuGraphExecKernelNodeSetParams_v2(exec, node, &changed.params));
    CU(cu.cuGraphUpload(exec, stream));
    CU(cu.cuGraphLaunch(exec, stream));
    CU(cu.cuStreamSynchronize(stream));
    REQUIRE(list[0] == 2 && list[1] == 10 && list[2] == 20);
}

static void once(void)
{
    CUgraphExec second;
    begin();
    REQUIRE(cu.cuGraphInstantiateWithFlags(&second, graph, 0) != CUDA_SUCCESS);
}

static void no_whole_update(void)
{
    CUgraphExecUpdateResultInfo info;
    CUgraphExec exec = begin();
    REQUIRE(cu.cuGraphExecUpdate_v2(exec, graph, &info) != CUDA_SUCCESS);
}

static void opted_in_for_good(void)
{
    begin();
    CUlaunchAttributeValue value = {.deviceUpdatableKernelNode = {.deviceUpdatable = 0}};
    REQUIRE(cu.cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE,
                                             &value) != CUDA_SUCCESS);
}

static void other_stream_refused(void)
{
    CUgraphExec exec = begin();
    CUstream other = cuda_stream();
    CU(cu.cuGraphUpload(exec, other));
    CU(cu.cuStreamSynchronize(other));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cu.cuGraphLaunch(exec, stream));
}

static void under_way_refused(void)
{
    CUgraphExec exec = begin();
    cuda_node_t changed;
    CU(cu.cuGraphUpload(exec, stream));
    gate_t gate = gate_close(stream);
    CU(cu.cuGraphLaunch(exec, stream));
    cuda_node(&changed, cuda_kernel("append"), (uint64_t[3]){cuda_at(list), 20});
    CUresult error = cu.cuGraphExecKernelNodeSetParams_v2(exec, node, &changed.params);
    gate_open(&gate);
    CU(cu.cuStreamSynchronize(stream));
    REQUIRE(error == CUDA_ERROR_INVALID_VALUE);
}

const fact_t cuda_update_facts[] = {
    {"update.grid", "a kernel sets the grid of a node before each launch", H200, grid, HOLDS, HOLDS,
     NULL},
    {"update.parameters", "50 launches in a row have the arguments that kernels before them set",
     H200, parameters, HOLDS, HOLDS, NULL},
    {"update.changes_stay", "what a kernel has set outlives launches and uploads", H200,
     changes_stay, HOLDS, HOLDS, NULL},
    {"update.host_changes", "the host changes such a node, too, and uploads the graph again",
     "CUDA driver API, cuGraphUpload; " H200, host_changes, HOLDS, HOLDS, NULL},
    {"update.once", "a graph with such nodes has one executable graph at a time",
     "CUDA driver API, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE", once, HOLDS, HOLDS, NULL},
    {"update.no_whole_update", "cuGraphExecUpdate refuses such nodes",
     "CUDA driver API, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE", no_whole_update, HOLDS,
     HOLDS, NULL},
    {"update.opted_in", "a node that has opted in cannot opt out",
     "CUDA driver API, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE", opted_in_for_good, HOLDS,
     HOLDS, NULL},
    {"update.other_stream_refused", "such a graph is launched only where it was uploaded to", H200,
     other_stream_refused, HOLDS, DIFFERS,
     "a card launches it, and may lose what a kernel set before: 16 times of 16 under memcheck"},
    {"update.under_way_refused", "the host cannot change such a node while its graph is under way",
     "CUDA driver API, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE", under_way_refused, HOLDS,
     DIFFERS, "a card takes the change, and does not say which launch it is for"},
    {0},
};
