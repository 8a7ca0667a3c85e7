// SPDX-License-Identifier: Apache-2.0
#include "cuda/pool.h"

#include "cuda/arena.h"
#include "cuda/call.h"
#include "cuda/engine.h"
#include "cuda/variant.h"

#include <stdlib.h>
#include <string.h>

enum { UNIT = 512 }; // that sizes are rounded to

// Memory that was freed and is still reserved.
typedef struct credit_t {
    struct credit_t *next;
    uint64_t size;
    CUcontext context;
    uint64_t stream, number; // the command that frees it
    mark_t *freed;           // reached with that command; retained
    bool settled;            // a call has waited for something behind it
} credit_t;

struct CUmemPoolHandle_st {
    unsigned magic;
    CUmemoryPool next;
    device_t *device;
    bool is_default, destroyed;
    uint64_t limit; // 0: none
    int follow_events, opportunistic, internal_dependencies;
    uint64_t threshold;
    uint64_t reserved, reserved_high, used, used_high;
    unsigned live; // allocations
    CUmemAccess_flags access[DEVICES_MAX];
    credit_t *credits;
};

static CUmemoryPool pools;

static CUmemoryPool pool_create(device_t *device)
{
    CUmemoryPool pool = calloc(1, sizeof *pool);
    if (!pool) return NULL;
    pool->magic = MAGIC_POOL;
    pool->device = device;
    pool->follow_events = pool->opportunistic = pool->internal_dependencies = 1;
    pool->access[device->ordinal] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    pool->next = pools;
    pools = pool;
    return pool;
}

bool pool_create_default(device_t *device)
{
    device->default_pool = device->pool = pool_create(device);
    if (!device->pool) return false;
    device->pool->is_default = true;
    return true;
}

static void credit_drop(credit_t **link)
{
    credit_t *credit = *link;
    *link = credit->next;
    mark_release(credit->freed);
    free(credit);
}

static bool credit_is_free(const credit_t *credit)
{
    return credit->settled || (has_quirk(QUIRK_PROMPT) && credit->freed->done);
}

// Gives reserves that are known to be free back to the device until `keep` bytes are left.
static void pool_trim(CUmemoryPool pool, uint64_t keep)
{
    for (credit_t **link = &pool->credits; *link && pool->reserved > keep;) {
        if (!credit_is_free(*link)) {
            link = &(*link)->next;
            continue;
        }
        pool->reserved -= (*link)->size;
        pool->device->used -= (*link)->size;
        credit_drop(link);
    }
}

static void pool_free(CUmemoryPool pool)
{
    CUmemoryPool *link = &pools;
    while (*link != pool) link = &(*link)->next;
    *link = pool->next;
    while (pool->credits) {
        pool->device->used -= pool->credits->size;
        credit_drop(&pool->credits);
    }
    object_bury(pool);
}

static bool credit_is_settled(const credit_t *credit, CUcontext context, const mark_t *mark)
{
    if (!credit->freed->done || credit->context != context) return false;
    return !mark || (mark->done && mark_covers(mark, credit->stream, credit->number));
}

void pools_settle(CUcontext context, const mark_t *mark)
{
    for (CUmemoryPool pool = pools, next; pool; pool = next) {
        next = pool->next;
        for (credit_t *credit = pool->credits; credit; credit = credit->next) {
            credit->settled |= credit_is_settled(credit, context, mark);
        }
        pool_trim(pool, pool->threshold);
        if (pool->destroyed && pool->live == 0) pool_free(pool);
    }
}

// Whether memory freed there may be had by what comes in this stream; if it must wait for that, it
// does.
static bool credit_fits(CUmemoryPool pool, const credit_t *credit, CUstream stream)
{
    if (credit->stream == stream->id) return true;
    if (pool->follow_events && stream_has_seen(stream, credit->stream, credit->number)) return true;
    if (pool->opportunistic && credit->freed->done) return true;
    return false;
}

static bool credit_use(CUmemoryPool pool, uint64_t size, CUstream stream)
{
    credit_t **hidden = NULL;
    for (credit_t **link = &pool->credits; *link; link = &(*link)->next) {
        credit_t *credit = *link;
        if (credit->size < size) continue;
        if (!credit_fits(pool, credit, stream)) {
            if (!hidden) hidden = link;
            continue;
        }
        hidden = link;
        break;
    }
    if (!hidden) return false;
    credit_t *credit = *hidden;
    if (!credit_fits(pool, credit, stream)) {
        if (!pool->internal_dependencies) return false;
        stream_wait(stream, credit->freed);
    }
    credit->size -= size;
    if (credit->size == 0) credit_drop(hidden);
    return true;
}

