// SPDX-License-Identifier: Apache-2.0
// What runs when: streams, events, callbacks, graphs, threads of the host.
#include "programs.h"

#include <atomic>
#include <thread>

enum { COUNT = 2000, BLOCKS = COUNT / 100 };

static __global__ void append(unsigned *log, unsigned value)
{
    log[1 + atomicAdd(log, 1u)] = value;
}

static __global__ void double_all(unsigned *data, unsigned count)
{
    if (global_index() < count) data[global_index()] *= 2;
}

// Runs until another kernel, or the host, has written the word.
static __global__ void wait_for(unsigned *word, unsigned value, unsigned *seen)
{
    while (__hip_atomic_load(word, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM) != value) {
        __builtin_amdgcn_s_sleep(4);
    }
    *seen = value;
}

static __global__ void set_word(unsigned *word, unsigned value)
{
    __hip_atomic_store(word, value, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
}

PROGRAM(streams)
{
    stream a, b(hipStreamNonBlocking);
    hipEvent_t half;
    device<unsigned> log(std::vector<unsigned>(16, 0));
    HIP(hipEventCreateWithFlags(&half, hipEventDisableTiming));
    for (unsigned n = 1; n <= 3; n++) LAUNCH(append, 1, 1, a, log, n);
    HIP(hipEventRecord(half, a));
    HIP(hipStreamWaitEvent(b, half, 0));
    for (unsigned n = 4; n <= 6; n++) LAUNCH(append, 1, 1, b, log, n);
    HIP(hipStreamSynchronize(b));
    CHECK(hipStreamQuery(a) == hipSuccess && hipEventQuery(half) == hipSuccess);
    HIP(hipEventDestroy(half));
    std::vector<unsigned> got = log.read();
    for (unsigned n = 1; n <= 6; n++) CHECK(got[n] == n);
}

// The null stream waits for the others and they for it.
PROGRAM(null_stream)
{
    stream a, b;
    device<unsigned> log(std::vector<unsigned>(16, 0));
    LAUNCH(append, 1, 1, a, log, 1);
    LAUNCH(append, 1, 1, 0, log, 2);
    LAUNCH(append, 1, 1, b, log, 3);
    LAUNCH(append, 1, 1, 0, log, 4);
    HIP(hipDeviceSynchronize());
    CHECK(log.read()[4] == 4 && log.read()[2] == 2 && log.read()[3] == 3);
}

// One kernel waits for another that was launched later.
PROGRAM(together)
{
    stream a(hipStreamNonBlocking), b(hipStreamNonBlocking);
    device<unsigned> words(std::vector<unsigned>(2, 0));
    LAUNCH(wait_for, 1, 1, a, words, 7, words + 1);
    LAUNCH(set_word, 1, 1, b, words, 7);
    HIP(hipStreamSynchronize(a));
    CHECK(words.read()[1] == 7);
}

PROGRAM(priorities)
{
    int least = 0, greatest = 0;
    HIP(hipDeviceGetStreamPriorityRange(&least, &greatest));
    CHECK(greatest <= least);
    for (int priority = greatest; priority <= least; priority++) {
        device<unsigned> data(std::vector<unsigned>(COUNT, 1));
        hipStream_t order;
        int got = 99;
        HIP(hipStreamCreateWithPriority(&order, hipStreamNonBlocking, priority));
        HIP(hipStreamGetPriority(order, &got));
        CHECK(got == priority);
        LAUNCH(double_all, BLOCKS, 100, order, data, COUNT);
        HIP(hipStreamSynchronize(order));
        HIP(hipStreamDestroy(order));
        CHECK(data.read()[COUNT - 1] == 2);
    }
}

PROGRAM(events)
{
    hipEvent_t start, end;
    float milliseconds = -1;
    device<unsigned> data(std::vector<unsigned>(COUNT, 1));
    HIP(hipEventCreate(&start));
    HIP(hipEventCreate(&end));
    CHECK(hipEventElapsedTime(&milliseconds, start, end) == hipErrorInvalidHandle);
    (void)hipGetLastError();
    HIP(hipEventRecord(start, 0));
    for (int n = 0; n < 5; n++) LAUNCH(double_all, BLOCKS, 100, 0, data, COUNT);
    HIP(hipEventRecord(end, 0));
    HIP(hipEventSynchronize(end));
    HIP(hipEventElapsedTime(&milliseconds, start, end));
    CHECK(milliseconds > 0);
    HIP(hipEventDestroy(start));
    HIP(hipEventDestroy(end));
    CHECK(data.read()[7] == 32);
}

static void called_back(hipStream_t, hipError_t status, void *user)
{
    *(std::atomic<int> *)user += status == hipSuccess ? 1 : 100;
}

static void called(void *user)
{
    *(std::atomic<int> *)user += 10;
}

PROGRAM(callbacks)
{
    std::atomic<int> count{0};
    stream order;
    device<unsigned> data(std::vector<unsigned>(COUNT, 1));
    LAUNCH(double_all, BLOCKS, 100, order, data, COUNT);
    HIP(hipStreamAddCallback(order, called_back, &count, 0));
    int want = 1;
#if HIP_VERSION_MAJOR * 100 + HIP_VERSION_MINOR >= 507
    HIP(hipLaunchHostFunc(order, called, &count));
    want += 10;
#else
    called(&count);
    want += 10;
#endif
    LAUNCH(double_all, BLOCKS, 100, order, data, COUNT);
    HIP(hipStreamSynchronize(order));
    CHECK(count == want && data.read()[0] == 4);
}

PROGRAM(stream_words)
{
    unsigned *word = nullptr;
    stream a, b;
    device<unsigned> log(std::vector<unsigned>(8, 0));
    HIP(hipExtMallocWithFlags((void **)&word, 8, hipMallocSignalMemory));
    HIP(hipMemset(word, 0, 8));
    HIP(hipDeviceSynchronize());
    HIP(hipStreamWaitValue32(a, word, 3, hipStreamWaitValueGte, 0xffffffff));
    LAUNCH(append, 1, 1, a, log, 2);
    LAUNCH(append, 1, 1, b, log, 1);
    HIP(hipStreamWriteValue32(b, word, 5, 0));
    HIP(hipStreamSynchronize(a));
    HIP(hipFree(word));
    CHECK(log.read()[1] == 1 && log.read()[2] == 2);
}

// A copy in, two kernels and a copy out; then the same with another kernel's argument.
PROGRAM(graphs)
{
    std::vector<unsigned> in = count_up(COUNT), out(COUNT, 0);
    device<unsigned> data(COUNT);
    unsigned *pointer = data, count = COUNT, value = 3;
    void *first_arguments[] = {&pointer, &count, &value}, *second_arguments[] = {&pointer, &count};
    hipKernelNodeParams first = {}, second = {};
    first.func = (void *)add;
    second.func = (void *)double_all;
    first.gridDim = second.gridDim = dim3(BLOCKS);
    first.blockDim = second.blockDim = dim3(100);
    first.kernelParams = first_arguments;
    second.kernelParams = second_arguments;
    hipGraph_t graph;
    hipGraphExec_t run;
    hipGraphNode_t copy_in, kernel, doubled, copy_out;
    HIP(hipGraphCreate(&graph, 0));
    HIP(hipGraphAddMemcpyNode1D(&copy_in, graph, nullptr, 0, data, in.data(), data.bytes(),
                                hipMemcpyHostToDevice));
    HIP(hipGraphAddKernelNode(&kernel, graph, &copy_in, 1, &first));
    HIP(hipGraphAddKernelNode(&doubled, graph, &kernel, 1, &second));
    HIP(hipGraphAddMemcpyNode1D(&copy_out, graph, &doubled, 1, out.data(), data, data.bytes(),
                                hipMemcpyDeviceToHost));
    HIP(hipGraphInstantiate(&run, graph, nullptr, nullptr, 0));
    stream order;
    for (unsigned round = 0; round < 3; round++) {
        value = 3 + round;
        HIP(hipGraphExecKernelNodeSetParams(run, kernel, &first));
        HIP(hipGraphLaunch(run, order));
        HIP(hipStreamSynchronize(order));
        for (unsigned n = 0; n < COUNT; n++) CHECK(out[n] == 2 * (n + value));
    }
    size_t nodes = 0;
    HIP(hipGraphGetNodes(graph, nullptr, &nodes));
    CHECK(nodes == 4);
    HIP(hipGraphExecDestroy(run));
    HIP(hipGraphDestroy(graph));
}

// Two streams become branches of a graph.
PROGRAM(captures)
{
    stream a(hipStreamNonBlocking), b(hipStreamNonBlocking);
    device<unsigned> left(std::vector<unsigned>(COUNT, 1)), right(std::vector<unsigned>(COUNT, 5));
    hipEvent_t fork, join;
    hipGraph_t graph;
    hipGraphExec_t run;
    HIP(hipEventCreateWithFlags(&fork, hipEventDisableTiming));
    HIP(hipEventCreateWithFlags(&join, hipEventDisableTiming));
    HIP(hipStreamBeginCapture(a, hipStreamCaptureModeGlobal));
    HIP(hipEventRecord(fork, a));
    HIP(hipStreamWaitEvent(b, fork, 0));
    LAUNCH(double_all, BLOCKS, 100, a, left, COUNT);
    LAUNCH(double_all, BLOCKS, 100, b, right, COUNT);
    HIP(hipEventRecord(join, b));
    HIP(hipStreamWaitEvent(a, join, 0));
    HIP(hipMemcpyAsync(left, right, left.bytes() / 2, hipMemcpyDeviceToDevice, a));
    HIP(hipStreamEndCapture(a, &graph));
    HIP(hipGraphInstantiate(&run, graph, nullptr, nullptr, 0));
    CHECK(left.read()[0] == 1); // nothing ran yet
    for (int n = 0; n < 2; n++) HIP(hipGraphLaunch(run, a));
    HIP(hipStreamSynchronize(a));
    CHECK(left.read()[0] == 20 && left.read()[COUNT - 1] == 4 && right.read()[COUNT - 1] == 20);
    HIP(hipGraphExecDestroy(run));
    HIP(hipGraphDestroy(graph));
    HIP(hipEventDestroy(fork));
    HIP(hipEventDestroy(join));
}

// Many short kernels, more than a queue has room for.
PROGRAM(many_launches)
{
    enum { LAUNCHES = 20000 };
    device<unsigned> data(std::vector<unsigned>(1, 0));
    for (int n = 0; n < LAUNCHES; n++) LAUNCH(add, 1, 1, 0, data, 1, 1);
    CHECK(data.read()[0] == LAUNCHES);
}

static void work_alone(unsigned first, std::atomic<int> *right)
{
    try {
        stream order(hipStreamNonBlocking);
        device<unsigned> data(count_up(COUNT, first));
        for (unsigned n = 0; n < 50; n++) LAUNCH(add, BLOCKS, 100, order, data, COUNT, 1);
        HIP(hipStreamSynchronize(order));
        *right += data.read() == count_up(COUNT, first + 50);
    } catch (const failure &end) {
        printf("%s\n", end.why.c_str());
    }
}

PROGRAM(threads)
{
    std::atomic<int> right{0};
    std::vector<std::thread> threads;
    for (unsigned n = 0; n < 6; n++) threads.emplace_back(work_alone, 1000 * n, &right);
    for (std::thread &one : threads) one.join();
    CHECK(right == 6);
}
