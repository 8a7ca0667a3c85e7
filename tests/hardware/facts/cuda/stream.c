// SPDX-License-Identifier: Apache-2.0
// Streams: how much they take, what is ordered, and what calls need of the thread.
#include "cuda.h"

#include <pthread.h>
#include <string.h>

// Puts work on a stream that stands at a gate, until a call waits for room.
typedef struct filler_t {
    void (*put)(struct filler_t *filler);
    CUstream stream;
    CUdeviceptr from, to;
    CUgraphExec exec;
    CUfunction empty;
    uint32_t count; // that went in
    bool stop;
} filler_t;

static void *filler_main(void *argument)
{
    filler_t *filler = argument;
    while (!__atomic_load_n(&filler->stop, __ATOMIC_ACQUIRE)) {
        filler->put(filler);
        __atomic_add_fetch(&filler->count, 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

// How many pieces went in, the gate included, before one waited: none has for a fifth of a second.
static uint32_t fill_up(filler_t *filler, uint32_t most)
{
    pthread_t thread;
    uint32_t last = 0, now = 0;
    gate_t gate = gate_close(filler->stream);
    NEED(pthread_create(&thread, NULL, filler_main, filler) == 0);
    for (unsigned still = 0; still < 20 && now < most; still = now == last ? still + 1 : 0) {
        last = now;
        fact_nap(10);
        now = __atomic_load_n(&filler->count, __ATOMIC_ACQUIRE);
    }
    __atomic_store_n(&filler->stop, true, __ATOMIC_RELEASE);
    gate_open(&gate);
    NEED(pthread_join(thread, NULL) == 0);
    CU(cu.cuStreamSynchronize(filler->stream));
    return now + 1;
}

static void require_room(filler_t *filler)
{
    uint32_t count = fill_up(filler, 3000);
    fact_say("%u with the kernel that stands there", count);
    REQUIRE(count >= 1021 && count <= 1022);
}

static void put_launch(filler_t *f)
{
    CU(cu.cuLaunchKernel(f->empty, 1, 1, 1, 1, 1, 1, 0, f->stream, NULL, NULL));
}

static void put_transfer(filler_t *f)
{
    if (f->count % 2)
        CU(cu.cuMemcpyAsync(f->to, f->from, 4096, f->stream));
    else
        CU(cu.cuMemsetD8Async(f->to, 1, 4096, f->stream));
}

static void put_graph(filler_t *f)
{
    if (f->count % 2)
        CU(cu.cuGraphUpload(f->exec, f->stream));
    else
        CU(cu.cuGraphLaunch(f->exec, f->stream));
}

static void launches_fill(void)
{
    cuda_begin();
    require_room(
        &(filler_t){.put = put_launch, .stream = cuda_stream(), .empty = cuda_kernel("empty")});
}

static void transfers_fill(void)
{
    cuda_begin();
    require_room(&(filler_t){.put = put_transfer,
                             .stream = cuda_stream(),
                             .from = cuda_memory(4096),
                             .to = cuda_memory(4096)});
}

static void graphs_fill(void)
{
    cuda_begin();
    CUgraph graph = cuda_graph();
    ADD(graph, "empty", NULL, 0);
    require_room(&(filler_t){.put = put_graph, .stream = cuda_stream(), .exec = cuda_exec(graph)});
}

static void events_take_no_room(void)
{
    cuda_begin();
    CUstream stream = cuda_stream(), other = cuda_stream();
    CUevent mine = cuda_event(), foreign = cuda_event();
    gate_t gate = gate_close(stream), far = gate_close(other);
    CU(cu.cuEventRecord(foreign, other));
    for (int i = 0; i < 3000; i++) {
        CU(cu.cuEventRecord(mine, stream));
        CU(cu.cuStreamWaitEvent(stream, foreign, 0));
    }
    RETURNS(CUDA_ERROR_NOT_READY, cu.cuEventQuery(mine));
    gate_open(&gate);
    gate_open(&far);
    CU(cu.cuStreamSynchronize(stream));
}

static void nothing_is_copied(void)
{
    cuda_begin();
    CUstream stream = cuda_stream();
    CUdeviceptr from = cuda_memory(64), to = cuda_memory(64);
    RETURNS(CUDA_SUCCESS, cu.cuMemcpyAsync(to, from, 0, stream));
    RETURNS(CUDA_SUCCESS, cu.cuMemsetD8Async(to, 1, 0, stream));
    RETURNS(CUDA_SUCCESS, cu.cuMemsetD32Async(to, 1, 0, stream));
    RETURNS(CUDA_SUCCESS, cu.cuStreamSynchronize(stream));
}

static void query_is_not_ready(void)
{
    cuda_begin();
    CUstream stream = cuda_stream();
    RETURNS(CUDA_SUCCESS, cu.cuStreamQuery(stream));
    gate_t gate = gate_close(stream);
    RETURNS(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(stream));
    gate_open(&gate);
    CU(cu.cuStreamSynchronize(stream));
    RETURNS(CUDA_SUCCESS, cu.cuStreamQuery(stream));
}

// 100 launches whose words are another's by the time they run.
static void arguments_are_copied(void)
{
    cuda_begin();
    enum { COUNT = 100 };
    CUstream stream = cuda_stream();
    uint32_t *list = cuda_words();
    uint64_t words[2] = {cuda_at(list)};
    void *pointers[2] = {&words[0], &words[1]};
    gate_t gate = gate_close(stream);
    CUfunction append = cuda_kernel("append");
    for (uint32_t i = 0; i < COUNT; i++) {
        words[1] = i;
        CU(cu.cuLaunchKernel(append, 1, 1, 1, 1, 1, 1, 0, stream, pointers, NULL));
    }
    words[1] = 12345;
    gate_open(&gate);
    CU(cu.cuStreamSynchronize(stream));
    REQUIRE(list[0] == COUNT);
    for (uint32_t i = 0; i < COUNT; i++) REQUIRE(list[1 + i] == i);
}

// The same by a block and its size, which is how Keel hands arguments over.
static void blocks_are_copied(void)
{
    cuda_begin();
    CUstream stream = cuda_stream();
    uint32_t *list = cuda_words();
    uint64_t block[2] = {cuda_at(list), 3};
    size_t size = sizeof block;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, block, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    gate_t gate = gate_close(stream);
    CU(cu.cuLaunchKernel(cuda_kernel("append"), 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra));
    memset(block, 0xff, sizeof block);
    gate_open(&gate);
    CU(cu.cuStreamSynchronize(stream));
    REQUIRE(list[0] == 1 && list[1] == 3);
}

static void longer_blocks(void)
{
    cuda_begin();
    CUstream stream = cuda_stream();
    uint32_t *list = cuda_words();
    uint64_t block[32] = {cuda_at(list), 4};
    size_t size = sizeof block;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, block, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    RETURNS(CUDA_SUCCESS,
            cu.cuLaunchKernel(cuda_kernel("append"), 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra));
    CU(cu.cuStreamSynchronize(stream));
    REQUIRE(list[0] == 1 && list[1] == 4);
}

// 16 streams of that priority wait for an event that does not come; behind that each has a kernel,
// or records an event.
static gate_t waiters(int priority, bool kernels)
{
    CUstream behind = cuda_stream();
    CUevent event = cuda_event();
    gate_t gate = gate_close(behind);
    CU(cu.cuEventRecord(event, behind));
    for (int i = 0; i < 16; i++) {
        CUstream stream;
        CU(cu.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, priority));
        CU(cu.cuStreamWaitEvent(stream, event, 0));
        if (kernels)
            LAUNCH("empty", stream, 0);
        else
            CU(cu.cuEventRecord(cuda_event(), stream));
    }
    return gate;
}

static void few_channels(void)
{
    cuda_begin();
    CUstream stream = cuda_stream();
    uint32_t *word = cuda_words();
    gate_t gate = waiters(0, true);
    LAUNCH("poke", stream, cuda_at(word), 1);
    fact_nap(FACT_SHORT_MS); // nothing can be seen of what does not happen
    bool held = __atomic_load_n(word, __ATOMIC_ACQUIRE) == 0;
    gate_open(&gate);
    CU(cu.cuStreamSynchronize(stream));
    REQUIRE(held);
}

static void other_priority(void)
{
    cuda_begin();
    CUstream stream = cuda_stream();
    uint32_t *word = cuda_words();
    int least, greatest;
    CU(cu.cuCtxGetStreamPriorityRange(&least, &greatest));
    gate_t gate = waiters(greatest, false);
    LAUNCH("poke", stream, cuda_at(word), 1);
    REQUIRE(fact_await(word, 1)); // while the gate is closed
    gate_open(&gate);
    CU(cu.cuCtxSynchronize());
}

static void kernels_overlap(void)
{
    cuda_begin();
    CUstream first = cuda_stream(), second = cuda_stream();
    gate_t gate = gate_close(first);
    LAUNCH("poke", second, cuda_at(gate.word), 1);
    RETURNS(CUDA_SUCCESS, cu.cuStreamSynchronize(first));
}

static void copies_overlap(void)
{
    cuda_begin();
    CUstream first = cuda_stream(), second = cuda_stream();
    uint32_t *source = cuda_words();
    gate_t gate = gate_close(first);
    *source = 1;
    CU(cu.cuMemcpyAsync(cuda_at(gate.word), cuda_at(source), 4, second));
    RETURNS(CUDA_SUCCESS, cu.cuStreamSynchronize(first));
}

static void non_blocking(void)
{
    cuda_begin();
    CUstream stream = cuda_stream();
    gate_t gate = gate_close(NULL);
    LAUNCH("empty", stream, 0);
    RETURNS(CUDA_SUCCESS, cu.cuStreamSynchronize(stream));
    gate_open(&gate);
    CU(cu.cuCtxSynchronize());
}

static void destroyed_goes_on(void)
{
    cuda_begin();
    CUstream stream = cuda_stream();
    uint32_t *list = cuda_words();
    gate_t gate = gate_close(stream);
    LAUNCH("append", stream, cuda_at(list), 7);
    CU(cu.cuStreamDestroy_v2(stream)); // returns, or the gate stays closed
    gate_open(&gate);
    REQUIRE(fact_await(&list[0], 1) && fact_await(&list[1], 7));
}

static void priorities(void)
{
    cuda_begin();
    int least, greatest, is;
    CUstream stream;
    CU(cu.cuCtxGetStreamPriorityRange(&least, &greatest));
    fact_say("from %d to %d", least, greatest);
    REQUIRE(least == 0 && greatest < 0);
    CU(cu.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, greatest - 10));
    CU(cu.cuStreamGetPriority(stream, &is));
    REQUIRE(is == greatest);
    CU(cu.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, least + 10));
    CU(cu.cuStreamGetPriority(stream, &is));
    REQUIRE(is == least);
}