static bool pool_reserve(CUmemoryPool pool, uint64_t size)
{
    for (int attempt = 0; attempt < 2; attempt++) {
        bool fits = (!pool->limit || size <= pool->limit - pool->reserved) &&
                    size <= settings()->memory - pool->device->used;
        if (fits) {
            pool->reserved += size;
            pool->device->used += size;
            if (pool->reserved > pool->reserved_high) pool->reserved_high = pool->reserved;
            return true;
        }
        pool_trim(pool, 0);
    }
    return false;
}

static CUresult pool_alloc(CUcontext current, CUmemoryPool pool, size_t size, CUstream handle,
                           CUdeviceptr *out)
{
    CUstream stream = stream_of(current, handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (!out || !IS(pool, MAGIC_POOL) || pool->destroyed) return CUDA_ERROR_INVALID_VALUE;
    if (size == 0) {
        *out = 0;
        return CUDA_SUCCESS;
    }
    if (size > settings()->memory) return CUDA_ERROR_OUT_OF_MEMORY;
    uint64_t rounded = (size + UNIT - 1) / UNIT * UNIT;
    if (!credit_use(pool, rounded, stream) && !pool_reserve(pool, rounded)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    range_t *range = arena_alloc(RANGE_POOL, size, pool->device, stream->context);
    if (!range) {
        pool->reserved -= rounded;
        pool->device->used -= rounded;
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    range->pool = pool;
    pool->live++;
    pool->used += rounded;
    if (pool->used > pool->used_high) pool->used_high = pool->used;
    *out = range->base;
    command_t *command = command_create(COMMAND_ALLOC);
    command->address = range->base;
    stream_push(stream, command);
    return CUDA_SUCCESS;
}

void pool_begin(uint64_t address)
{
    range_t *range = arena_find_base(address);
    if (range && range->state == RANGE_PROMISED) arena_begin(range);
}

// The credit is there from the call on, for what comes later in the same stream may count on it.
static void credit_add(CUmemoryPool pool, uint64_t size, CUstream stream, mark_t *freed)
{
    credit_t *credit = calloc(1, sizeof *credit);
    if (!credit) abort();
    *credit = (credit_t){
        .next = pool->credits,
        .size = size,
        .context = stream->context,
        .stream = stream->id,
        .number = stream->enqueued,
        .freed = mark_retain(freed),
    };
    pool->credits = credit;
    pool->used -= size;
}

void pool_end(uint64_t address, CUstream stream, uint64_t number)
{
    range_t *range = arena_find_base(address);
    if (!range) return;
    CUmemoryPool pool = range->pool;
    if (number == 0) { // not in the order of the stream: now
        mark_t *mark = mark_create();
        mark_reach(mark);
        credit_add(pool, (range->size + UNIT - 1) / UNIT * UNIT, stream, mark);
        mark_release(mark);
    }
    pool->live--;
    arena_free(range);
}

void pools_forget(CUcontext context)
{
    for (range_t *range; (range = arena_first(context, RANGE_POOL));) {
        uint64_t rounded = (range->size + UNIT - 1) / UNIT * UNIT;
        range->pool->live--;
        range->pool->used -= rounded;
        range->pool->reserved -= rounded;
        range->device->used -= rounded;
        arena_free(range);
    }
    pools_settle(context, NULL);
}

CUresult cuMemAllocAsync(CUdeviceptr *out, size_t size, CUstream stream)
{
    CALL(CALL_CONTEXT);
    return pool_alloc(call.context, call.context->device->pool, size, stream, out);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t size, CUmemoryPool pool, CUstream stream)
{
    CALL_ON(stream, CALL_CONTEXT | CALL_UNSAFE);
    return pool_alloc(call.context, pool, size, stream, out);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream handle)
{
    CALL_ON(handle, CALL_CONTEXT | CALL_RELEASE | CALL_UNSAFE);
    CUstream stream = stream_of(call.context, handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (address == 0) return call.late;
    range_t *range = arena_find_base(address);
    if (!range || range->kind != RANGE_POOL || range->ending) {
        arena_check(address, 1, WHEN_ENQUEUED, call_name());
        return CUDA_ERROR_INVALID_VALUE;
    }
    range->ending = true;
    CUmemoryPool pool = range->pool;
    uint64_t rounded = (range->size + UNIT - 1) / UNIT * UNIT;
    command_t *command = command_create(COMMAND_FREE);
    command->address = address;
    stream_push(stream, command);
    mark_t *mark = stream_mark(stream);
    credit_add(pool, rounded, stream, mark);
    mark_release(mark);
    return call.late;
}

CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props)
{
    CALL(CALL_PLAIN);
    if (!out || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (props->handleTypes != CU_MEM_HANDLE_TYPE_NONE ||
        props->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    device_t *device = device_of(props->location.id);
    if (!device) return CUDA_ERROR_INVALID_DEVICE;
    for (size_t i = 0; i < sizeof props->reserved; i++) {
        if (props->reserved[i]) return CUDA_ERROR_INVALID_VALUE;
    }
    if (!(*out = pool_create(device))) return CUDA_ERROR_OUT_OF_MEMORY;
    (*out)->limit = (props->maxSize + UNIT - 1) / UNIT * UNIT;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    CALL(CALL_RELEASE);
    if (!IS(pool, MAGIC_POOL) || pool->is_default || pool->destroyed) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (unsigned i = 0; i < state.device_count; i++) {
        device_t *device = &state.devices[i];
        if (device->pool == pool) device->pool = device->default_pool;
    }
    pool->destroyed = true;
    if (pool->live == 0) pool_free(pool);
    return call.late;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
    CALL(CALL_PLAIN);
    if (!IS(pool, MAGIC_POOL)) return CUDA_ERROR_INVALID_VALUE;
    pool_trim(pool, keep == SIZE_MAX ? 0 : keep); // as an H200 does
    return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    CALL(CALL_PLAIN);
    if (!IS(pool, MAGIC_POOL) || !value) return CUDA_ERROR_INVALID_VALUE;
    int flag = *(int *)value;
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES: pool->follow_events = flag; break;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC: pool->opportunistic = flag; break;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        pool->internal_dependencies = flag;
        break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: pool->threshold = *(cuuint64_t *)value; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        if (*(cuuint64_t *)value) return CUDA_ERROR_INVALID_VALUE;
        pool->reserved_high = pool->reserved;
        break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        if (*(cuuint64_t *)value) return CUDA_ERROR_INVALID_VALUE;
        pool->used_high = pool->used;
        break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *out)
{
    CALL(CALL_PLAIN);
    if (!IS(pool, MAGIC_POOL) || !out) return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES: *(int *)out = pool->follow_events; break;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC: *(int *)out = pool->opportunistic; break;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        *(int *)out = pool->internal_dependencies;
        break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: *(cuuint64_t *)out = pool->threshold; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: *(cuuint64_t *)out = pool->reserved; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: *(cuuint64_t *)out = pool->reserved_high; break;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: *(cuuint64_t *)out = pool->used; break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: *(cuuint64_t *)out = pool->used_high; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t count)
{
    CALL(CALL_PLAIN);
    if (!IS(pool, MAGIC_POOL) || (count && !access)) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        device_t *device = device_of(access[i].location.id);
        if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || !device) {
            return CUDA_ERROR_INVALID_DEVICE;
        }
        // Its own device always has access.
        if (device == pool->device && !access[i].flags) return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < count; i++) pool->access[access[i].location.id] = access[i].flags;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *out, CUmemoryPool pool, CUmemLocation *location)
{
    CALL(CALL_PLAIN);
    if (!out || !IS(pool, MAGIC_POOL) || !location) return CUDA_ERROR_INVALID_VALUE;
    if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || !device_of(location->id)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *out = pool->access[location->id];
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice ordinal)
{
    CALL(CALL_PLAIN);
    device_t *device = device_of(ordinal);
    if (!device) return CUDA_ERROR_INVALID_DEVICE;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = device->default_pool;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *out, CUdevice ordinal)
{
    CALL(CALL_PLAIN);
    device_t *device = device_of(ordinal);
    if (!device) return CUDA_ERROR_INVALID_DEVICE;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = device->pool;
    return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice ordinal, CUmemoryPool pool)
{
    CALL(CALL_PLAIN);
    device_t *device = device_of(ordinal);
    if (!device) return CUDA_ERROR_INVALID_DEVICE;
    if (!IS(pool, MAGIC_POOL) || pool->device != device) return CUDA_ERROR_INVALID_VALUE;
    device->pool = pool;
    return CUDA_SUCCESS;
}
