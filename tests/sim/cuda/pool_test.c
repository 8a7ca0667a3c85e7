// SPDX-License-Identifier: Apache-2.0
// pool_test KERNELS: memory in the order of streams.
#include "rig.h"

#include <string.h>

static CUmemoryPool pool_new(size_t limit)
{
    CUmemoryPool pool;
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
                            .maxSize = limit};
    CU(cuMemPoolCreate(&pool, &props));
    return pool;
}

static void set(CUmemoryPool pool, CUmemPool_attribute attribute, int value)
{
    CU(cuMemPoolSetAttribute(pool, attribute, &value));
}

static uint64_t get(CUmemoryPool pool, CUmemPool_attribute attribute)
{
    uint64_t value = 0;
    CU(cuMemPoolGetAttribute(pool, attribute, &value));
    return value;
}

static uint64_t reserved(CUmemoryPool pool)
{
    return get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
}

static CUstream stream_new(void)
{
    CUstream stream;
    CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
}

// Used behind its allocation, before the stream has come to it.
static void test_in_order(void)
{
    rig_context();
    CUstream stream = stream_new(), other = stream_new();
    CUmemoryPool pool = pool_new(0);
    CUdeviceptr x;
    CUevent event;
    void *pinned;
    CU(cuMemHostAlloc(&pinned, 128, 0));
    CU(cuEventCreate(&event, 0));
    gate_t gate = rig_gate();
    rig_gate_close(gate, stream);
    CU(cuMemAllocFromPoolAsync(&x, 128, pool, stream));
    CU(cuMemsetD32Async(x, 5, 32, stream));
    CU(cuEventRecord(event, stream));
    CU(cuStreamWaitEvent(other, event, 0));
    rig_launch("scale", 1, other, (uint64_t[3]){x, 2, 1});
    CU(cuMemcpyDtoHAsync_v2(pinned, x, 128, other));
    CU(cuMemFreeAsync(x, other));
    rig_gate_open(gate);
    CU(cuStreamSynchronize(other));
    CHECK(((uint32_t *)pinned)[31] == 11);
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemsetD32_v2(x, 0, 1));
    CHECK(rig_said("which has been freed"));
    CU(cuMemPoolDestroy(pool));
}

// A stream that is not ordered behind the allocation does not have it.
static void test_too_early(void)
{
    rig_context();
    CUstream stream = stream_new(), other = stream_new();
    CUdeviceptr x;
    gate_t gate = rig_gate();
    rig_gate_close(gate, stream);
    CU(cuMemAllocAsync(&x, 128, stream));
    CU(cuMemsetD32Async(x, 5, 32, other));
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(other));
    CHECK(rig_said("which its stream has not come to yet"));
    rig_gate_open(gate);
}

static void test_double_free(void)
{
    rig_context();
    CUstream stream = stream_new();
    CUdeviceptr x, y;
    CU(cuMemAllocAsync(&x, 128, stream));
    CU(cuMemFreeAsync(x, stream));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(x, stream));
    CU(cuMemAlloc_v2(&y, 128));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(y, stream));
    CU(cuMemAllocAsync(&x, 128, stream));
    CU(cuStreamSynchronize(stream));
    CU(cuMemFree_v2(x));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(x));
    CU(cuMemAllocAsync(&x, 0, stream));
    CHECK(x == 0);
    CU(cuMemFreeAsync(x, stream));
}

// What is freed stays reserved until a call synchronises, and beyond that up to the threshold.
static void test_reserves(void)
{
    rig_context();
    CUstream stream = stream_new();
    CUmemoryPool pool = pool_new(0);
    CUdeviceptr x, y;
    size_t before, after, total;
    CU(cuMemGetInfo_v2(&before, &total));
    CU(cuMemAllocFromPoolAsync(&x, 1 << 20, pool, stream));
    CU(cuMemAllocFromPoolAsync(&y, 1 << 20, pool, stream));
    CHECK(get(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 2 << 20);
    CU(cuMemFreeAsync(x, stream));
    CU(cuMemFreeAsync(y, stream));
    while (cuStreamQuery(stream) != CUDA_SUCCESS) {
    }
    CHECK(get(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0);
    CHECK(reserved(pool) == 2 << 20);
    CU(cuMemGetInfo_v2(&after, &total));
    CHECK(before - after == 2 << 20);
    CU(cuMemPoolTrimTo(pool, 0)); // without a synchronise
    CHECK(reserved(pool) == 2 << 20);
    uint64_t threshold = 1 << 20;
    CU(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    CU(cuStreamSynchronize(stream));
    CHECK(reserved(pool) == 1 << 20);
    CU(cuMemPoolTrimTo(pool, 0));
    CHECK(reserved(pool) == 0);
    CHECK(get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) == 2 << 20);
    uint64_t zero = 0;
    CU(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &zero));
    CHECK(get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) == 0);
    CU(cuMemGetInfo_v2(&after, &total));
    CHECK(after == before);
}

