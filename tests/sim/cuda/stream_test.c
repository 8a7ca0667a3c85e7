// SPDX-License-Identifier: Apache-2.0
// stream_test KERNELS: streams, events, host functions, memory operations, default streams.
#include "rig.h"
#include "tests/asleep.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

static uint32_t *host_list(CUdeviceptr *device)
{
    void *list;
    CU(cuMemHostAlloc(&list, 65536, 0));
    memset(list, 0, 65536);
    *device = (uintptr_t)list;
    return list;
}

static void test_order_within_a_stream(void)
{
    rig_context();
    CUdeviceptr device;
    uint32_t *list = host_list(&device);
    CUstream stream;
    CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (uint64_t i = 0; i < 2000; i++) rig_launch("append", 1, stream, (uint64_t[3]){device, i});
    CU(cuStreamSynchronize(stream));
    CHECK(list[0] == 2000);
    for (uint32_t i = 0; i < 2000; i++) CHECK(list[i + 1] == i);
    CU(cuStreamDestroy_v2(stream));
}

static void test_blocks_in_any_order(void)
{
    rig_context();
    CUdeviceptr device;
    uint32_t *list = host_list(&device);
    bool seen[100] = {0}, shuffled = false;
    rig_launch("append", 100, NULL, (uint64_t[3]){device, 0});
    CU(cuCtxSynchronize());
    CHECK(list[0] == 100);
    for (uint32_t i = 0; i < 100; i++) {
        CHECK(list[i + 1] < 100 && !seen[list[i + 1]]);
        seen[list[i + 1]] = true;
        shuffled |= list[i + 1] != i;
    }
    CHECK(shuffled);
}

