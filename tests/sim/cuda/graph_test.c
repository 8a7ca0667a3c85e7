// SPDX-License-Identifier: Apache-2.0
// graph_test KERNELS: graphs as they are built, changed and launched.
#include "rig.h"
#include "tests/asleep.h"

#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static CUstream stream;
static uint32_t *list; // pinned; [0] counts what `append` has put into it
static CUdeviceptr list_address;

static CUgraph begin(void)
{
    CUgraph graph;
    void *memory;
    rig_context();
    CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CU(cuMemHostAlloc(&memory, 65536, 0));
    memset(memory, 0, 65536);
    list = memory;
    list_address = (uintptr_t)memory;
    CU(cuGraphCreate(&graph, 0));
    return graph;
}

// A kernel node with up to three words.
typedef struct kernel_t {
    CUDA_KERNEL_NODE_PARAMS params;
    uint64_t words[3];
    void *pointers[3];
} kernel_t;

static const CUDA_KERNEL_NODE_PARAMS *kernel(kernel_t *k, const char *name, unsigned blocks,
                                             const uint64_t words[3])
{
    memset(k, 0, sizeof *k);
    memcpy(k->words, words, sizeof k->words);
    for (int i = 0; i < 3; i++) k->pointers[i] = &k->words[i];
    k->params.func = rig_kernel(name);
    k->params.gridDimX = blocks;
    k->params.gridDimY = k->params.gridDimZ = 1;
    k->params.blockDimX = k->params.blockDimY = k->params.blockDimZ = 1;
    k->params.kernelParams = k->pointers;
    return &k->params;
}

static CUgraphNode add(CUgraph graph, const char *name, const uint64_t words[3],
                       const CUgraphNode *after, size_t count)
{
    kernel_t k;
    CUgraphNode node;
    CU(cuGraphAddKernelNode_v2(&node, graph, after, count, kernel(&k, name, 1, words)));
    return node;
}

static CUgraphNode append(CUgraph graph, uint32_t value, const CUgraphNode *after, size_t count)
{
    return add(graph, "append", (uint64_t[3]){list_address, value}, after, count);
}

static CUgraphExec ready(CUgraph graph)
{
    CUgraphExec exec;
    CU(cuGraphInstantiateWithFlags(&exec, graph, 0));
    return exec;
}

static void run(CUgraphExec exec)
{
    CU(cuGraphLaunch(exec, stream));
    CU(cuStreamSynchronize(stream));
}

static void test_diamond(void)
{
    CUgraph graph = begin();
    CUgraphNode top = append(graph, 1, NULL, 0), sides[2], bottom;
    sides[0] = append(graph, 2, &top, 1);
    sides[1] = append(graph, 3, &top, 1);
    bottom = append(graph, 4, sides, 2);
    CUgraphExec exec = ready(graph);
    for (int i = 0; i < 50; i++) {
        list[0] = 0;
        run(exec);
        CHECK(list[0] == 4 && list[1] == 1 && list[2] + list[3] == 5 && list[4] == 4);
    }
    size_t count = 0, edges = 0;
    CUgraphNode nodes[8];
    CU(cuGraphGetNodes(graph, NULL, &count));
    CU(cuGraphGetEdges_v2(graph, NULL, NULL, NULL, &edges));
    CHECK(count == 4 && edges == 4);
    count = 8;
    CU(cuGraphNodeGetDependencies_v2(bottom, nodes, NULL, &count));
    CHECK(count == 2 && nodes[0] == sides[0] && nodes[1] == sides[1] && nodes[2] == NULL);
    count = 8;
    CU(cuGraphGetRootNodes(graph, nodes, &count));
    CHECK(count == 1 && nodes[0] == top);
    // What was instantiated does not change with the graph, and lives without it.
    CU(cuGraphDestroyNode(bottom));
    CU(cuGraphDestroy(graph));
    list[0] = 0;
    run(exec);
    CHECK(list[0] == 4);
    CU(cuGraphExecDestroy(exec));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(exec, stream));
}

static void test_independent_nodes_overlap(void)
{
    CUgraph graph = begin();
    gate_t gate = rig_gate();
    add(graph, "wait", (uint64_t[3]){gate.word}, NULL, 0);
    add(graph, "poke", (uint64_t[3]){gate.word, 1}, NULL, 0);
    run(ready(graph));
}

