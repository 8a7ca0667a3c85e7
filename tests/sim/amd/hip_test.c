// SPDX-License-Identifier: Apache-2.0
// hip_test DIRECTORY: HIP on the software GPU: modules, copies, streams, events, callbacks, graphs,
// pools, managed and registered memory, several threads.
#include <hip/hip_runtime_api.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 5000, BYTES = COUNT * 4, GROUPS = (COUNT + 63) / 64 };

static void check_hip(hipError_t error, const char *what, int line)
{
    if (error == hipSuccess) return;
    fprintf(stderr, "line %d: %s: %s\n", line, what, hipGetErrorString(error));
    exit(1);
}

static void check_true(bool good, const char *what, int line)
{
    if (good) return;
    fprintf(stderr, "line %d: not true: %s\n", line, what);
    exit(1);
}

#define HIP(call)        check_hip((call), #call, __LINE__)
#define CHECK(condition) check_true((condition), #condition, __LINE__)

static hipFunction_t add_one, append;

static void launch_add_one(uint32_t *data, hipStream_t stream)
{
    uint32_t count = COUNT;
    void *arguments[] = {&data, &count};
    HIP(hipModuleLaunchKernel(add_one, GROUPS, 1, 1, 64, 1, 1, 0, stream, arguments, NULL));
}

static uint32_t *numbers(uint32_t first)
{
    uint32_t *data = malloc(BYTES);
    CHECK(data != NULL);
    for (uint32_t n = 0; n < COUNT; n++) data[n] = first + n;
    return data;
}

static void check_numbers(const uint32_t *data, uint32_t first)
{
    for (uint32_t n = 0; n < COUNT; n++) CHECK(data[n] == first + n);
}

static void test_copies(void)
{
    uint32_t *host = numbers(5), *a, *b;
    HIP(hipMalloc((void **)&a, BYTES));
    HIP(hipMalloc((void **)&b, BYTES));
    HIP(hipMemcpy(a, host, BYTES, hipMemcpyHostToDevice));
    launch_add_one(a, NULL);
    HIP(hipMemcpy(b, a, BYTES, hipMemcpyDeviceToDevice));
    memset(host, 0, BYTES);
    HIP(hipMemcpy(host, b, BYTES, hipMemcpyDeviceToHost));
    check_numbers(host, 6);
    HIP(hipMemset(b, 0x5a, BYTES));
    HIP(hipMemcpy(host, b, BYTES, hipMemcpyDeviceToHost));
    for (unsigned n = 0; n < COUNT; n++) CHECK(host[n] == 0x5a5a5a5a);
    HIP(hipMemsetD32((hipDeviceptr_t)a, 77, COUNT));
    HIP(hipMemcpy(host, a, BYTES, hipMemcpyDeviceToHost));
    for (unsigned n = 0; n < COUNT; n++) CHECK(host[n] == 77);
    HIP(hipFree(a));
    HIP(hipFree(b));
    free(host);
}

// A rectangle of 20 rows of 40 bytes inside of wider rows.
static void test_rectangle(void)
{
    enum { PITCH = 64, WIDTH = 40, ROWS = 20, DEVICE_PITCH = 96 };
    uint8_t host[PITCH * ROWS], back[PITCH * ROWS], *device;
    for (unsigned k = 0; k < sizeof host; k++) host[k] = (uint8_t)(k * 7);
    memset(back, 0, sizeof back);
    HIP(hipMalloc((void **)&device, DEVICE_PITCH * ROWS));
    HIP(hipMemcpy2D(device, DEVICE_PITCH, host, PITCH, WIDTH, ROWS, hipMemcpyHostToDevice));
    HIP(hipMemcpy2D(back, PITCH, device, DEVICE_PITCH, WIDTH, ROWS, hipMemcpyDeviceToHost));
    for (unsigned y = 0; y < ROWS; y++) {
        CHECK(!memcmp(host + PITCH * y, back + PITCH * y, WIDTH));
        CHECK(back[PITCH * y + WIDTH] == 0);
    }
    // Between two places of the device, and a rectangle of one value.
    uint8_t *other;
    HIP(hipMalloc((void **)&other, PITCH * ROWS));
    HIP(hipMemset(other, 0, PITCH * ROWS));
    HIP(hipMemcpy2D(other, PITCH, device, DEVICE_PITCH, WIDTH, ROWS, hipMemcpyDeviceToDevice));
    HIP(hipMemset2D(other, PITCH, 0x77, 8, ROWS / 2));
    HIP(hipMemcpy(back, other, PITCH * ROWS, hipMemcpyDeviceToHost));
    for (unsigned y = 0; y < ROWS; y++) {
        unsigned filled = y < ROWS / 2 ? 8 : 0;
        for (unsigned x = 0; x < filled; x++) CHECK(back[PITCH * y + x] == 0x77);
        CHECK(!memcmp(host + PITCH * y + filled, back + PITCH * y + filled, WIDTH - filled));
        CHECK(back[PITCH * y + WIDTH] == 0);
    }
    HIP(hipFree(other));
    HIP(hipFree(device));
}