static void query_until_over(CUevent event, CUstream stream)
{
    CU(cuEventRecord(event, stream));
    while (cuEventQuery(event) != CUDA_SUCCESS) {
    }
}

// Whether freed memory is given back now.
static bool is_settled(CUmemoryPool pool)
{
    CU(cuMemPoolTrimTo(pool, 0));
    return reserved(pool) == 0;
}

static void alloc_and_free(CUmemoryPool pool, CUstream stream)
{
    CUdeviceptr x;
    CU(cuMemAllocFromPoolAsync(&x, 1 << 20, pool, stream));
    CU(cuMemFreeAsync(x, stream));
}

// Freed memory is known to be free when something behind the free was waited for: on its stream, or
// on one that has waited for that. As seen on a card.
static void test_what_settles(void)
{
    rig_context();
    CUstream a = stream_new(), b = stream_new();
    CUmemoryPool pool = pool_new(0);
    CUevent before, behind, other;
    uint64_t threshold = UINT64_MAX;
    CU(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    CU(cuEventCreate(&before, 0));
    CU(cuEventCreate(&behind, 0));
    CU(cuEventCreate(&other, 0));
    CU(cuEventRecord(before, a));
    alloc_and_free(pool, a);
    query_until_over(behind, a);
    query_until_over(other, b);
    CHECK(cuStreamQuery(a) == CUDA_SUCCESS && !is_settled(pool));
    CU(cuEventSynchronize(before));
    CU(cuEventSynchronize(other));
    CU(cuStreamSynchronize(b));
    CHECK(!is_settled(pool));
    CU(cuEventSynchronize(behind));
    CHECK(is_settled(pool));

    alloc_and_free(pool, a);
    query_until_over(behind, a);
    CU(cuStreamWaitEvent(b, behind, 0));
    CU(cuEventSynchronize(other)); // which is before the wait
    CHECK(!is_settled(pool));
    query_until_over(other, b);
    CHECK(!is_settled(pool));
    CU(cuEventSynchronize(other));
    CHECK(is_settled(pool));

    alloc_and_free(pool, a);
    CU(cuStreamSynchronize(a));
    CHECK(is_settled(pool));
    alloc_and_free(pool, a);
    CU(cuCtxSynchronize());
    CHECK(is_settled(pool));
}

// The same stream has freed memory at once; another one only by the rules.
static void test_reuse(void)
{
    rig_context();
    CUstream a = stream_new(), b = stream_new();
    CUdeviceptr x, y;
    CUevent event;
    CU(cuEventCreate(&event, 0));
    gate_t gate = rig_gate();

    // Nothing allowed: other streams get memory of their own.
    CUmemoryPool strict = pool_new(0);
    set(strict, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, 0);
    set(strict, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, 0);
    set(strict, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 0);
    rig_gate_close(gate, a);
    CU(cuMemAllocFromPoolAsync(&x, 4096, strict, a));
    CU(cuMemFreeAsync(x, a));
    CU(cuMemAllocFromPoolAsync(&y, 4096, strict, a));
    CHECK(reserved(strict) == 4096);
    CU(cuMemFreeAsync(y, a));
    CU(cuMemAllocFromPoolAsync(&x, 4096, strict, b));
    CHECK(reserved(strict) == 8192);
    CU(cuStreamSynchronize(b)); // it waits for nothing

    // Events are followed.
    CUmemoryPool follows = pool_new(0);
    set(follows, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, 0);
    set(follows, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 0);
    CU(cuMemAllocFromPoolAsync(&x, 4096, follows, a));
    CU(cuMemFreeAsync(x, a));
    CU(cuMemAllocFromPoolAsync(&x, 4096, follows, b));
    CHECK(reserved(follows) == 8192);
    CU(cuEventRecord(event, a));
    CU(cuStreamWaitEvent(b, event, 0));
    CU(cuMemAllocFromPoolAsync(&x, 4096, follows, b));
    CHECK(reserved(follows) == 8192);
    rig_gate_open(gate);

    // What has run may be had, though no call has waited for it.
    CUmemoryPool opportunistic = pool_new(0);
    CU(cuMemAllocFromPoolAsync(&x, 4096, opportunistic, a));
    CU(cuMemFreeAsync(x, a));
    query_until_over(event, a);
    CU(cuMemAllocFromPoolAsync(&x, 4096, opportunistic, b));
    CHECK(reserved(opportunistic) == 4096);
    CU(cuCtxSynchronize());
}

// With internal dependencies allowed, the second stream secretly waits for the first.
static void test_hidden_dependency(void)
{
    rig_context();
    CUstream a = stream_new(), b = stream_new();
    CUmemoryPool pool = pool_new(0);
    CUdeviceptr x;
    gate_t gate = rig_gate();
    rig_gate_close(gate, a);
    CU(cuMemAllocFromPoolAsync(&x, 4096, pool, a));
    CU(cuMemFreeAsync(x, a));
    CU(cuMemAllocFromPoolAsync(&x, 4096, pool, b));
    CHECK(reserved(pool) == 4096);
    FAILS(CUDA_ERROR_NOT_READY, cuStreamQuery(b));
    rig_gate_open(gate);
    CU(cuStreamSynchronize(b));
}

static void test_limits(void)
{
    rig_context();
    CUstream stream = stream_new();
    CUmemoryPool pool = pool_new(1 << 20), big = pool_new(0);
    CUdeviceptr x, y;
    FAILS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocFromPoolAsync(&x, (1 << 20) + 1, pool, stream));
    CU(cuMemAllocFromPoolAsync(&x, 1 << 20, pool, stream));
    FAILS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocFromPoolAsync(&y, 1, pool, stream));
    CU(cuMemFreeAsync(x, stream));
    CU(cuMemAllocFromPoolAsync(&y, 512, pool, stream));
    FAILS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocFromPoolAsync(&x, 3584 << 10, big, stream));
    CU(cuMemFreeAsync(y, stream));
    CU(cuStreamSynchronize(stream));
    CU(cuMemAllocFromPoolAsync(&x, 3584 << 10, big, stream));
    CU(cuMemFreeAsync(x, stream));
    // A pool that is destroyed takes nothing, and gives back what it has when that is freed.
    CU(cuMemAllocFromPoolAsync(&x, 512, pool, stream));
    CU(cuMemPoolDestroy(pool));
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemAllocFromPoolAsync(&y, 512, pool, stream));
    CU(cuMemFreeAsync(x, stream));
    CU(cuStreamSynchronize(stream));
    size_t left, total;
    CU(cuMemGetInfo_v2(&left, &total));
    CHECK(left == total);
}

static void test_default_pool(void)
{
    rig_context();
    CUmemoryPool first, now, own = pool_new(0);
    CUdeviceptr x;
    CU(cuDeviceGetDefaultMemPool(&first, 0));
    CU(cuDeviceGetMemPool(&now, 0));
    CHECK(first == now);
    CU(cuDeviceSetMemPool(0, own));
    CU(cuMemAllocAsync(&x, 512, NULL));
    CHECK(reserved(own) == 512 && reserved(first) == 0);
    CU(cuPointerGetAttribute(&now, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, x));
    CHECK(now == own);
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(first));
    CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemAccess_flags access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    CU(cuMemPoolGetAccess(&access, own, &here));
    CHECK(access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

int main(int argc, char **argv)
{
    if (argc != 2) return 2;
    rig_kernels = argv[1];
    RUN("", test_in_order);
    RUN("seed=4", test_in_order);
    RUN("", test_too_early);
    RUN("", test_double_free);
    RUN("", test_reserves);
    RUN("", test_what_settles);
    RUN("", test_reuse);
    RUN("", test_hidden_dependency);
    RUN("memory=4M", test_limits);
    RUN("", test_default_pool);
    return rig_result();
}