static void no_context_needed(void)
{
    CUcontext context = cuda_begin(), of = NULL, now = NULL;
    CUstream stream = cuda_stream();
    CUevent event = cuda_event();
    CUfunction append = cuda_kernel("append");
    CUdeviceptr memory = cuda_memory(64);
    uint32_t *list = cuda_words();
    uint64_t words[2] = {cuda_at(list), 9};
    void *pointers[2] = {&words[0], &words[1]};
    CUgraph graph = cuda_graph();
    ADD(graph, "append", NULL, cuda_at(list), 10);
    CUgraphExec exec = cuda_exec(graph);
    CU(cu.cuStreamGetCtx(stream, &of));
    REQUIRE(of == context);
    CU(cu.cuCtxSetCurrent(NULL));
    RETURNS(CUDA_SUCCESS, cu.cuLaunchKernel(append, 1, 1, 1, 1, 1, 1, 0, stream, pointers, NULL));
    RETURNS(CUDA_SUCCESS, cu.cuMemsetD32Async(memory, 4, 16, stream));
    RETURNS(CUDA_SUCCESS, cu.cuMemcpyAsync(cuda_at(list + 16), memory, 4, stream));
    RETURNS(CUDA_SUCCESS, cu.cuGraphUpload(exec, stream));
    RETURNS(CUDA_SUCCESS, cu.cuGraphLaunch(exec, stream));
    RETURNS(CUDA_SUCCESS, cu.cuEventRecord(event, stream));
    RETURNS(CUDA_SUCCESS, cu.cuStreamWaitEvent(stream, event, 0));
    RETURNS(CUDA_SUCCESS, cu.cuEventSynchronize(event));
    RETURNS(CUDA_SUCCESS, cu.cuEventQuery(event));
    RETURNS(CUDA_SUCCESS, cu.cuStreamSynchronize(stream));
    REQUIRE(list[0] == 2 && list[1] == 9 && list[2] == 10 && list[16] == 4);
    CU(cu.cuCtxGetCurrent(&now));
    REQUIRE(now == NULL);
}