static void test_events_order_streams(void)
{
    rig_context();
    gate_t gate = rig_gate();
    CUdeviceptr device;
    uint32_t *list = host_list(&device);
    CUstream a, b;
    CUevent event;
    CU(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    CU(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    CU(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    // Never recorded: the wait is nothing.
    CU(cuStreamWaitEvent(b, event, 0));
    CU(cuEventSynchronize(event));
    CU(cuEventQuery(event));
    CU(cuStreamSynchronize(b));

    rig_gate_close(gate, a);
    rig_launch("append", 1, a, (uint64_t[3]){device, 1});
    CU(cuEventRecord(event, a));
    CU(cuStreamWaitEvent(b, event, 0));
    rig_launch("append", 1, b, (uint64_t[3]){device, 2});
    FAILS(CUDA_ERROR_NOT_READY, cuEventQuery(event));
    FAILS(CUDA_ERROR_NOT_READY, cuStreamQuery(b));
    rig_pass();
    CHECK(list[0] == 0);
    // What waits has the record of its time, not one that comes later.
    gate_t second = rig_gate();
    rig_gate_close(second, a);
    CU(cuEventRecord(event, a));
    rig_gate_open(gate);
    CU(cuStreamSynchronize(b));
    CHECK(list[0] == 2 && list[1] == 1 && list[2] == 2);
    FAILS(CUDA_ERROR_NOT_READY, cuEventQuery(event));
    rig_gate_open(second);
    CU(cuEventSynchronize(event));
    CU(cuEventDestroy_v2(event));
    CU(cuStreamDestroy_v2(a));
    CU(cuStreamDestroy_v2(b));
    FAILS(CUDA_ERROR_INVALID_HANDLE, cuEventRecord((CUevent)list, NULL));
}

// A context takes its events with it, also when it begins again.
static void test_events_end_with_their_context(void)
{
    CUevent event;
    rig_context();
    CU(cuEventCreate(&event, 0));
    CU(cuEventQuery(event));
    CU(cuDevicePrimaryCtxRelease_v2(0));
    FAILS(CUDA_ERROR_INVALID_HANDLE, cuEventQuery(event));
    CHECK(rig_said("cuEventQuery: an event of a context that has ended"));
    rig_context();
    FAILS(CUDA_ERROR_INVALID_HANDLE, cuEventSynchronize(event));
    FAILS(CUDA_ERROR_INVALID_HANDLE, cuStreamWaitEvent(NULL, event, 0));
    FAILS(CUDA_ERROR_INVALID_HANDLE, cuEventDestroy_v2(event));
}

static void test_times(void)
{
    rig_context();
    CUevent start, end, plain;
    float ms = -1;
    CU(cuEventCreate(&start, 0));
    CU(cuEventCreate(&end, CU_EVENT_BLOCKING_SYNC));
    CU(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
    FAILS(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime_v2(&ms, start, end));
    gate_t gate = rig_gate();
    CU(cuEventRecord(start, NULL));
    rig_gate_close(gate, NULL);
    CU(cuEventRecord(end, NULL));
    CU(cuEventRecord(plain, NULL));
    FAILS(CUDA_ERROR_NOT_READY, cuEventElapsedTime(&ms, start, end));
    FAILS(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&ms, start, plain));
    usleep(20000);
    rig_gate_open(gate);
    CU(cuEventSynchronize(end));
    CU(cuEventElapsedTime_v2(&ms, start, end));
    CHECK(ms >= 15 && ms < 10000);
}

static void count_call(void *user)
{
    __atomic_add_fetch((int *)user, 1, __ATOMIC_RELAXED);
}

static CUresult called_from_host;

static void call_cuda(void *user)
{
    called_from_host = cuStreamQuery(NULL);
}

static void called_back(CUstream stream, CUresult status, void *user)
{
    if (status == CUDA_SUCCESS) count_call(user);
}

static void test_host_functions(void)
{
    rig_context();
    CUstream stream;
    int calls = 0;
    CU(cuStreamCreate(&stream, 0));
    gate_t gate = rig_gate();
    rig_gate_close(gate, stream);
    CU(cuLaunchHostFunc(stream, count_call, &calls));
    CU(cuStreamAddCallback(stream, called_back, &calls, 0));
    CU(cuLaunchHostFunc(stream, call_cuda, NULL));
    rig_pass();
    CHECK(__atomic_load_n(&calls, __ATOMIC_RELAXED) == 0);
    rig_gate_open(gate);
    CU(cuStreamSynchronize(stream));
    CHECK(calls == 2);
    CHECK(called_from_host == CUDA_ERROR_NOT_PERMITTED);
    CHECK(rig_said("may not call CUDA"));
}

static void test_memory_operations(void)
{
    rig_context();
    CUstream stream;
    CUdeviceptr words, list_address;
    uint32_t *list = host_list(&list_address);
    CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    volatile uint64_t *word = (uint64_t *)host_list(&words);
    rig_module(); // before anything is parked
    CU(cuStreamWaitValue64_v2(stream, words, 5, CU_STREAM_WAIT_VALUE_GEQ));
    CU(cuStreamWriteValue64_v2(stream, words + 8, 77, 0));
    CU(cuStreamWriteValue32_v2(stream, words + 16, 78, 0));
    rig_pass();
    CHECK(word[1] == 0);
    __atomic_store_n(&word[0], 6, __ATOMIC_RELEASE);
    CU(cuStreamSynchronize(stream));
    CHECK(word[1] == 77 && word[2] == 78);
    CU(cuStreamWaitValue32_v2(stream, words, 6, CU_STREAM_WAIT_VALUE_EQ));
    CU(cuStreamWaitValue32_v2(stream, words, 2, CU_STREAM_WAIT_VALUE_AND));
    CU(cuStreamWaitValue32_v2(stream, words, 6, CU_STREAM_WAIT_VALUE_NOR));
    rig_launch("append", 1, stream, (uint64_t[3]){list_address, 3});
    CU(cuStreamSynchronize(stream));
    CHECK(list[0] == 1);
    FAILS(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue64_v2(stream, words + 4, 1, 0));
    CUdeviceptr managed;
    CU(cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32_v2(stream, managed, 1, 0));
}

// The legacy default stream comes after all blocking streams, and before what follows in them.
static void test_default_stream(void)
{
    rig_context();
    CUdeviceptr device;
    uint32_t *list = host_list(&device);
    CUstream blocking, apart;
    CU(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    CU(cuStreamCreate(&apart, CU_STREAM_NON_BLOCKING));
    gate_t gate = rig_gate();
    rig_gate_close(gate, blocking);
    rig_launch("append", 1, blocking, (uint64_t[3]){device, 1});
    rig_launch("append", 1, NULL, (uint64_t[3]){device, 2});
    rig_launch("append", 1, blocking, (uint64_t[3]){device, 3});
    rig_launch("append", 1, CU_STREAM_PER_THREAD, (uint64_t[3]){device, 4});
    rig_launch("append", 1, apart, (uint64_t[3]){device, 5});
    CU(cuStreamSynchronize(apart));
    CHECK(list[0] == 1 && list[1] == 5);
    rig_gate_open(gate);
    CU(cuCtxSynchronize());
    CHECK(list[0] == 5 && list[2] == 1 && list[3] == 2);
    CHECK(list[4] + list[5] == 7);
}

static void *sync_thread(void *user)
{
    CU(cuCtxSetCurrent(((void **)user)[0]));
    CU(cuStreamSynchronize(((void **)user)[1]));
    return NULL;
}

// The call that would make it one more than a stream takes waits for room.
static void test_full_stream(void)
{
    CUcontext context = rig_context();
    CUstream stream;
    CUdeviceptr device;
    uint32_t *list = host_list(&device);
    pthread_t thread;
    void *arguments[] = {context, NULL};
    CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    arguments[1] = stream;
    gate_t gate = rig_gate();
    rig_gate_close(gate, stream);
    for (uint64_t i = 1; i < 4; i++) rig_launch("append", 1, stream, (uint64_t[3]){device, i});
    CHECK(pthread_create(&thread, NULL, sync_thread, arguments) == 0);
    CHECK(__atomic_load_n(&list[0], __ATOMIC_RELAXED) == 0);
    rig_gate_open(gate);
    for (uint64_t i = 4; i < 100; i++) rig_launch("append", 1, stream, (uint64_t[3]){device, i});
    CHECK(__atomic_load_n(&list[0], __ATOMIC_RELAXED) > 90);
    CHECK(pthread_join(thread, NULL) == 0);
    CU(cuStreamSynchronize(stream));
    CHECK(list[0] == 99);
}

static void *launch_thread(void *user)
{
    CU(cuCtxSetCurrent(user));
    CUstream stream;
    CUdeviceptr device;
    uint32_t *list = host_list(&device);
    CU(cuStreamCreate(&stream, 0));
    for (uint64_t i = 0; i < 300; i++) {
        CUevent event;
        CU(cuEventCreate(&event, 0));
        rig_launch("append", 1, stream, (uint64_t[3]){device, i});
        CU(cuEventRecord(event, stream));
        if (i % 7 == 0) CU(cuEventSynchronize(event));
        CU(cuEventDestroy_v2(event));
    }
    CU(cuStreamSynchronize(stream));
    CHECK(list[0] == 300 && list[300] == 299);
    CU(cuStreamDestroy_v2(stream));
    return NULL;
}

static void test_many_threads(void)
{
    CUcontext context = rig_context();
    pthread_t threads[6];
    rig_module();
    for (int i = 0; i < 6; i++) {
        CHECK(pthread_create(&threads[i], NULL, launch_thread, context) == 0);
    }
    for (int i = 0; i < 6; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

// Kernels of different streams run at the same time: the second opens the gate of the first.
static void test_overlap(void)
{
    rig_context();
    CUstream a, b;
    gate_t gate = rig_gate();
    CU(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    CU(cuStreamCreateWithPriority(&b, CU_STREAM_NON_BLOCKING, -1));
    int priority = 9;
    CU(cuStreamGetPriority(b, &priority));
    CHECK(priority == -1);
    rig_gate_close(gate, a);
    rig_launch("poke", 1, b, (uint64_t[3]){gate.word, 1});
    CU(cuStreamSynchronize(a));
}

// A stream may be destroyed before its work is done, which goes on.
static void test_destroyed_stream_goes_on(void)
{
    rig_context();
    CUstream stream;
    CUdeviceptr device;
    uint32_t *list = host_list(&device);
    CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    gate_t gate = rig_gate();
    rig_gate_close(gate, stream);
    rig_launch("append", 1, stream, (uint64_t[3]){device, 1});
    CU(cuStreamDestroy_v2(stream));
    rig_gate_open(gate);
    CU(cuCtxSynchronize());
    CHECK(list[0] == 1);
}

typedef struct waiter_t {
    CUresult (*call)(void *what);
    void *what;
    CUcontext context;
    pthread_t thread;
    int number;
    bool there, back;
} waiter_t;

static CUresult free_device(void *what)
{
    return cuMemFree_v2((CUdeviceptr)(uintptr_t)what);
}

static CUresult unload(void *what)
{
    return cuModuleUnload(what);
}

static CUresult load(void *what)
{
    return cuModuleLoad(what, rig_kernels);
}

static void *waiter_main(void *user)
{
    waiter_t *waiter = user;
    CU(cuCtxSetCurrent(waiter->context));
    CU(waiter->call(waiter->what));
    __atomic_store_n(&waiter->back, true, __ATOMIC_RELEASE);
    return NULL;
}

static void *late_launch(void *user)
{
    waiter_t *late = user;
    CUstream stream;
    CU(cuCtxSetCurrent(late->context));
    CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)); // which waits for nothing
    late->number = thread_number();
    __atomic_store_n(&late->there, true, __ATOMIC_RELEASE);
    rig_launch("empty", 1, stream, (uint64_t[3]){0});
    __atomic_store_n(&late->back, true, __ATOMIC_RELEASE);
    CU(cuStreamSynchronize(stream));
    return NULL;
}

// Launches something that is held up, when it may be a while until one of those is there who hold
// launches up.
static void late_begin(waiter_t *late)
{
    for (int attempt = 0; attempt < 100; attempt++) {
        late->there = late->back = false;
        CHECK(pthread_create(&late->thread, NULL, late_launch, late) == 0);
        while (!__atomic_load_n(&late->there, __ATOMIC_ACQUIRE)) usleep(1000);
        asleep(late->number);
        if (!__atomic_load_n(&late->back, __ATOMIC_ACQUIRE)) return;
        CHECK(pthread_join(late->thread, NULL) == 0);
    }
    CHECK(!late->back);
}

// What gives memory or code back waits for all that the device has, though nothing uses it, and
// meanwhile no thread can launch anything.
static void test_releases_wait(void)
{
    static char page[8192];
    CUcontext context = rig_context();
    CUmodule module, loaded;
    CUdeviceptr memory, managed;
    void *pinned, *registered = (void *)(((uintptr_t)page + 4095) & ~(uintptr_t)4095);
    CUgraph graph;
    CUgraphExec exec;
    CUstream stream;
    gate_t gate = rig_gate();
    waiter_t late = {.context = context};
    rig_module(); // loads what is launched late
    CU(cuModuleLoad(&module, rig_kernels));
    CU(cuMemAlloc_v2(&memory, 64));
    CU(cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL));
    CU(cuMemHostAlloc(&pinned, 64, 0));
    CU(cuMemHostRegister_v2(registered, 4096, 0));
    CU(cuGraphCreate(&graph, 0));
    CU(cuGraphInstantiateWithFlags(&exec, graph, 0));
    CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    waiter_t waiters[] = {
        {.call = free_device, .what = (void *)(uintptr_t)memory},
        {.call = free_device, .what = (void *)(uintptr_t)managed},
        {.call = cuMemFreeHost, .what = pinned},
        {.call = cuMemHostUnregister, .what = registered},
        {.call = unload, .what = module},
        {.call = load, .what = &loaded},
    };
    enum { COUNT = sizeof waiters / sizeof *waiters };
    rig_gate_close(gate, stream);
    CU(cuGraphExecDestroy(exec)); // which does not wait
    for (int i = 0; i < COUNT; i++) {
        waiters[i].context = context;
        CHECK(pthread_create(&waiters[i].thread, NULL, waiter_main, &waiters[i]) == 0);
    }
    late_begin(&late);
    for (int i = 0; i < COUNT; i++) CHECK(!__atomic_load_n(&waiters[i].back, __ATOMIC_ACQUIRE));
    rig_gate_open(gate);
    for (int i = 0; i < COUNT; i++) CHECK(pthread_join(waiters[i].thread, NULL) == 0);
    CHECK(pthread_join(late.thread, NULL) == 0);
    CU(cuGraphDestroy(graph));
}

int main(int argc, char **argv)
{
    if (argc != 2) return 2;
    rig_kernels = argv[1];
    RUN("", test_order_within_a_stream);
    RUN("seed=3", test_order_within_a_stream);
    RUN("seed=5", test_blocks_in_any_order);
    RUN("", test_events_order_streams);
    RUN("seed=9", test_events_order_streams);
    RUN("", test_events_end_with_their_context);
    RUN("", test_times);
    RUN("", test_host_functions);
    RUN("", test_memory_operations);
    RUN("", test_default_stream);
    RUN("seed=2", test_default_stream);
    RUN("depth=4", test_full_stream);
    RUN("", test_many_threads);
    RUN("seed=1", test_many_threads);
    RUN("", test_overlap);
    RUN("", test_destroyed_stream_goes_on);
    RUN("", test_releases_wait);
    return rig_result();
}
