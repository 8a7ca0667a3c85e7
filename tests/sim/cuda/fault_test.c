// SPDX-License-Identifier: Apache-2.0
// fault_test KERNELS: errors that stick, failures on demand, memory that is touched but may not be.
#include "rig.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void never(void *user)
{
    *(int *)user = 1;
}

// As seen on a card: enqueues after a fault succeed, nothing of them happens, and a call that waits
// reports it; from then on all calls do.
static void test_errors_stick(void)
{
    rig_context();
    CUstream stream;
    CUevent event;
    CUdeviceptr x;
    int called = 0;
    void *word;
    CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CU(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    CU(cuMemAlloc_v2(&x, 64));
    CU(cuMemHostAlloc(&word, 8, 0));
    *(uint64_t *)word = 0;
    rig_launch("poke", 1, stream, (uint64_t[3]){x + (1 << 20), 1});
    while (!rig_said("touched")) usleep(100);
    usleep(1000);
    rig_launch("empty", 1, stream, (uint64_t[3]){0});
    CU(cuStreamWriteValue64_v2(stream, (uintptr_t)word, 1, 0));
    CU(cuLaunchHostFunc(stream, never, &called));
    CU(cuEventRecord(event, stream));
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, cuEventSynchronize(event));
    CHECK(!called && *(uint64_t *)word == 0);
    CHECK(rig_said("cuLaunchKernel: kernel poke, block (0, 0, 0): touched"));
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, cuEventQuery(event));
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(stream));
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc_v2(&x, 64));
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, cuEventRecord(event, stream));
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, cuEventDestroy_v2(event));
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamDestroy_v2(stream));
    CU(cuDevicePrimaryCtxRelease_v2(0));
    rig_context(); // a new life
    CU(cuMemAlloc_v2(&x, 64));
}

static void test_traps(void)
{
    rig_context();
    rig_launch("trap", 1, NULL, (uint64_t[3]){0});
    FAILS(CUDA_ERROR_LAUNCH_FAILED, cuCtxSynchronize());
    CHECK(rig_said("kernel trap, block (0, 0, 0): trapped with 7"));
}

static void test_shared_overrun(void)
{
    rig_context();
    rig_launch("overrun", 1, NULL, (uint64_t[3]){0});
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    CHECK(rig_said("wrote past its 0 bytes of shared memory"));
}

static void test_kernel_out_of_bounds(void)
{
    rig_context();
    CUdeviceptr x;
    CU(cuMemAlloc_v2(&x, 4096));
    rig_launch("poke", 1, NULL, (uint64_t[3]){x + 4096, 1});
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    CHECK(rig_said("offset 4096 of allocation"));
}

// Short of the guard, it is noticed when the memory is freed.
static void test_kernel_overwrites_slack(void)
{
    rig_context();
    CUdeviceptr x;
    CU(cuMemAlloc_v2(&x, 100));
    rig_launch("poke", 1, NULL, (uint64_t[3]){x + 100, 1});
    CU(cuCtxSynchronize());
    CU(cuMemFree_v2(x));
    CHECK(rig_said("the byte at offset 100, outside of it, was overwritten"));
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
}

static void test_kernel_after_free(void)
{
    rig_context();
    CUdeviceptr x;
    CU(cuMemAlloc_v2(&x, 4096));
    CU(cuMemFree_v2(x));
    rig_launch("poke", 1, NULL, (uint64_t[3]){x, 1});
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    CHECK(rig_said("which has been freed (cuMemFree_v2)"));
}

static void test_kernel_after_stream_ordered_free(void)
{
    rig_context();
    CUdeviceptr x;
    CU(cuMemAllocAsync(&x, 4096, NULL));
    rig_launch("poke", 1, NULL, (uint64_t[3]){x, 1});
    CU(cuMemFreeAsync(x, NULL));
    CU(cuStreamSynchronize(NULL));
    rig_launch("poke", 1, NULL, (uint64_t[3]){x, 1});
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(NULL));
}

static void test_copies_out_of_bounds(void)
{
    rig_context();
    CUdeviceptr x;
    char bytes[128];
    CU(cuMemAlloc_v2(&x, 100));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(x + 1, bytes, 100));
    CHECK(rig_said("cuMemcpyHtoD_v2: 100 bytes at"));
    CHECK(rig_said("offset 1 of allocation"));
    CHECK(rig_said("(cuMemAlloc_v2, 100 bytes)"));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(bytes, x - 1, 2));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(bytes, (uintptr_t)bytes, 2));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(x, (void *)(uintptr_t)x, 2));
    CHECK(rig_said("was given as host memory, but is device memory"));
    CU(cuMemFree_v2(x));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(x, bytes, 1));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(x));
}

static void test_copies_overlap(void)
{
    rig_context();
    CUdeviceptr x;
    CU(cuMemAlloc_v2(&x, 100));
    CU(cuMemcpyAsync(x, x + 50, 50, NULL));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyAsync(x, x + 49, 50, NULL));
    CHECK(rig_said("cuMemcpyAsync: the 50 bytes at"));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoD_v2(x + 49, x, 50));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyAsync(x, x, 1, NULL));
    CU(cuMemcpyAsync(x, x, 0, NULL));
}