static void called_back(hipStream_t stream, hipError_t status, void *user)
{
    __atomic_store_n((int *)user, status == hipSuccess ? 1 : -1, __ATOMIC_RELEASE);
}

static void test_streams(void)
{
    hipStream_t first, second;
    hipEvent_t start, end;
    uint32_t *log, host[8];
    float milliseconds = -1;
    int called = 0;
    HIP(hipStreamCreate(&first));
    HIP(hipStreamCreate(&second));
    HIP(hipEventCreate(&start));
    HIP(hipEventCreate(&end));
    HIP(hipMalloc((void **)&log, 4096));
    HIP(hipMemset(log, 0, 4096));
    HIP(hipDeviceSynchronize());
    HIP(hipEventRecord(start, first));
    for (uint32_t value = 10; value < 12; value++) {
        void *arguments[] = {&log, &value};
        HIP(hipModuleLaunchKernel(append, 1, 1, 1, 64, 1, 1, 0, first, arguments, NULL));
    }
    HIP(hipEventRecord(end, first));
    HIP(hipStreamWaitEvent(second, end, 0));
    uint32_t last = 12;
    void *arguments[] = {&log, &last};
    HIP(hipModuleLaunchKernel(append, 1, 1, 1, 64, 1, 1, 0, second, arguments, NULL));
    HIP(hipMemcpyAsync(host, log, sizeof host, hipMemcpyDeviceToHost, second));
    HIP(hipStreamAddCallback(second, called_back, &called, 0));
    HIP(hipStreamSynchronize(second));
    CHECK(host[0] == 3 && host[1] == 10 && host[2] == 11 && host[3] == 12);
    HIP(hipStreamSynchronize(first));
    HIP(hipEventElapsedTime(&milliseconds, start, end));
    CHECK(milliseconds >= 0 && milliseconds < 10000);
    while (!__atomic_load_n(&called, __ATOMIC_ACQUIRE)) sched_yield();
    CHECK(called == 1);
    HIP(hipFree(log));
    HIP(hipEventDestroy(start));
    HIP(hipEventDestroy(end));
    HIP(hipStreamDestroy(first));
    HIP(hipStreamDestroy(second));
}

static void test_graph(void)
{
    hipGraph_t graph;
    hipGraphExec_t executable;
    hipGraphNode_t node[3];
    hipStream_t stream;
    uint32_t *device, *host = numbers(100), count = COUNT;
    HIP(hipStreamCreate(&stream));
    HIP(hipMalloc((void **)&device, BYTES));
    void *arguments[] = {&device, &count};
    hipKernelNodeParams kernel = {.blockDim = {64, 1, 1},
                                  .gridDim = {GROUPS, 1, 1},
                                  .func = (void *)add_one,
                                  .kernelParams = arguments};
    HIP(hipGraphCreate(&graph, 0));
    HIP(hipGraphAddMemcpyNode1D(&node[0], graph, NULL, 0, device, host, BYTES,
                                hipMemcpyHostToDevice));
    HIP(hipGraphAddKernelNode(&node[1], graph, &node[0], 1, &kernel));
    HIP(hipGraphAddMemcpyNode1D(&node[2], graph, &node[1], 1, host, device, BYTES,
                                hipMemcpyDeviceToHost));
    HIP(hipGraphInstantiate(&executable, graph, NULL, NULL, 0));
    for (unsigned k = 0; k < 3; k++) HIP(hipGraphLaunch(executable, stream));
    HIP(hipStreamSynchronize(stream));
    check_numbers(host, 103);
    HIP(hipGraphExecDestroy(executable));
    HIP(hipGraphDestroy(graph));
    HIP(hipFree(device));
    HIP(hipStreamDestroy(stream));
    free(host);
}