static void host_fn(void *user)
{
    uint32_t *list = user;
    uint32_t index = __atomic_add_fetch(&list[0], 1, __ATOMIC_RELAXED);
    __atomic_store_n(&list[index], 20, __ATOMIC_RELEASE);
}

static void host_functions_in_order(void)
{
    cuda_begin();
    CUstream stream = cuda_stream();
    uint32_t *list = cuda_words();
    gate_t gate = gate_close(stream);
    LAUNCH("append", stream, cuda_at(list), 10);
    CU(cu.cuLaunchHostFunc(stream, host_fn, list));
    LAUNCH("append", stream, cuda_at(list), 30);
    gate_open(&gate);
    CU(cu.cuStreamSynchronize(stream));
    REQUIRE(list[0] == 3 && list[1] == 10 && list[2] == 20 && list[3] == 30);
}

static void stamps_grow(void)
{
    cuda_begin();
    enum { COUNT = 100 };
    CUstream stream = cuda_stream();
    uint64_t *stamps = (uint64_t *)(void *)cuda_words();
    for (int i = 0; i < COUNT; i++) LAUNCH("stamp", stream, cuda_at(&stamps[i]));
    CU(cu.cuStreamSynchronize(stream));
    REQUIRE(stamps[0] > 0);
    for (int i = 1; i < COUNT; i++) REQUIRE(stamps[i] >= stamps[i - 1]);
}