static void test_structure(void)
{
    CUgraph graph = begin(), other;
    CUgraphExec exec;
    CUgraphNode a = append(graph, 1, NULL, 0), b = append(graph, 2, &a, 1), twice[] = {a, a}, empty;
    CU(cuGraphCreate(&other, 0));
    CU(cuGraphAddEmptyNode(&empty, other, NULL, 0));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphAddEmptyNode(&b, graph, twice, 2));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphAddEmptyNode(&b, graph, &empty, 1));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphAddDependencies(graph, &a, &b, 1)); // it is there
    CU(cuGraphAddDependencies(graph, &b, &a, 1));
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};
    FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithParams(&exec, graph, &params));
    CHECK(params.result_out == CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
    CU(cuGraphRemoveDependencies(graph, &b, &a, 1));
    CU(cuGraphInstantiateWithParams(&exec, graph, &params));
    CHECK(params.result_out == CUDA_GRAPH_INSTANTIATE_SUCCESS);
    CUgraph none;
    CU(cuGraphCreate(&none, 0));
    run(ready(none)); // nothing, and it ends
}

static CUDA_MEMCPY3D line(CUdeviceptr to, CUdeviceptr from, size_t size)
{
    return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                           .srcDevice = from,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstDevice = to,
                           .WidthInBytes = size,
                           .Height = 1,
                           .Depth = 1};
}

static void test_copies_and_fills(void)
{
    CUgraph graph = begin();
    CUcontext context;
    CUdeviceptr a, b, c;
    CUgraphNode fill, copy;
    void *pinned;
    uint32_t words[16];
    CU(cuCtxGetCurrent(&context));
    CU(cuMemAlloc_v2(&a, 64));
    CU(cuMemAlloc_v2(&b, 64));
    CU(cuMemAlloc_v2(&c, 64));
    CU(cuMemHostAlloc(&pinned, 64, 0));
    CUDA_MEMSET_NODE_PARAMS set = {
        .dst = a, .value = 7, .elementSize = 4, .width = 16, .height = 1};
    CU(cuGraphAddMemsetNode(&fill, graph, NULL, 0, &set, context));
    CUDA_MEMCPY3D move = line(b, a, 64);
    CU(cuGraphAddMemcpyNode(&copy, graph, &fill, 1, &move, context));
    CUgraphExec exec = ready(graph);
    run(exec);
    CU(cuMemcpyDtoH_v2(words, b, 64));
    CHECK(words[0] == 7 && words[15] == 7);

    // Addresses, values and lengths may change ...
    set.value = 9;
    set.width = 8;
    CU(cuGraphExecMemsetNodeSetParams(exec, fill, &set, context));
    move = line(c, a, 64);
    CU(cuGraphExecMemcpyNodeSetParams(exec, copy, &move, context));
    run(exec);
    CU(cuMemcpyDtoH_v2(words, c, 64));
    CHECK(words[0] == 9 && words[7] == 9 && words[8] == 7);
    // ... but not the kind of memory, the dimensions, or to nothing.
    move = line((uintptr_t)pinned, a, 64);
    FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphExecMemcpyNodeSetParams(exec, copy, &move, context));
    move = line(c, a, 0);
    FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphExecMemcpyNodeSetParams(exec, copy, &move, context));
    move = line(c, a, 8);
    move.Height = 2;
    move.srcPitch = move.dstPitch = 16;
    FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphExecMemcpyNodeSetParams(exec, copy, &move, context));
    set.width = 0;
    FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphExecMemsetNodeSetParams(exec, fill, &set, context));
    set.width = 4;
    set.height = 2;
    set.pitch = 32;
    FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphExecMemsetNodeSetParams(exec, fill, &set, context));
    set.height = 1;
    set.dst = (uintptr_t)pinned;
    FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphExecMemsetNodeSetParams(exec, fill, &set, context));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphExecMemsetNodeSetParams(exec, copy, &set, context));
}

// It may stand in a graph until it has run.
static void test_copy_onto_itself(void)
{
    CUgraph graph = begin();
    CUcontext context;
    CUdeviceptr a, b;
    CUgraphNode copy;
    CU(cuCtxGetCurrent(&context));
    CU(cuMemAlloc_v2(&a, 64));
    CU(cuMemAlloc_v2(&b, 64));
    CUDA_MEMCPY3D here = line(a, a, 64), there = line(b, a, 64);
    CU(cuGraphAddMemcpyNode(&copy, graph, NULL, 0, &here, context));
    CUgraphExec exec = ready(graph);
    CU(cuGraphExecMemcpyNodeSetParams(exec, copy, &there, context));
    run(exec);
    CU(cuGraphExecMemcpyNodeSetParams(exec, copy, &here, context));
    CU(cuGraphLaunch(exec, stream));
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(stream));
    CHECK(rig_said("cuGraphExecMemcpyNodeSetParams: the 64 bytes at"));
}