static void host_node(void *user)
{
    ++*(int *)user;
}

// Fills, kernels, copies and host functions that depend on each other, launched twice.
static void test_wide_graph(void)
{
    hipGraph_t graph;
    hipGraphExec_t executable;
    hipGraphNode_t fill[2], kernel[2], copy[2], host;
    hipStream_t stream;
    uint32_t *device[2], *back[2] = {numbers(0), numbers(0)}, count = COUNT;
    int called = 0;
    HIP(hipStreamCreate(&stream));
    HIP(hipGraphCreate(&graph, 0));
    for (unsigned k = 0; k < 2; k++) {
        HIP(hipMalloc((void **)&device[k], BYTES));
        hipMemsetParams fills = {.dst = device[k],
                                 .elementSize = 4,
                                 .value = 40 + k,
                                 .width = COUNT,
                                 .height = 1,
                                 .pitch = BYTES};
        void *arguments[] = {&device[k], &count};
        hipKernelNodeParams kernels = {.blockDim = {64, 1, 1},
                                       .gridDim = {GROUPS, 1, 1},
                                       .func = (void *)add_one,
                                       .kernelParams = arguments};
        HIP(hipGraphAddMemsetNode(&fill[k], graph, NULL, 0, &fills));
        HIP(hipGraphAddKernelNode(&kernel[k], graph, &fill[k], 1, &kernels));
        HIP(hipGraphAddMemcpyNode1D(&copy[k], graph, &kernel[k], 1, back[k], device[k], BYTES,
                                    hipMemcpyDeviceToHost));
    }
    hipHostNodeParams hosts = {.fn = host_node, .userData = &called};
    HIP(hipGraphAddHostNode(&host, graph, copy, 2, &hosts));
    HIP(hipGraphInstantiate(&executable, graph, NULL, NULL, 0));
    for (unsigned k = 0; k < 2; k++) {
        HIP(hipGraphLaunch(executable, stream));
        HIP(hipStreamSynchronize(stream));
        for (unsigned n = 0; n < COUNT; n++) CHECK(back[0][n] == 41 && back[1][n] == 42);
        CHECK(called == (int)k + 1);
    }
    HIP(hipGraphExecDestroy(executable));
    HIP(hipGraphDestroy(graph));
    for (unsigned k = 0; k < 2; k++) HIP(hipFree(device[k]));
    for (unsigned k = 0; k < 2; k++) free(back[k]);
    HIP(hipStreamDestroy(stream));
}

