// SPDX-License-Identifier: Apache-2.0
// Which calls wait for all that the device runs. A kernel of another stream stands at a gate; what
// the calls work on is not in use.
#include "cuda.h"

#include <pthread.h>
#include <sys/mman.h>

enum { SIZE = 1 << 20 };

static void free_call(void *memory)
{
    CU(cu.cuMemFree_v2(*(CUdeviceptr *)memory));
}

static void free_waits(void)
{
    cuda_begin();
    CUdeviceptr memory = cuda_memory(SIZE);
    REQUIRE(cuda_waits(free_call, &memory, FACT_SHORT_MS));
}

static void free_host_call(void *memory)
{
    CU(cu.cuMemFreeHost(memory));
}

static void free_host_waits(void)
{
    void *memory;
    cuda_begin();
    CU(cu.cuMemHostAlloc(&memory, SIZE, 0));
    REQUIRE(cuda_waits(free_host_call, memory, FACT_SHORT_MS));
}

static void *pages(void)
{
    void *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NEED(memory != MAP_FAILED);
    return memory;
}

static void unregister_call(void *memory)
{
    CU(cu.cuMemHostUnregister(memory));
}

static void unregister_waits(void)
{
    cuda_begin();
    void *memory = pages();
    CU(cu.cuMemHostRegister_v2(memory, SIZE, 0));
    REQUIRE(cuda_waits(unregister_call, memory, FACT_SHORT_MS));
}

static void load_call(void *none)
{
    cuda_load();
}

static void load_waits(void)
{
    cuda_begin();
    REQUIRE(cuda_waits(load_call, NULL, FACT_SHORT_MS));
}

static void unload_call(void *module)
{
    CU(cu.cuModuleUnload(module));
}

static void unload_waits(void)
{
    cuda_begin();
    REQUIRE(cuda_waits(unload_call, cuda_load(), FACT_SHORT_MS));
}

static void alloc_call(void *none)
{
    void *memory;
    CUdeviceptr managed;
    cuda_memory(SIZE);
    CU(cu.cuMemHostAlloc(&memory, SIZE, 0));
    CU(cu.cuMemAllocManaged(&managed, SIZE, CU_MEM_ATTACH_GLOBAL));
}

static void alloc_does_not(void)
{
    cuda_begin();
    REQUIRE(!cuda_waits(alloc_call, NULL, FACT_LONG_MS));
}

static void register_call(void *memory)
{
    CU(cu.cuMemHostRegister_v2(memory, SIZE, 0));
}

static void register_does_not(void)
{
    cuda_begin();
    REQUIRE(!cuda_waits(register_call, pages(), FACT_LONG_MS));
}

static void objects_call(void *none)
{
    CUstream stream = cuda_stream();
    CUevent event = cuda_event();
    CU(cu.cuEventRecord(event, stream));
    CU(cu.cuEventDestroy_v2(event));
    CU(cu.cuStreamDestroy_v2(stream));
}

static void objects_do_not(void)
{
    cuda_begin();
    REQUIRE(!cuda_waits(objects_call, NULL, FACT_LONG_MS));
}

static CUmemoryPool pool;

static void pool_call(void *stream)
{
    CUdeviceptr memory;
    CU(cu.cuMemAllocFromPoolAsync(&memory, SIZE, pool, stream));
    CU(cu.cuMemFreeAsync(memory, stream));
    CU(cu.cuMemPoolTrimTo(pool, 0));
}

static void pools_do_not(void)
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    cuda_begin();
    CU(cu.cuMemPoolCreate(&pool, &props));
    REQUIRE(!cuda_waits(pool_call, cuda_stream(), FACT_LONG_MS));
}

static void exec_destroy_call(void *exec)
{
    CU(cu.cuGraphExecDestroy(exec));
}

static CUgraphExec exec_new(bool updatable)
{
    CUgraph graph = cuda_graph();
    CUgraphNode node = ADD(graph, "empty", NULL, 0);
    if (updatable) cuda_updatable(node);
    return cuda_exec(graph);
}

static void exec_destroy_does_not(void)
{
    cuda_begin();
    REQUIRE(!cuda_waits(exec_destroy_call, exec_new(false), FACT_LONG_MS));
}

static void updatable_destroy_waits(void)
{
    cuda_begin();
    REQUIRE(cuda_waits(exec_destroy_call, exec_new(true), FACT_SHORT_MS));
}

enum { EXECS = 120 };
static CUgraph graphs[EXECS];
static CUgraphExec execs[EXECS];

static void graphs_make(void)
{
    for (int i = 0; i < EXECS; i++) {
        graphs[i] = cuda_graph();
        ADD(graphs[i], "empty", NULL, 0);
    }
}

static void execs_call(void *none)
{
    for (int i = 0; i < EXECS; i++) execs[i] = cuda_exec(graphs[i]);
}

static void slab_waits(void)
{
    cuda_begin();
    graphs_make();
    REQUIRE(cuda_waits(execs_call, NULL, FACT_SHORT_MS));
}

