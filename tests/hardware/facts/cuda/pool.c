// SPDX-License-Identifier: Apache-2.0
// Pools: who may have freed memory, and when it goes back to the device.
#include "cuda.h"

enum { SIZE = 64 << 20 }; // more than a pool takes in one piece for small allocations

static CUmemoryPool pool_new(void)
{
    CUmemoryPool pool;
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    if (!cuda_attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED))
        fact_skip("the device has no pools");
    CU(cu.cuMemPoolCreate(&pool, &props));
    return pool;
}

static void set(CUmemoryPool pool, CUmemPool_attribute attribute, int value)
{
    CU(cu.cuMemPoolSetAttribute(pool, attribute, &value));
}

// A pool that keeps all it gets, and gives other streams only what they are ordered behind.
static CUmemoryPool pool_strict(void)
{
    CUmemoryPool pool = pool_new();
    cuuint64_t keep = UINT64_MAX;
    CU(cu.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
    set(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, 0);
    set(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 0);
    return pool;
}

static uint64_t reserved(CUmemoryPool pool)
{
    cuuint64_t value = 0;
    CU(cu.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
    return value;
}

static CUdeviceptr get(CUmemoryPool pool, CUstream stream)
{
    CUdeviceptr memory;
    CU(cu.cuMemAllocFromPoolAsync(&memory, SIZE, pool, stream));
    return memory;
}

static void defaults(void)
{
    cuda_begin();
    CUmemoryPool pool = pool_new();
    cuuint64_t threshold = 1;
    for (int i = 1; i <= 3; i++) {
        int value = 0;
        CU(cu.cuMemPoolGetAttribute(pool, (CUmemPool_attribute)i, &value));
        REQUIRE(value == 1);
    }
    CU(cu.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    REQUIRE(threshold == 0 && reserved(pool) == 0);
}

static void aligned(void)
{
    cuda_begin();
    CUmemoryPool pool = pool_new();
    CUstream stream = cuda_stream();
    for (size_t size = 1; size < 5000; size = size * 3 + 1) {
        CUdeviceptr memory;
        CU(cu.cuMemAllocFromPoolAsync(&memory, size, pool, stream));
        REQUIRE(memory % 256 == 0);
    }
}

// The address is known from the call on, though the stream has not come to it.
static void known_at_once(void)
{
    cuda_begin();
    CUmemoryPool pool = pool_new();
    CUstream stream = cuda_stream();
    CUdeviceptr memory, start = 0;
    size_t length = 0;
    gate_t gate = gate_close(stream);
    CU(cu.cuMemAllocFromPoolAsync(&memory, 1000, pool, stream));
    RETURNS(CUDA_SUCCESS,
            cu.cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, memory + 999));
    RETURNS(CUDA_SUCCESS,
            cu.cuPointerGetAttribute(&length, CU_POINTER_ATTRIBUTE_RANGE_SIZE, memory));
    fact_say("%zu", length);
    REQUIRE(start == memory && length == 1000);
    gate_open(&gate);
    CU(cu.cuStreamSynchronize(stream));
}

static void same_stream(void)
{
    cuda_begin();
    CUmemoryPool pool = pool_strict();
    CUstream stream = cuda_stream();
    gate_t gate = gate_close(stream);
    CUdeviceptr memory = get(pool, stream);
    uint64_t before = reserved(pool);
    for (int i = 0; i < 10; i++) {
        CU(cu.cuMemFreeAsync(memory, stream));
        memory = get(pool, stream);
    }
    REQUIRE(reserved(pool) == before);
    gate_open(&gate);
    CU(cu.cuStreamSynchronize(stream));
}

static void other_stream(void)
{
    cuda_begin();
    CUmemoryPool pool = pool_strict();
    CUstream stream = cuda_stream(), other = cuda_stream();
    CUdeviceptr memory = get(pool, stream);
    uint64_t before = reserved(pool);
    gate_t gate = gate_close(stream);
    CU(cu.cuMemFreeAsync(memory, stream));
    get(pool, other);
    REQUIRE(reserved(pool) > before);
    gate_open(&gate);
    CU(cu.cuStreamSynchronize(stream));
}

static void behind_event(void)
{
    cuda_begin();
    CUmemoryPool pool = pool_strict();
    CUstream stream = cuda_stream(), other = cuda_stream();
    CUevent event = cuda_event();
    CUdeviceptr memory = get(pool, stream);
    uint64_t before = reserved(pool);
    gate_t gate = gate_close(stream);
    CU(cu.cuMemFreeAsync(memory, stream));
    CU(cu.cuEventRecord(event, stream));
    CU(cu.cuStreamWaitEvent(other, event, 0));
    get(pool, other);
    REQUIRE(reserved(pool) == before);
    gate_open(&gate);
    CU(cu.cuStreamSynchronize(other));
}

static void opportunistic(void)
{
    cuda_begin();
    CUmemoryPool pool = pool_strict();
    CUstream stream = cuda_stream(), other = cuda_stream();
    set(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, 1);
    CUdeviceptr memory = get(pool, stream);
    uint64_t before = reserved(pool);
    CU(cu.cuMemFreeAsync(memory, stream));
    CU(cu.cuStreamSynchronize(stream));
    get(pool, other);
    REQUIRE(reserved(pool) == before);
}

// Where a pool may, an allocation makes its stream wait for another without being asked.
static void hidden_wait(void)
{
    cuda_begin();
    CUmemoryPool pool = pool_strict();
    CUstream stream = cuda_stream(), other = cuda_stream();
    set(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 1);
    CUdeviceptr memory = get(pool, stream);
    uint64_t before = reserved(pool);
    gate_t gate = gate_close(stream);
    CU(cu.cuMemFreeAsync(memory, stream));
    get(pool, other);
    LAUNCH("empty", other, 0);
    REQUIRE(reserved(pool) == before);
    RETURNS(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(other));
    gate_open(&gate);
    CU(cu.cuStreamSynchronize(other));
}

// Frees a piece on a stream, and lets the stream come to it without a synchronise.
static CUmemoryPool freed(CUstream stream, CUevent event)
{
    CUmemoryPool pool = pool_strict();
    uint32_t *word = cuda_words();
    CUdeviceptr memory = get(pool, stream);
    CU(cu.cuMemFreeAsync(memory, stream));
    CU(cu.cuEventRecord(event, stream));
    LAUNCH("poke", stream, cuda_at(word), 1);
    NEED(fact_await(word, 1));
    NEED(reserved(pool) >= SIZE);
    return pool;
}

static void await_event(CUevent event)
{
    for (int i = 0; i < 20000 && cu.cuEventQuery(event) == CUDA_ERROR_NOT_READY; i++) fact_nap(1);
    CU(cu.cuEventQuery(event));
}

static void query_does_not_settle(void)
{
    cuda_begin();
    CUstream stream = cuda_stream();
    CUevent event = cuda_event();
    CUmemoryPool pool = freed(stream, event);
    await_event(event);
    while (cu.cuStreamQuery(stream) == CUDA_ERROR_NOT_READY) fact_nap(1);
    CU(cu.cuMemPoolTrimTo(pool, 0));
    REQUIRE(reserved(pool) >= SIZE);
    CU(cu.cuStreamSynchronize(stream));
    CU(cu.cuMemPoolTrimTo(pool, 0));
    REQUIRE(reserved(pool) == 0);
}

static void event_settles(void)
{
    cuda_begin();
    CUstream stream = cuda_stream();
    CUevent event = cuda_event();
    CUmemoryPool pool = freed(stream, event);
    CU(cu.cuEventSynchronize(event));
    CU(cu.cuMemPoolTrimTo(pool, 0));
    REQUIRE(reserved(pool) == 0);
}

static void later_event_settles(void)
{
    cuda_begin();
    CUstream stream = cuda_stream(), other = cuda_stream();
    CUevent event = cuda_event(), later = cuda_event();
    CUmemoryPool pool = freed(stream, event);
    CU(cu.cuStreamWaitEvent(other, event, 0));
    CU(cu.cuEventRecord(later, other));
    CU(cu.cuEventSynchronize(later));
    CU(cu.cuMemPoolTrimTo(pool, 0));
    REQUIRE(reserved(pool) == 0);
}

static void context_settles(void)
{
    cuda_begin();
    CUstream stream = cuda_stream();
    CUmemoryPool pool = freed(stream, cuda_event());
    CU(cu.cuCtxSynchronize());
    CU(cu.cuMemPoolTrimTo(pool, 0));
    REQUIRE(reserved(pool) == 0);
}

// An event in front of the free says nothing about it.
static void earlier_event(void)
{
    cuda_begin();
    CUstream stream = cuda_stream();
    CUevent early = cuda_event(), event = cuda_event();
    CU(cu.cuEventRecord(early, stream));
    CUmemoryPool pool = freed(stream, event);
    await_event(event);
    CU(cu.cuEventSynchronize(early));
    CU(cu.cuMemPoolTrimTo(pool, 0));
    REQUIRE(reserved(pool) >= SIZE);
}

static void threshold(void)
{
    cuda_begin();
    CUmemoryPool pool = pool_new(); // which keeps nothing
    CUstream stream = cuda_stream();
    CUdeviceptr memory = get(pool, stream);
    CU(cu.cuMemFreeAsync(memory, stream));
    CU(cu.cuStreamSynchronize(stream));
    REQUIRE(reserved(pool) == 0);
    cuuint64_t keep = UINT64_MAX;
    CU(cu.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
    memory = get(pool, stream);
    CU(cu.cuMemFreeAsync(memory, stream));
    CU(cu.cuStreamSynchronize(stream));
    REQUIRE(reserved(pool) >= SIZE);
}

static void trim_to_most(void)
{
    cuda_begin();
    CUstream stream = cuda_stream();
    CUmemoryPool pool = freed(stream, cuda_event());
    CU(cu.cuStreamSynchronize(stream));
    REQUIRE(reserved(pool) >= SIZE);
    CU(cu.cuMemPoolTrimTo(pool, SIZE_MAX));
    REQUIRE(reserved(pool) == 0);
}

// Keel leaves as much when it trims a pool to a size.
static void pieces(void)
{
    cuda_begin();
    CUmemoryPool pool = pool_strict();
    CUdeviceptr memory;
    CU(cu.cuMemAllocFromPoolAsync(&memory, 1000, pool, cuda_stream()));
    fact_say("%llu KiB", (unsigned long long)reserved(pool) >> 10);
    REQUIRE(reserved(pool) >= 1000 && reserved(pool) <= 32 << 20);
}

static void in_use_stays(void)
{
    cuda_begin();
    CUmemoryPool pool = pool_strict();
    CUstream stream = cuda_stream();
    CUdeviceptr first = get(pool, stream), second = get(pool, stream);
    CU(cu.cuMemFreeAsync(first, stream));
    CU(cu.cuStreamSynchronize(stream));
    CU(cu.cuMemPoolTrimTo(pool, 0));
    REQUIRE(reserved(pool) >= SIZE && reserved(pool) < 2 * (uint64_t)SIZE);
    CU(cu.cuMemsetD8Async(second, 1, SIZE, stream));
    CU(cu.cuStreamSynchronize(stream));
}

static void destroyed_in_use(void)
{
    cuda_begin();
    CUmemoryPool pool = pool_strict();
    CUstream stream = cuda_stream();
    CUdeviceptr memory = get(pool, stream);
    RETURNS(CUDA_SUCCESS, cu.cuMemPoolDestroy(pool));
    RETURNS(CUDA_SUCCESS, cu.cuMemsetD8Async(memory, 1, SIZE, stream));
    RETURNS(CUDA_SUCCESS, cu.cuMemFreeAsync(memory, stream));
    RETURNS(CUDA_SUCCESS, cu.cuStreamSynchronize(stream));
}

const fact_t cuda_pool_facts[] = {
    {"pool.defaults", "a pool reuses memory in all three ways, and keeps none, unless it is told",
     "CUDA driver API, cuMemPoolSetAttribute", defaults, HOLDS, HOLDS, NULL},
    {"pool.aligned", "memory of a pool begins at a multiple of 256",
     "CUDA C++ programming guide, device memory accesses", aligned, HOLDS, HOLDS, NULL},
    {"pool.known_at_once", "an address tells its start and size from the call on", H200,
     known_at_once, HOLDS, HOLDS, NULL},
    {"pool.same_stream", "what was freed is had again on the same stream at once",
     "CUDA driver API, stream ordered memory allocator", same_stream, HOLDS, HOLDS, NULL},
    {"pool.other_stream", "another stream that knows nothing of the free gets other memory",
     "CUDA driver API, stream ordered memory allocator", other_stream, HOLDS, HOLDS, NULL},
    {"pool.behind_event", "a stream that waits for an event behind the free has it at once", H200,
     behind_event, HOLDS, HOLDS, NULL},
    {"pool.opportunistic", "where the pool may, any stream has what happens to be free", H200,
     opportunistic, HOLDS, HOLDS, NULL},
    {"pool.hidden_wait", "where the pool may, an allocation has its stream wait for the free",
     "CUDA driver API, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES", hidden_wait, HOLDS,
     DIFFERS, "an H200 reserved more memory instead"},
    {"pool.query_does_not_settle", "freed memory goes back after a synchronise, not after queries",
     H200, query_does_not_settle, HOLDS, HOLDS, NULL},
    {"pool.event_settles", "one of an event behind the free will do", H200, event_settles, HOLDS,
     HOLDS, NULL},
    {"pool.later_event_settles", "so will one on another stream that waited for such an event",
     H200, later_event_settles, HOLDS, HOLDS, NULL},
    {"pool.context_settles", "and one of the context", H200, context_settles, HOLDS, HOLDS, NULL},
    {"pool.earlier_event", "an event in front of the free will not do", H200, earlier_event, HOLDS,
     HOLDS, NULL},
    {"pool.threshold", "a synchronise gives back what is beyond the threshold",
     "CUDA driver API, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD", threshold, HOLDS, HOLDS, NULL},
    {"pool.trim_to_most", "to trim a pool to the largest number of bytes is to trim all of it",
     H200, trim_to_most, HOLDS, HOLDS, NULL},
    {"pool.pieces", "a pool gets no more than 32 MiB for a small allocation",
     "src/drivers/stream/pool.c", pieces, HOLDS, HOLDS, NULL},
    {"pool.in_use_stays", "memory in use is not trimmed", "CUDA driver API, cuMemPoolTrimTo",
     in_use_stays, HOLDS, HOLDS, NULL},
    {"pool.destroyed_in_use", "memory of a destroyed pool lives until it is freed",
     "CUDA driver API, cuMemPoolDestroy", destroyed_in_use, HOLDS, HOLDS, NULL},
    {0},
};