// What a stream does, recorded and then launched; HIP 5.2 does not record launches of modules.
static void test_capture(void)
{
    hipGraph_t graph;
    hipGraphExec_t executable;
    hipStream_t stream;
    uint32_t *device, *host = numbers(9);
    HIP(hipStreamCreate(&stream));
    HIP(hipMalloc((void **)&device, BYTES));
    HIP(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    HIP(hipMemcpyAsync(device, host, BYTES, hipMemcpyHostToDevice, stream));
    HIP(hipMemsetAsync(device, 0x11, BYTES / 2, stream));
    HIP(hipMemcpyAsync(host, device, BYTES, hipMemcpyDeviceToHost, stream));
    HIP(hipStreamEndCapture(stream, &graph));
    check_numbers(host, 9);
    HIP(hipGraphInstantiate(&executable, graph, NULL, NULL, 0));
    HIP(hipGraphLaunch(executable, stream));
    HIP(hipStreamSynchronize(stream));
    for (uint32_t n = 0; n < COUNT; n++) CHECK(host[n] == (n < COUNT / 2 ? 0x11111111 : 9 + n));
    HIP(hipGraphExecDestroy(executable));
    HIP(hipGraphDestroy(graph));
    HIP(hipFree(device));
    HIP(hipStreamDestroy(stream));
    free(host);
}

// A stream waits for a value that the host, or another stream, writes.
static void test_values(void)
{
    hipStream_t waits, writes;
    uint64_t *value;
    uint32_t *device, *other, *host = numbers(20);
    HIP(hipStreamCreate(&waits));
    HIP(hipStreamCreate(&writes));
    HIP(hipExtMallocWithFlags((void **)&value, 8, hipMallocSignalMemory));
    HIP(hipMalloc((void **)&device, BYTES));
    HIP(hipMalloc((void **)&other, BYTES));
    HIP(hipMemcpy(device, host, BYTES, hipMemcpyHostToDevice));
    __atomic_store_n(value, 0, __ATOMIC_RELEASE);
    HIP(hipStreamWaitValue64(waits, value, 5, hipStreamWaitValueGte, ~0ull));
    launch_add_one(device, waits);
    // Kernels of another stream run and end meanwhile.
    for (unsigned k = 0; k < 8; k++) {
        launch_add_one(other, writes);
        HIP(hipStreamSynchronize(writes));
    }
    CHECK(hipStreamQuery(waits) == hipErrorNotReady);
    HIP(hipStreamWriteValue64(writes, value, 5, 0));
    HIP(hipStreamSynchronize(waits));
    HIP(hipMemcpy(host, device, BYTES, hipMemcpyDeviceToHost));
    check_numbers(host, 21);
    HIP(hipFree(value));
    HIP(hipFree(device));
    HIP(hipFree(other));
    HIP(hipStreamDestroy(waits));
    HIP(hipStreamDestroy(writes));
    free(host);
}

// A pool of the program's own, and blocks that come back out of it.
static void test_pool(void)
{
    const hipMemPoolProps properties = {.allocType = hipMemAllocationTypePinned,
                                        .location = {hipMemLocationTypeDevice, 0}};
    hipMemPool_t pool;
    hipStream_t stream;
    uint32_t *block, *host = numbers(50);
    HIP(hipStreamCreate(&stream));
    HIP(hipMemPoolCreate(&pool, &properties));
    for (uint32_t k = 0; k < 4; k++) {
        HIP(hipMallocFromPoolAsync((void **)&block, BYTES, pool, stream));
        HIP(hipMemcpyAsync(block, host, BYTES, hipMemcpyHostToDevice, stream));
        launch_add_one(block, stream);
        HIP(hipMemcpyAsync(host, block, BYTES, hipMemcpyDeviceToHost, stream));
        HIP(hipFreeAsync(block, stream));
    }
    HIP(hipStreamSynchronize(stream));
    check_numbers(host, 54);
    HIP(hipMemPoolTrimTo(pool, 0));
    HIP(hipMemPoolDestroy(pool));
    HIP(hipStreamDestroy(stream));
    free(host);
}

static void test_other_memory(void)
{
    uint32_t *managed, *registered = numbers(7), *alias, *pooled, *host = numbers(1);
    hipMemPool_t pool;
    hipStream_t stream;
    HIP(hipMallocManaged((void **)&managed, BYTES, hipMemAttachGlobal));
    for (uint32_t n = 0; n < COUNT; n++) managed[n] = n;
    launch_add_one(managed, NULL);
    HIP(hipDeviceSynchronize());
    check_numbers(managed, 1);
    HIP(hipFree(managed));

    HIP(hipHostRegister(registered, BYTES, hipHostRegisterDefault));
    HIP(hipHostGetDevicePointer((void **)&alias, registered, 0));
    launch_add_one(alias, NULL);
    HIP(hipDeviceSynchronize());
    check_numbers(registered, 8);
    HIP(hipHostUnregister(registered));
    free(registered);

    HIP(hipStreamCreate(&stream)); // HIP 5.2 has no pool for the stream NULL
    HIP(hipMallocAsync((void **)&pooled, BYTES, stream));
    HIP(hipMemcpyAsync(pooled, host, BYTES, hipMemcpyHostToDevice, stream));
    launch_add_one(pooled, stream);
    HIP(hipMemcpyAsync(host, pooled, BYTES, hipMemcpyDeviceToHost, stream));
    HIP(hipFreeAsync(pooled, stream));
    HIP(hipStreamSynchronize(stream));
    check_numbers(host, 2);
    free(host);
    // HIP 5.2 does not end when blocks are left in the pool.
    HIP(hipDeviceGetDefaultMemPool(&pool, 0));
    HIP(hipMemPoolTrimTo(pool, 0));
    HIP(hipStreamDestroy(stream));
}

static void *thread_main(void *argument)
{
    hipStream_t stream;
    uint32_t *device, *host = numbers(0);
    HIP(hipSetDevice(0));
    HIP(hipStreamCreate(&stream));
    HIP(hipMalloc((void **)&device, BYTES));
    HIP(hipMemcpyAsync(device, host, BYTES, hipMemcpyHostToDevice, stream));
    for (unsigned k = 0; k < 10; k++) launch_add_one(device, stream);
    HIP(hipMemcpyAsync(host, device, BYTES, hipMemcpyDeviceToHost, stream));
    HIP(hipStreamSynchronize(stream));
    check_numbers(host, 10);
    HIP(hipFree(device));
    HIP(hipStreamDestroy(stream));
    free(host);
    return NULL;
}

static void test_threads(void)
{
    enum { THREADS = 12 };
    pthread_t threads[THREADS];
    for (unsigned k = 0; k < THREADS; k++) {
        CHECK(!pthread_create(&threads[k], NULL, thread_main, NULL));
    }
    for (unsigned k = 0; k < THREADS; k++) CHECK(!pthread_join(threads[k], NULL));
}

static void test_peers(int count)
{
    if (count < 2) return;
    uint32_t *host = numbers(3), *a, *b;
    int can = 0;
    HIP(hipDeviceCanAccessPeer(&can, 0, 1));
    HIP(hipMalloc((void **)&a, BYTES));
    HIP(hipSetDevice(1));
    HIP(hipMalloc((void **)&b, BYTES));
    HIP(hipSetDevice(0));
    HIP(hipMemcpy(a, host, BYTES, hipMemcpyHostToDevice));
    HIP(hipMemcpyPeer(b, 1, a, 0, BYTES));
    memset(host, 0, BYTES);
    HIP(hipMemcpy(host, b, BYTES, hipMemcpyDeviceToHost));
    check_numbers(host, 3);
    HIP(hipFree(a));
    HIP(hipFree(b));
    free(host);
}

int main(int argc, char **argv)
{
    hipDeviceProp_t properties;
    hipModule_t module;
    char path[1024];
    int count;
    if (argc != 2) return 2;
    alarm(120);
    HIP(hipInit(0));
    HIP(hipGetDeviceCount(&count));
    HIP(hipGetDeviceProperties(&properties, 0));
    printf("%d GPUs, the first is %s\n", count, properties.gcnArchName);
    snprintf(path, sizeof path, "%s/%.*s-O2-queue.hsaco", argv[1],
             (int)strcspn(properties.gcnArchName, ":"), properties.gcnArchName);
    HIP(hipModuleLoad(&module, path));
    HIP(hipModuleGetFunction(&add_one, module, "add_one"));
    HIP(hipModuleGetFunction(&append, module, "append"));
    test_copies();
    test_rectangle();
    test_streams();
    test_graph();
    test_wide_graph();
    test_capture();
    test_values();
    test_pool();
    test_other_memory();
    test_threads();
    test_peers(count);
    HIP(hipModuleUnload(module));
    return 0;
}