// Changes are for launches that come; those under way have what they began with.
static void test_changes_touch_future_launches(void)
{
    CUgraph graph = begin();
    kernel_t k;
    gate_t gate = rig_gate();
    CUgraphNode node = append(graph, 1, NULL, 0);
    CUgraphExec exec = ready(graph);
    rig_gate_close(gate, stream);
    for (uint64_t i = 0; i < 20; i++) {
        uint64_t words[] = {list_address, 10 + i, 0};
        CU(cuGraphExecKernelNodeSetParams_v2(exec, node, kernel(&k, "append", 1, words)));
        CU(cuGraphLaunch(exec, stream));
    }
    CU(cuGraphExecDestroy(exec)); // with launches under way
    rig_gate_open(gate);
    CU(cuStreamSynchronize(stream));
    CHECK(list[0] == 20);
    for (uint32_t i = 0; i < 20; i++) CHECK(list[1 + i] == 10 + i);
}

// Launches of one executable graph never overlap, in whatever streams they are.
static void test_launches_are_ordered(void)
{
    CUgraph graph = begin();
    CUstream other;
    gate_t gate = rig_gate();
    CU(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    append(graph, 5, NULL, 0);
    CUgraphExec exec = ready(graph);
    rig_gate_close(gate, stream);
    CU(cuGraphLaunch(exec, stream));
    CU(cuGraphLaunch(exec, other));
    rig_pass();
    FAILS(CUDA_ERROR_NOT_READY, cuStreamQuery(other));
    CHECK(list[0] == 0);
    rig_gate_open(gate);
    CU(cuStreamSynchronize(other));
    CHECK(list[0] == 2);
}

static void count_call(void *user)
{
    ++*(int *)user;
}

static void test_host_event_and_child_nodes(void)
{
    CUgraph graph = begin(), child;
    CUgraphNode call, inner, record, wait;
    CUevent first, second;
    int calls = 0;
    CU(cuEventCreate(&first, 0));
    CU(cuEventCreate(&second, 0));
    CU(cuGraphCreate(&child, 0));
    CUgraphNode one = append(child, 1, NULL, 0);
    append(child, 2, &one, 1);
    CUDA_HOST_NODE_PARAMS host = {count_call, &calls};
    CU(cuGraphAddHostNode(&call, graph, NULL, 0, &host));
    CU(cuGraphAddEventWaitNode(&wait, graph, &call, 1, first));
    CU(cuGraphAddChildGraphNode(&inner, graph, &wait, 1, child));
    CU(cuGraphDestroy(child)); // it was cloned
    CU(cuGraphAddEventRecordNode(&record, graph, &inner, 1, second));
    CUgraphExec exec = ready(graph);
    run(exec); // first was never recorded: no wait
    CHECK(calls == 1 && list[0] == 2 && list[1] == 1 && list[2] == 2);
    CU(cuEventQuery(second));

    CUstream other;
    gate_t gate = rig_gate();
    CU(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    rig_gate_close(gate, other);
    CU(cuEventRecord(first, other));
    CU(cuGraphLaunch(exec, stream));
    FAILS(CUDA_ERROR_NOT_READY, cuEventQuery(second));
    rig_pass();
    CHECK(list[0] == 2);
    rig_gate_open(gate);
    CU(cuEventSynchronize(second));
    CHECK(list[0] == 4);
    CUgraph clone;
    CUgraphNode twin;
    CU(cuGraphClone(&clone, graph));
    CU(cuGraphNodeFindInClone(&twin, record, clone));
    CHECK(twin != record);
    run(ready(clone));
    CHECK(list[0] == 6 && calls == 3);
}

static CUgraphNode conditional(CUgraph graph, CUgraphConditionalHandle handle,
                               CUgraphConditionalNodeType type, unsigned size,
                               const CUgraphNode *after, CUgraph *bodies)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
    CUgraphNode node;
    params.conditional.handle = handle;
    params.conditional.type = type;
    params.conditional.size = size;
    CU(cuCtxGetCurrent(&params.conditional.ctx));
    CU(cuGraphAddNode_v2(&node, graph, after, NULL, after ? 1 : 0, &params));
    for (unsigned i = 0; i < size; i++) bodies[i] = params.conditional.phGraph_out[i];
    return node;
}

static CUgraphConditionalHandle handle_new(CUgraph graph, unsigned initial, unsigned flags)
{
    CUgraphConditionalHandle handle;
    CUcontext context;
    CU(cuCtxGetCurrent(&context));
    CU(cuGraphConditionalHandleCreate(&handle, graph, context, initial, flags));
    return handle;
}

static void test_while(void)
{
    CUgraph graph = begin(), body;
    uint32_t *word = list + 1000;
    CUgraphConditionalHandle handle = handle_new(graph, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
    CUgraphNode loop = conditional(graph, handle, CU_GRAPH_COND_TYPE_WHILE, 1, NULL, &body);
    CUgraphNode step = append(body, 3, NULL, 0);
    add(body, "countdown", (uint64_t[3]){list_address + 4000, handle}, &step, 1);
    append(graph, 4, &loop, 1);
    CUgraphExec exec = ready(graph);
    for (uint32_t times = 1; times < 40; times += 13) {
        list[0] = 0;
        *word = times;
        run(exec);
        CHECK(list[0] == times + 1 && list[times] == 3 && list[times + 1] == 4);
    }
    // But one executable graph at a time.
    CUgraphExec second;
    FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithFlags(&second, graph, 0));
    FAILS(CUDA_ERROR_NOT_SUPPORTED, cuGraphClone(&body, graph));
    CU(cuGraphExecDestroy(exec));
    exec = ready(graph);
    CU(cuGraphDestroy(graph)); // its conditions live on
    *word = 2;
    list[0] = 0;
    run(exec);
    CHECK(list[0] == 3);
    CU(cuGraphExecDestroy(exec));
}

static void test_if_else_and_switch(void)
{
    CUgraph graph = begin(), branches[2], cases[3];
    CUgraphConditionalHandle which = handle_new(graph, 0, CU_GRAPH_COND_ASSIGN_DEFAULT);
    CUgraphConditionalHandle number = handle_new(graph, 0, 0);
    CUgraphNode chooser = add(graph, "choose", (uint64_t[3]){which, 1}, NULL, 0);
    CUgraphNode branch = conditional(graph, which, CU_GRAPH_COND_TYPE_IF, 2, &chooser, branches);
    append(branches[0], 1, NULL, 0);
    append(branches[1], 2, NULL, 0);
    CUgraphNode picker = add(graph, "choose", (uint64_t[3]){number, 2}, &branch, 1);
    conditional(graph, number, CU_GRAPH_COND_TYPE_SWITCH, 3, &picker, cases);
    for (uint32_t i = 0; i < 3; i++) append(cases[i], 10 + i, NULL, 0);
    CUgraphExec exec = ready(graph);
    run(exec);
    CHECK(list[0] == 2 && list[1] == 1 && list[2] == 12);
    kernel_t k;
    CU(cuGraphExecKernelNodeSetParams_v2(exec, chooser,
                                         kernel(&k, "choose", 1, (uint64_t[3]){which, 0})));
    CU(cuGraphExecKernelNodeSetParams_v2(exec, picker,
                                         kernel(&k, "choose", 1, (uint64_t[3]){number, 3})));
    list[0] = 0;
    run(exec);
    CHECK(list[0] == 1 && list[1] == 2);
}

static void test_conditional_refusals(void)
{
    CUgraph graph = begin(), body;
    CUgraphExec exec;
    CUgraphNode node;
    int calls = 0;
    CUgraphConditionalHandle handle = handle_new(graph, 0, 0);
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};
    FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithParams(&exec, graph, &params));
    CHECK(params.result_out == CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED);
    CUgraphNodeParams bad = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
    bad.conditional.handle = handle;
    bad.conditional.type = CU_GRAPH_COND_TYPE_WHILE;
    bad.conditional.size = 2;
    FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode(&node, graph, NULL, 0, &bad));
    conditional(graph, handle, CU_GRAPH_COND_TYPE_IF, 1, NULL, &body);
    CUDA_HOST_NODE_PARAMS host = {count_call, &calls};
    CU(cuGraphAddHostNode(&node, body, NULL, 0, &host));
    FAILS(CUDA_ERROR_NOT_SUPPORTED, cuGraphInstantiateWithParams(&exec, graph, &params));
    CHECK(params.hErrNode_out == node);
    CUgraph outer;
    CU(cuGraphCreate(&outer, 0));
    FAILS(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddChildGraphNode(&node, outer, NULL, 0, graph));
}