// What was good when it was enqueued may be gone when it runs.
static void test_copy_after_free(void)
{
    rig_context();
    CUdeviceptr x;
    CUstream stream, other;
    CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CU(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    CU(cuMemAllocAsync(&x, 100, other));
    CU(cuStreamSynchronize(other));
    gate_t gate = rig_gate();
    rig_gate_close(gate, stream);
    CU(cuMemsetD8Async(x, 1, 100, stream));
    CU(cuMemFreeAsync(x, other));
    CU(cuStreamSynchronize(other));
    rig_gate_open(gate);
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(stream));
    CHECK(rig_said("which has been freed"));
}

static void host_touches(void)
{
    rig_context();
    CUdeviceptr x;
    CU(cuMemAlloc_v2(&x, 100));
    rig_launch("poke", 1, NULL, (uint64_t[3]){x, 1});
    CU(cuCtxSynchronize());
    *(volatile uint32_t *)(uintptr_t)x = 2;
}

static void test_fail_nth(void)
{
    rig_context();
    CUdeviceptr x;
    CU(cuMemAlloc_v2(&x, 64));
    CU(cuMemAlloc_v2(&x, 64));
    FAILS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&x, 64));
    CU(cuMemAlloc_v2(&x, 64));
    FAILS(CUDA_ERROR_NOT_PERMITTED, cuCtxSynchronize());
    FAILS(CUDA_ERROR_NOT_PERMITTED, cuCtxSynchronize());
    CU(cuMemsetD8_v2(x, 1, 64));
}

// Any call; what releases does so all the same.
static void test_fail_any(void)
{
    CUcontext context;
    CUdeviceptr x;
    size_t left, total;
    CU(cuInit(0));
    CU(cuDevicePrimaryCtxRetain(&context, 0));
    CU(cuCtxSetCurrent(context));
    CU(cuMemAlloc_v2(&x, 64));
    FAILS(304, cuMemFree_v2(x));
    CU(cuMemGetInfo_v2(&left, &total));
    CHECK(left == total);
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(x));
}

static void test_fail_onwards(void)
{
    CU(cuInit(0));
    CUcontext context;
    FAILS(CUDA_ERROR_UNKNOWN, cuDevicePrimaryCtxRetain(&context, 0));
    FAILS(CUDA_ERROR_UNKNOWN, cuDeviceGetCount(&(int){0}));
}

// What the context does not survive ends a copy that is under way, and memory can be given back.
static void test_fail_for_good(void)
{
    static char own[4096];
    CUdeviceptr x;
    CUevent event;
    rig_context();
    CU(cuMemAlloc_v2(&x, sizeof own));
    CU(cuMemsetD8_v2(x, 1, sizeof own));
    CU(cuMemHostRegister_v2(own, sizeof own, 0));
    CU(cuEventCreate(&event, 0));
    CU(cuMemcpyAsync((uintptr_t)own, x, sizeof own, NULL));
    CU(cuEventRecord(event, NULL));
    usleep(10000);
    FAILS(700, cuEventQuery(event));
    FAILS(700, cuMemHostUnregister(own));
    memset(own, 2, sizeof own);
    FAILS(700, cuMemFree_v2(x));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(x)); // it is gone
    FAILS(700, cuMemAlloc_v2(&x, 64));
    usleep(100000);
    CHECK(own[0] == 2 && own[sizeof own - 1] == 2);
    CHECK(!rig_said("still used") && !rig_said("went while"));
    FAILS(700, cuEventDestroy_v2(event));
    CU(cuDevicePrimaryCtxRelease_v2(0));
    rig_context();
    CU(cuMemAlloc_v2(&x, 64));
}

// After any other error the work goes on.
static void test_fail_for_now(void)
{
    CUdeviceptr x, y;
    CUevent event;
    rig_context();
    CU(cuMemAlloc_v2(&x, 64));
    CU(cuMemAlloc_v2(&y, 64));
    CU(cuEventCreate(&event, 0));
    gate_t gate = rig_gate();
    rig_gate_close(gate, NULL);
    CU(cuMemcpyAsync(x, y, 64, NULL));
    CU(cuEventRecord(event, NULL));
    FAILS(CUDA_ERROR_OUT_OF_MEMORY, cuEventQuery(event));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(x));
    CHECK(rig_said("still used"));
    rig_gate_open(gate);
    CU(cuEventSynchronize(event));
    CU(cuMemFree_v2(x));
}

// A call that has no context takes them all.
static void test_fail_for_all(void)
{
    CUcontext contexts[2];
    CUdeviceptr x;
    CU(cuInit(0));
    for (int i = 0; i < 2; i++) CU(cuDevicePrimaryCtxRetain(&contexts[i], i));
    FAILS(CUDA_ERROR_UNKNOWN, cuDeviceGetCount(&(int){0}));
    for (int i = 0; i < 2; i++) {
        CU(cuCtxSetCurrent(contexts[i]));
        FAILS(CUDA_ERROR_UNKNOWN, cuMemAlloc_v2(&x, 64));
    }
}

