// SPDX-License-Identifier: Apache-2.0
// What may be called while a thread captures a stream in the mode that forbids most.
#include "cuda.h"

static CUstream captured;

static void begin(void)
{
    captured = cuda_stream();
    CU(cu.cuStreamBeginCapture_v2(captured, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

static CUstreamCaptureMode mode_set(CUstreamCaptureMode mode)
{
    CU(cu.cuThreadExchangeStreamCaptureMode(&mode));
    return mode;
}

static void require_whole(void)
{
    CUgraph graph;
    RETURNS(CUDA_SUCCESS, cu.cuStreamEndCapture(captured, &graph));
}

static void require_spoilt(void)
{
    CUgraph graph;
    RETURNS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cu.cuStreamEndCapture(captured, &graph));
}

static void modes(void)
{
    cuda_begin();
    REQUIRE(mode_set(CU_STREAM_CAPTURE_MODE_RELAXED) == CU_STREAM_CAPTURE_MODE_GLOBAL);
    REQUIRE(mode_set(CU_STREAM_CAPTURE_MODE_GLOBAL) == CU_STREAM_CAPTURE_MODE_RELAXED);
}

static void query_spoils(void)
{
    cuda_begin();
    CUevent event = cuda_event();
    begin();
    RETURNS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cu.cuEventQuery(event));
    require_spoilt();
}

static void synchronise_spoils(void)
{
    cuda_begin();
    CUstream stream = cuda_stream();
    begin();
    RETURNS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cu.cuStreamSynchronize(stream));
    require_spoilt();
}

static void alloc_spoils(void)
{
    cuda_begin();
    CUdeviceptr memory;
    begin();
    RETURNS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cu.cuMemAlloc_v2(&memory, 64));
    require_spoilt();
}

static void relaxed_thread_may(void)
{
    cuda_begin();
    CUstream stream = cuda_stream();
    CUevent event = cuda_event();
    CUdeviceptr memory, pooled;
    CUmemoryPool pool;
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CU(cu.cuMemPoolCreate(&pool, &props));
    begin();
    mode_set(CU_STREAM_CAPTURE_MODE_RELAXED);
    RETURNS(CUDA_SUCCESS, cu.cuEventRecord(event, stream));
    RETURNS(CUDA_SUCCESS, cu.cuEventSynchronize(event));
    RETURNS(CUDA_SUCCESS, cu.cuEventQuery(event));
    RETURNS(CUDA_SUCCESS, cu.cuStreamSynchronize(stream));
    RETURNS(CUDA_SUCCESS, cu.cuMemAllocFromPoolAsync(&pooled, 64, pool, stream));
    RETURNS(CUDA_SUCCESS, cu.cuMemFreeAsync(pooled, stream));
    RETURNS(CUDA_SUCCESS, cu.cuMemAlloc_v2(&memory, 64));
    mode_set(CU_STREAM_CAPTURE_MODE_GLOBAL);
    require_whole();
}

static void enqueues_may(void)
{
    cuda_begin();
    CUstream stream = cuda_stream();
    CUevent event = cuda_event();
    CUdeviceptr memory = cuda_memory(64), other = cuda_memory(64);
    uint32_t *list = cuda_words();
    CUgraph graph = cuda_graph();
    cuda_node_t changed;
    CUgraphNode node = ADD(graph, "append", NULL, cuda_at(list), 1);
    CUgraphExec exec = cuda_exec(graph);
    cuda_node(&changed, cuda_kernel("append"), (uint64_t[3]){cuda_at(list), 2});
    begin();
    LAUNCH("empty", stream, 0);
    RETURNS(CUDA_SUCCESS, cu.cuMemsetD8Async(memory, 1, 64, stream));
    RETURNS(CUDA_SUCCESS, cu.cuMemcpyAsync(other, memory, 64, stream));
    RETURNS(CUDA_SUCCESS, cu.cuEventRecord(event, stream));
    RETURNS(CUDA_SUCCESS, cu.cuStreamWaitEvent(stream, event, 0));
    RETURNS(CUDA_SUCCESS, cu.cuGraphExecKernelNodeSetParams_v2(exec, node, &changed.params));
    RETURNS(CUDA_SUCCESS, cu.cuGraphUpload(exec, stream));
    RETURNS(CUDA_SUCCESS, cu.cuGraphLaunch(exec, stream));
    require_whole();
    CU(cu.cuStreamSynchronize(stream));
    REQUIRE(list[0] == 1 && list[1] == 2);
}

static void captured_event(void)
{
    cuda_begin();
    CUevent event = cuda_event();
    begin();
    RETURNS(CUDA_SUCCESS, cu.cuEventRecord(event, captured));
    mode_set(CU_STREAM_CAPTURE_MODE_RELAXED);
    RETURNS(CUDA_ERROR_CAPTURED_EVENT, cu.cuEventQuery(event));
}

const fact_t cuda_capture_facts[] = {
    {"capture.modes", "a thread's mode is global until it is exchanged",
     "CUDA driver API, cuThreadExchangeStreamCaptureMode", modes, HOLDS, HOLDS, NULL},
    {"capture.query_spoils", "an event's query is refused, and spoils the capture", H200,
     query_spoils, HOLDS, HOLDS, NULL},
    {"capture.synchronise_spoils", "so is the synchronise of another stream", H200,
     synchronise_spoils, HOLDS, HOLDS, NULL},
    {"capture.alloc_spoils", "so is cuMemAlloc",
     "CUDA driver API, cuThreadExchangeStreamCaptureMode", alloc_spoils, HOLDS, HOLDS, NULL},
    {"capture.relaxed_thread_may", "in relaxed mode a thread may call them all", H200,
     relaxed_thread_may, HOLDS, HOLDS, NULL},
    {"capture.enqueues_may", "work on other streams, and changes of graphs, are allowed", H200,
     enqueues_may, HOLDS, HOLDS, NULL},
    {"capture.captured_event", "an event that was recorded in a capture cannot be asked", H200,
     captured_event, DIFFERS, HOLDS, "sim/cuda does not model what a capture takes in"},
    {0},
};