static void test_enabled(void)
{
    CUgraph graph = begin();
    CUgraphNode a = append(graph, 1, NULL, 0), b = append(graph, 2, &a, 1), empty;
    unsigned enabled = 9;
    append(graph, 3, &b, 1);
    CU(cuGraphAddEmptyNode(&empty, graph, NULL, 0));
    CUgraphExec exec = ready(graph);
    CU(cuGraphNodeSetEnabled(exec, b, 0));
    CU(cuGraphNodeGetEnabled(exec, b, &enabled));
    CHECK(enabled == 0);
    FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphNodeSetEnabled(exec, empty, 0));
    run(exec);
    CHECK(list[0] == 2 && list[1] == 1 && list[2] == 3);
    CU(cuGraphNodeSetEnabled(exec, b, 1));
    run(exec);
    CHECK(list[0] == 5);
}

static void test_whole_update(void)
{
    CUgraph graph = begin(), other;
    CUgraphExecUpdateResultInfo info;
    CUgraphNode a = append(graph, 1, NULL, 0);
    append(graph, 2, &a, 1);
    CUgraphExec exec = ready(graph);
    CU(cuGraphCreate(&other, 0));
    CUgraphNode c = append(other, 7, NULL, 0);
    FAILS(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate_v2(exec, other, &info));
    CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    append(other, 8, &c, 1);
    CU(cuGraphExecUpdate_v2(exec, other, &info));
    CHECK(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
    run(exec);
    CHECK(list[1] == 7 && list[2] == 8);
    // Nodes are still known by the graph it was made from.
    kernel_t k;
    uint64_t words[] = {list_address, 5, 0};
    CU(cuGraphExecKernelNodeSetParams_v2(exec, a, kernel(&k, "append", 1, words)));
    FAILS(CUDA_ERROR_INVALID_VALUE,
          cuGraphExecKernelNodeSetParams_v2(exec, c, kernel(&k, "append", 1, words)));
}

static void test_device_updates(void)
{
    CUgraph graph = begin();
    CUgraphNode setter = add(graph, "empty", (uint64_t[3]){0}, NULL, 0);
    CUgraphNode target = append(graph, 100, &setter, 1);
    CUkernelNodeAttrValue value = {0};
    value.deviceUpdatableKernelNode.deviceUpdatable = 1;
    CUlaunchAttributeID updatable = CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;
    CU(cuGraphKernelNodeSetAttribute(target, updatable, &value));
    CUgraphDeviceNode device = value.deviceUpdatableKernelNode.devNode;
    CHECK(device != NULL);
    value.deviceUpdatableKernelNode.deviceUpdatable = 0;
    FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphKernelNodeSetAttribute(target, updatable, &value));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphDestroyNode(target));
    kernel_t k;
    CU(cuGraphKernelNodeSetParams_v2(setter,
                                     kernel(&k, "regrid", 1, (uint64_t[3]){(uintptr_t)device, 5})));
    CUgraphExec exec = ready(graph), second;
    FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithFlags(&second, graph, 0));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(exec, stream));
    CHECK(rig_said("must be uploaded to the stream that it is launched on"));
    CUstream other;
    CU(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    CU(cuGraphUpload(exec, other));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(exec, stream));
    CU(cuStreamDestroy_v2(other));
    CU(cuGraphUpload(exec, stream));
    run(exec);
    CHECK(list[0] == 5);
    CU(cuGraphExecKernelNodeSetParams_v2(
        exec, setter, kernel(&k, "regrid", 1, (uint64_t[3]){(uintptr_t)device, 0})));
    run(exec); // 0 switches it off
    CHECK(list[0] == 5);
    CU(cuGraphExecKernelNodeSetParams_v2(
        exec, setter, kernel(&k, "regrid", 1, (uint64_t[3]){(uintptr_t)device, 1u << 31})));
    CU(cuGraphLaunch(exec, stream));
    FAILS(CUDA_ERROR_LAUNCH_FAILED, cuStreamSynchronize(stream));
    CHECK(rig_said("kernel regrid, block (0, 0, 0): trapped with 1")); // so many it cannot have
}