const fact_t cuda_stream_facts[] = {
    {"stream.launches_fill", "a stream takes 1021 launches, and the next one waits for room", H200,
     launches_fill, HOLDS, HOLDS, NULL},
    {"stream.transfers_fill", "fills and copies take the same room as launches", H200,
     transfers_fill, HOLDS, HOLDS, NULL},
    {"stream.graphs_fill", "launches and uploads of graphs take the same room as launches", H200,
     graphs_fill, HOLDS, HOLDS, NULL},
    {"stream.events_take_no_room", "6000 records of and waits for events go into one stream", H200,
     events_take_no_room, HOLDS, HOLDS, NULL},
    {"stream.nothing_is_copied", "copies and fills of no bytes succeed",
     "taken for granted by sim/cuda; NVIDIA's documentation does not say", nothing_is_copied, HOLDS,
     HOLDS, NULL},
    {"stream.query_is_not_ready", "a stream's query says whether all of its work is over",
     "CUDA driver API, cuStreamQuery", query_is_not_ready, HOLDS, HOLDS, NULL},
    {"stream.arguments_are_copied", "arguments are copied by the call that launches",
     "CUDA driver API, cuLaunchKernel; " H200, arguments_are_copied, HOLDS, HOLDS, NULL},
    {"stream.blocks_are_copied", "so is a block of arguments", "CUDA driver API, cuLaunchKernel",
     blocks_are_copied, HOLDS, HOLDS, NULL},
    {"stream.longer_blocks", "a block of arguments may be longer than what the kernel takes", H200,
     longer_blocks, HOLDS, DIFFERS, "an H200 refuses 256 bytes for a kernel of 16 (701)"},
    {"stream.few_channels",
     "16 streams that wait for an event hold up a 17th stream of the same priority", H200,
     few_channels, DIFFERS, HOLDS, "streams of sim/cuda share no channels"},
    {"stream.other_priority",
     "if theirs is the greatest, and they record events, they hold up no other stream",
     "docs/stream.md, Points: watchers' streams have a priority of their own", other_priority,
     HOLDS, HOLDS, NULL},
    {"stream.kernels_overlap", "a kernel may wait for one of another stream",
     H200 " (gpu.queues_overlap)", kernels_overlap, HOLDS, HOLDS, NULL},
    {"stream.copies_overlap", "a kernel may wait for a copy of another stream",
     H200 " (gpu.copies_overlap_kernels)", copies_overlap, HOLDS, HOLDS, NULL},
    {"stream.non_blocking", "a non-blocking stream does not wait for the default stream",
     "CUDA driver API, stream synchronization behavior", non_blocking, HOLDS, HOLDS, NULL},
    {"stream.destroyed_goes_on", "to destroy a stream does not wait, and its work goes on",
     "CUDA driver API, cuStreamDestroy; " H200, destroyed_goes_on, HOLDS, HOLDS, NULL},
    {"stream.priorities",
     "0 is the least priority, and what is beyond the range is brought into it",
     "CUDA driver API, cuStreamCreateWithPriority", priorities, HOLDS, HOLDS, NULL},
    {"stream.no_context_needed",
     "launches, copies, fills, events and graphs go by the context of their stream", H200,
     no_context_needed, HOLDS, HOLDS, NULL},
    {"stream.host_functions_in_order", "a host function runs between the work around it",
     "CUDA driver API, cuLaunchHostFunc", host_functions_in_order, HOLDS, HOLDS, NULL},
    {"stream.stamps_grow", "a kernel reads no earlier time than the one before it",
     "PTX ISA, %globaltimer; " H200 " (timestamp.*)", stamps_grow, NOT_RUN, HOLDS,
     "kernels of sim/cuda read the host's clock themselves"},
    {0},
};