static void room_stays(void)
{
    cuda_begin();
    graphs_make();
    execs_call(NULL);
    for (int i = 0; i < EXECS; i++) CU(cu.cuGraphExecDestroy(execs[i]));
    REQUIRE(!cuda_waits(execs_call, NULL, FACT_LONG_MS));
}

// While one thread frees memory, this one makes events, until it cannot any more.
static void probe_call(void *context)
{
    CU(cu.cuCtxSetCurrent(context));
    for (int i = 0; i < 400; i++) {
        CUevent event = cuda_event();
        CU(cu.cuEventDestroy_v2(event));
        fact_nap(1);
    }
}

static void *free_with_context(void *argument)
{
    void **both = argument;
    CU(cu.cuCtxSetCurrent(both[0]));
    free_call(both[1]);
    return NULL;
}

static void free_holds_up_others(void)
{
    CUcontext context = cuda_begin();
    CUdeviceptr memory = cuda_memory(SIZE);
    CUstream stream = cuda_stream();
    void *both[] = {context, &memory};
    pthread_t thread;
    gate_t gate = gate_close(stream);
    NEED(pthread_create(&thread, NULL, free_with_context, both) == 0);
    // 400 events with a nap behind each are made in 0.5 s, if no thread is held up.
    REQUIRE(fact_waits(&(fact_try_t){probe_call, context, gate_open, &gate}, 2000));
    NEED(pthread_join(thread, NULL) == 0);
}

// Words of the host, and a stream that stands at a gate.
static struct {
    CUdeviceptr from, to;
    CUstream stream;
} held;

static void held_copy(void *none)
{
    CU(cu.cuMemcpyAsync(held.to, held.from, 64, held.stream));
}

static void held_fill(void *none)
{
    CU(cu.cuMemsetD32Async(held.to, 1, 16, held.stream));
}

static bool held_waits(void (*call)(void *), unsigned patience)
{
    cuda_begin();
    held.from = (uintptr_t)cuda_words();
    held.to = (uintptr_t)cuda_words();
    held.stream = cuda_stream();
    gate_t gate = gate_close(held.stream);
    bool waits = fact_waits(&(fact_try_t){call, NULL, gate_open, &gate}, patience);
    CU(cu.cuStreamSynchronize(held.stream));
    return waits;
}

static void host_copy_waits(void)
{
    REQUIRE(held_waits(held_copy, FACT_SHORT_MS));
}

static void host_fill_does_not(void)
{
    REQUIRE(!held_waits(held_fill, FACT_LONG_MS));
}

const fact_t cuda_wait_facts[] = {
    {"wait.free", "cuMemFree waits for the device", H200, free_waits, HOLDS, HOLDS, NULL},
    {"wait.free_host", "cuMemFreeHost waits for the device", H200, free_host_waits, HOLDS, HOLDS,
     NULL},
    {"wait.unregister", "cuMemHostUnregister waits for the device", H200, unregister_waits, HOLDS,
     HOLDS, NULL},
    {"wait.load", "cuModuleLoadData waits for the device", H200, load_waits, HOLDS, HOLDS, NULL},
    {"wait.unload", "cuModuleUnload waits for the device", H200, unload_waits, HOLDS, HOLDS, NULL},
    {"wait.slab", "of 120 graphs that are made ready in a row, one waits for the device", H200,
     slab_waits, HOLDS, HOLDS, NULL},
    {"wait.updatable_destroy",
     "to destroy an executable graph with nodes that the device may change waits for the device",
     H200, updatable_destroy_waits, HOLDS, HOLDS, NULL},
    {"wait.held_up", "while one thread waits in cuMemFree, no other can make an event", H200,
     free_holds_up_others, HOLDS, HOLDS, NULL},
    {"wait.host_copy",
     "an asynchronous copy within page-locked memory returns when the stream has come to it",
     "CUDA Driver API, API synchronization behavior; " H200, host_copy_waits, HOLDS, HOLDS, NULL},
    {"wait.not_host_fill", "an asynchronous fill of page-locked memory does not wait",
     "CUDA Driver API, API synchronization behavior", host_fill_does_not, HOLDS, HOLDS, NULL},
    {"wait.not_alloc", "cuMemAlloc, cuMemHostAlloc and cuMemAllocManaged do not wait", H200,
     alloc_does_not, HOLDS, HOLDS, NULL},
    {"wait.not_register", "cuMemHostRegister does not wait", H200, register_does_not, HOLDS, HOLDS,
     NULL},
    {"wait.not_objects", "streams and events are made and destroyed without waiting", H200,
     objects_do_not, HOLDS, HOLDS, NULL},
    {"wait.not_pools", "memory of a pool is got, freed and trimmed without waiting", H200,
     pools_do_not, HOLDS, HOLDS, NULL},
    {"wait.not_exec_destroy", "to destroy any other executable graph does not wait", H200,
     exec_destroy_does_not, HOLDS, HOLDS, NULL},
    {"wait.room_stays", "what destroyed graphs took is there for others, without waiting", H200,
     room_stays, HOLDS, HOLDS, NULL},
    {0},
};