// One that has one leaves the others alone.
static void test_fail_for_one(void)
{
    CUcontext contexts[2];
    CUdeviceptr x;
    CU(cuInit(0));
    for (int i = 0; i < 2; i++) CU(cuDevicePrimaryCtxRetain(&contexts[i], i));
    CU(cuCtxSetCurrent(contexts[0]));
    FAILS(719, cuMemAlloc_v2(&x, 64));
    FAILS(719, cuMemAlloc_v2(&x, 64));
    CU(cuCtxSetCurrent(contexts[1]));
    CU(cuMemAlloc_v2(&x, 64));
}

static void test_lose(void)
{
    CUstream stream;
    CUevent event;
    CUcontext context;
    void *word;
    CU(cuInit(0));
    CU(cuDevicePrimaryCtxRetain(&context, 0));
    CU(cuCtxSetCurrent(context));
    CU(cuStreamCreate(&stream, 0));
    CU(cuEventCreate(&event, 0));
    CU(cuMemHostAlloc(&word, 8, 0));
    *(uint64_t *)word = 0;
    CU(cuStreamWaitValue64_v2(stream, (uintptr_t)word, 1, 0)); // that nothing ends
    CU(cuEventRecord(event, stream));
    FAILS(46, cuEventSynchronize(event));
    FAILS(46, cuStreamSynchronize(stream));
    FAILS(46, cuMemHostAlloc(&word, 8, 0));
    FAILS(46, cuStreamDestroy_v2(stream));
    FAILS(46, cuDevicePrimaryCtxRetain(&context, 0));
    CU(cuDevicePrimaryCtxRelease_v2(0));
}

static void test_counters(void)
{
    // The settings were read from the environment, and name descriptor 100.
    int fd = memfd_create("counters", 0);
    struct {
        uint64_t calls, hit;
        struct {
            char symbol[56];
            uint64_t calls;
        } tallies[3];
    } now = {0};
    CHECK(fd >= 0 && write(fd, &now, sizeof now) == sizeof now && dup2(fd, 100) == 100);
    rig_context();
    CHECK(pread(100, &now, sizeof now, 0) == sizeof now);
    CHECK(now.calls == 3 && now.hit == 0);
    CHECK(!strcmp(now.tallies[0].symbol, "cuInit") && now.tallies[0].calls == 1);
    CHECK(!strcmp(now.tallies[1].symbol, "cuDevicePrimaryCtxRetain"));
    FAILS(CUDA_ERROR_UNKNOWN, cuCtxSynchronize()); // for which there is no more room
    CU(cuInit(0));
    CHECK(pread(100, &now, sizeof now, 0) == sizeof now);
    CHECK(now.calls == 5 && now.hit == 1);
    CHECK(!strcmp(now.tallies[0].symbol, "cuInit") && now.tallies[0].calls == 2);
}

static void test_lose_at_a_symbol(void)
{
    void *word;
    rig_context();
    CU(cuCtxSynchronize());
    FAILS(46, cuCtxSynchronize());
    FAILS(46, cuMemHostAlloc(&word, 8, 0));
    CU(cuDevicePrimaryCtxRelease_v2(0));
}

static void test_calls_are_logged(void)
{
    rig_context();
    CHECK(rig_said("call cuDevicePrimaryCtxRetain"));
}

int main(int argc, char **argv)
{
    if (argc != 2) return 2;
    rig_kernels = argv[1];
    RUN("", test_errors_stick);
    RUN("", test_traps);
    RUN("", test_shared_overrun);
    RUN("", test_kernel_out_of_bounds);
    RUN("", test_kernel_overwrites_slack);
    RUN("", test_kernel_after_free);
    RUN("", test_kernel_after_stream_ordered_free);
    RUN("", test_copies_out_of_bounds);
    RUN("", test_copies_overlap);
    RUN("", test_copy_after_free);
    rig_run_dying("host_touches", "", host_touches, SIGSEGV);
    RUN("fail=cuMemAlloc:3:2,fail=cuCtxSynchronize:1+:800", test_fail_nth);
    RUN("fail=5:304", test_fail_any);
    RUN("fail=2+", test_fail_onwards);
    RUN("slow=50000,fail=cuEventQuery:1:700", test_fail_for_good);
    RUN("fail=cuEventQuery:1:2", test_fail_for_now);
    RUN("devices=2,fail=cuDeviceGetCount:1", test_fail_for_all);
    RUN("devices=2,fail=cuMemAlloc:1:719", test_fail_for_one);
    RUN("lose=9:46", test_lose);
    RUN("lose=cuCtxSynchronize:2:46", test_lose_at_a_symbol);
    RUN("counters=100,fail=4", test_counters);
    RUN("calls=1", test_calls_are_logged);
    return rig_result();
}