// What the device may change cannot be changed by the host while it does; and what a graph was made
// of may be gone.
static void test_forbidden_changes(void)
{
    CUgraph graph = begin(), other;
    CUevent event;
    CUgraphNode record, node = append(graph, 1, NULL, 0);
    kernel_t k;
    CUkernelNodeAttrValue value = {0};
    value.deviceUpdatableKernelNode.deviceUpdatable = 1;
    CU(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE,
                                     &value));
    CUgraphExec exec = ready(graph);
    const CUDA_KERNEL_NODE_PARAMS *params = kernel(&k, "append", 1, (uint64_t[3]){list_address, 2});
    CU(cuGraphExecKernelNodeSetParams_v2(exec, node, params));
    gate_t gate = rig_gate();
    rig_gate_close(gate, stream);
    CU(cuGraphUpload(exec, stream));
    CU(cuGraphLaunch(exec, stream));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphExecKernelNodeSetParams_v2(exec, node, params));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphNodeSetEnabled(exec, node, 0));
    CHECK(rig_said("is changed by the host while its graph is under way"));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(list));
    CHECK(rig_said("is still used by what cuGraphLaunch has enqueued"));
    rig_gate_open(gate);
    CU(cuStreamSynchronize(stream));
    CU(cuGraphDestroy(graph));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphExecKernelNodeSetParams_v2(exec, node, params));
    CHECK(rig_said("the graph that has the node is destroyed"));
    CU(cuGraphUpload(exec, stream));
    run(exec); // as it was

    CU(cuEventCreate(&event, 0));
    CU(cuGraphCreate(&other, 0));
    CU(cuGraphAddEventRecordNode(&record, other, NULL, 0, event));
    exec = ready(other);
    run(exec);
    CU(cuEventDestroy_v2(event));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(exec, stream));
    CHECK(rig_said("cuGraphLaunch: a graph records or waits for an event that is destroyed"));
}

// Graphs with a node that the device may change, and what a thread has done with them.
enum { FIRST = 4, MORE = 43, GRAPHS = FIRST + MORE };
typedef struct maker_t {
    pthread_t thread;
    CUcontext context;
    CUgraph graphs[GRAPHS];
    CUgraphExec execs[GRAPHS];
    unsigned from, to; // that it makes executable
    unsigned done;
    int number; // of its thread; 0: it has not begun
} maker_t;

static void maker_begin(maker_t *maker)
{
    CU(cuCtxSetCurrent(maker->context));
    __atomic_store_n(&maker->number, thread_number(), __ATOMIC_RELEASE);
}

static void *maker_main(void *user)
{
    maker_t *maker = user;
    maker_begin(maker);
    for (unsigned i = maker->from; i < maker->to; i++) {
        CU(cuGraphInstantiateWithFlags(&maker->execs[i], maker->graphs[i], 0));
        __atomic_store_n(&maker->done, i + 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void *maker_destroys(void *user)
{
    maker_t *maker = user;
    maker_begin(maker);
    CU(cuGraphExecDestroy(maker->execs[0]));
    __atomic_store_n(&maker->done, 1, __ATOMIC_RELEASE);
    CU(cuGraphDestroy(maker->graphs[0]));
    __atomic_store_n(&maker->done, 2, __ATOMIC_RELEASE);
    return NULL;
}

static void *event_main(void *user)
{
    maker_t *maker = user;
    CUevent event;
    maker_begin(maker);
    CU(cuEventCreate(&event, 0));
    CU(cuEventDestroy_v2(event));
    __atomic_store_n(&maker->done, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void maker_start(maker_t *maker, void *(*main)(void *))
{
    CU(cuCtxGetCurrent(&maker->context));
    maker->done = 0;
    maker->number = 0;
    CHECK(pthread_create(&maker->thread, NULL, main, maker) == 0);
}

// Until it waits, or has ended.
static void maker_asleep(const maker_t *maker)
{
    while (!__atomic_load_n(&maker->number, __ATOMIC_ACQUIRE)) usleep(1000);
    asleep(maker->number);
}

// It gets so far, and no further.
static void maker_stays(const maker_t *maker, unsigned done)
{
    while (__atomic_load_n(&maker->done, __ATOMIC_ACQUIRE) < done) usleep(1000);
    maker_asleep(maker);
    CHECK(__atomic_load_n(&maker->done, __ATOMIC_ACQUIRE) == done);
}

static CUgraph updatable_graph(void)
{
    CUgraph graph;
    CUkernelNodeAttrValue value = {0};
    value.deviceUpdatableKernelNode.deviceUpdatable = 1;
    CU(cuGraphCreate(&graph, 0));
    CUgraphNode node = add(graph, "empty", (uint64_t[3]){0}, NULL, 0);
    CU(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE,
                                     &value));
    return graph;
}

// With such a node, or without.
static CUgraph any_graph(int number)
{
    CUgraph plain;
    if (number % 2) return updatable_graph();
    CU(cuGraphCreate(&plain, 0));
    add(plain, "empty", (uint64_t[3]){0}, NULL, 0);
    return plain;
}

// As seen on a card: when there is no room for a graph, its instantiation waits for all that the
// device does, and no thread can do more meanwhile; the next one does not wait. What has been there
// once stays.
static void test_room(void)
{
    static maker_t maker, other;
    begin();
    gate_t gate = rig_gate();
    for (int i = 0; i < GRAPHS; i++) maker.graphs[i] = any_graph(i);
    rig_gate_close(gate, stream);
    maker.to = GRAPHS;
    maker_start(&maker, maker_main);
    maker_stays(&maker, FIRST);
    // The maker may have yet to begin with the next.
    for (int attempt = 0; attempt < 100; attempt++) {
        maker_start(&other, event_main);
        maker_asleep(&other);
        if (!__atomic_load_n(&other.done, __ATOMIC_ACQUIRE)) break;
        CHECK(pthread_join(other.thread, NULL) == 0);
    }
    CHECK(__atomic_load_n(&other.done, __ATOMIC_ACQUIRE) == 0);
    rig_gate_open(gate);
    CHECK(pthread_join(maker.thread, NULL) == 0 && pthread_join(other.thread, NULL) == 0);
    for (int i = 0; i < GRAPHS; i++) {
        CU(cuGraphExecDestroy(maker.execs[i]));
        CU(cuGraphDestroy(maker.graphs[i]));
        maker.graphs[i] = any_graph(i);
    }
    gate = rig_gate();
    rig_gate_close(gate, stream);
    maker_start(&maker, maker_main);
    CHECK(pthread_join(maker.thread, NULL) == 0);
    rig_gate_open(gate);
}

// Destroying one waits, too, but holds up no other thread.
static void test_destruction_waits(void)
{
    static maker_t maker;
    begin();
    CUstream beside;
    CUevent event;
    maker.graphs[0] = updatable_graph();
    CU(cuGraphInstantiateWithFlags(&maker.execs[0], maker.graphs[0], 0));
    CU(cuStreamCreate(&beside, CU_STREAM_NON_BLOCKING));
    gate_t gate = rig_gate();
    rig_gate_close(gate, stream);
    maker_start(&maker, maker_destroys);
    maker_stays(&maker, 0);
    CU(cuEventCreate(&event, 0));
    CU(cuMemsetD32Async(list_address, 1, 1, beside));
    CU(cuStreamSynchronize(beside));
    rig_gate_open(gate);
    CHECK(pthread_join(maker.thread, NULL) == 0);
    CHECK(maker.done == 2);
}

static void *launch_main(void *user)
{
    CU(cuGraphLaunch(user, stream));
    return NULL;
}

// Graphs are not CUDA's to lock. The log tells when the other thread is in its call, where it waits
// for room.
static void test_two_threads_in_one_graph(void)
{
    CUgraph graph = begin();
    kernel_t k;
    pthread_t thread;
    const uint64_t words[] = {list_address, 1, 0};
    CUgraphNode node = append(graph, 1, NULL, 0);
    CUgraphExec exec = ready(graph), other = ready(graph);
    gate_t gate = rig_gate();
    rig_gate_close(gate, stream);
    CHECK(pthread_create(&thread, NULL, launch_main, exec) == 0);
    while (!rig_said("call cuGraphLaunch")) usleep(1000);
    kernel(&k, "append", 1, words);
    FAILS(CUDA_ERROR_ILLEGAL_STATE, cuGraphExecKernelNodeSetParams_v2(exec, node, &k.params));
    CHECK(rig_said("cuGraphExecKernelNodeSetParams_v2: another thread is in cuGraphLaunch with"));
    FAILS(CUDA_ERROR_ILLEGAL_STATE, cuGraphExecDestroy(exec));
    CU(cuGraphExecKernelNodeSetParams_v2(other, node, &k.params)); // which is another one
    rig_gate_open(gate);
    CHECK(pthread_join(thread, NULL) == 0);
    CU(cuGraphExecKernelNodeSetParams_v2(exec, node, &k.params));
    CU(cuGraphExecDestroy(exec));
}

// A node is its graph's: a thread that changes an executable graph by it is in a call on both.
static void test_two_threads_at_one_node(void)
{
    static maker_t maker;
    CUgraph graph = begin();
    kernel_t k;
    const uint64_t words[] = {list_address, 1, 0};
    CUgraphNode node = append(graph, 1, NULL, 0);
    CUgraphExec exec = NULL;
    for (int i = 0; i < FIRST; i++) exec = ready(graph);
    gate_t gate = rig_gate();
    rig_gate_close(gate, stream);
    maker.graphs[0] = graph;
    maker.to = 1;
    maker_start(&maker, maker_main); // for which there is no room
    kernel(&k, "append", 1, words);
    CUresult result = CUDA_SUCCESS;
    for (int i = 0; i < 10000 && !result; i++) {
        usleep(1000);
        result = cuGraphExecKernelNodeSetParams_v2(exec, node, &k.params);
    }
    CHECK(result == CUDA_ERROR_ILLEGAL_STATE);
    rig_gate_open(gate);
    CHECK(pthread_join(maker.thread, NULL) == 0);
    CU(cuGraphExecKernelNodeSetParams_v2(exec, node, &k.params));
}

// A kernel that fails ends its launch and the context, and no call hangs.
static void test_faults(void)
{
    CUgraph graph = begin();
    CUgraphNode bad = add(graph, "trap", (uint64_t[3]){0}, NULL, 0), record;
    CUevent event;
    CU(cuEventCreate(&event, 0));
    append(graph, 1, &bad, 1);
    CU(cuGraphAddEventRecordNode(&record, graph, &bad, 1, event));
    CU(cuGraphLaunch(ready(graph), stream));
    FAILS(CUDA_ERROR_LAUNCH_FAILED, cuEventSynchronize(event));
    FAILS(CUDA_ERROR_LAUNCH_FAILED, cuStreamSynchronize(stream));
    CHECK(list[0] == 0);
}

static void test_large(void)
{
    CUgraph graph = begin();
    enum { COUNT = 3000 };
    CUgraphNode last = NULL;
    for (uint32_t i = 0; i < COUNT; i++) last = append(graph, i, &last, i > 0);
    CUgraphExec exec = ready(graph);
    run(exec);
    CHECK(list[0] == COUNT);
    for (uint32_t i = 0; i < COUNT; i++) CHECK(list[1 + i] == i);
}

// As many nodes beside each other take no longer, each, than a few.
static void test_wide(void)
{
    CUgraph graph = begin();
    enum { COUNT = 120000 };
    CUcontext context;
    void *memory;
    CU(cuCtxGetCurrent(&context));
    CU(cuMemHostAlloc(&memory, COUNT * 4, 0));
    memset(memory, 0, COUNT * 4);
    CUDA_MEMSET_NODE_PARAMS fill = {.elementSize = 4, .width = 1, .height = 1, .value = 7};
    for (uint32_t i = 0; i < COUNT; i++) {
        CUgraphNode node;
        fill.dst = (uintptr_t)memory + i * 4; // a word for each: they run at the same time
        CU(cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, context));
    }
    CUgraphExec exec = ready(graph);
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    run(exec);
    clock_gettime(CLOCK_MONOTONIC, &end);
    uint32_t filled = 0;
    for (uint32_t i = 0; i < COUNT; i++) filled += ((const uint32_t *)memory)[i] == 7;
    CHECK(filled == COUNT);
    CHECK(end.tv_sec - begin.tv_sec < 8);
}

int main(int argc, char **argv)
{
    if (argc != 2) return 2;
    rig_kernels = argv[1];
    RUN("", test_diamond);
    RUN("seed=11", test_diamond);
    RUN("", test_independent_nodes_overlap);
    RUN("", test_structure);
    RUN("", test_copies_and_fills);
    RUN("", test_copy_onto_itself);
    RUN("", test_changes_touch_future_launches);
    RUN("seed=6", test_changes_touch_future_launches);
    RUN("", test_launches_are_ordered);
    RUN("", test_host_event_and_child_nodes);
    RUN("", test_while);
    RUN("seed=8", test_while);
    RUN("", test_if_else_and_switch);
    RUN("", test_conditional_refusals);
    RUN("", test_enabled);
    RUN("", test_whole_update);
    RUN("", test_device_updates);
    RUN("", test_forbidden_changes);
    RUN("", test_room);
    RUN("", test_destruction_waits);
    RUN("depth=1,calls=1", test_two_threads_in_one_graph);
    RUN("", test_two_threads_at_one_node);
    RUN("", test_faults);
    RUN("", test_large);
    RUN("", test_wide);
    return rig_result();
}
