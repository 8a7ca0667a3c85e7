// SPDX-License-Identifier: Apache-2.0
// Pools. Where the vendor has stream-ordered pools (STREAM_POOLS), memory of the device comes from
// one of the device's own, and the kit keeps the books. All else is cut from slabs by the kit.
#include "kit/pool.h"
#include "base/list.h"
#include "base/memory.h"
#include "base/status.h"
#include "drivers/stream/memory/memory.h"
#include "kit/device.h"
#include "kit/object.h"

enum { PIECE = 32 << 20 }; // the vendor gives back whole ones, until less than asked is left

uint64_t stream_pool_memory_take(keel_buffer_t *buffer)
{
    // relaxed: points order this with all uses.
    atomic_store_explicit(&buffer->resident, 0, memory_order_relaxed);
    atomic_store_explicit(&buffer->address, 0, memory_order_relaxed);
    return buffer->handle;
}

// The keeper first says that it rests and then counts frees; here it is the other way round.
void stream_pool_free_begin(stream_pool_t *pool)
{
    reclaim_begin(&pool->device->reclaim);
    if (pool->threshold != UINT64_MAX && !atomic_exchange(&pool->device->active, 1))
        helper_wake(&pool->device->keeper);
}

// A buffer goes away with its memory; nothing uses it any more.
static void memory_reclaim(keel_buffer_t *buffer)
{
    stream_pool_t *pool = pool_driver(buffer->pool);
    stream_entered_t entered;
    if (!stream_enter(pool->device, &entered)) return;
    stream_pool_free_begin(pool);
    keel_status_t status = pool->device->api->pool_free(pool->device->vendor, pool->device->side,
                                                        stream_pool_memory_take(buffer));
    stream_leave(&entered);
    keel_status_release(stream_device_note(pool->device, status));
    reclaim_end(&pool->device->reclaim, 1);
}

static keel_status_t vendor_create(stream_device_t *device, stream_pool_t *own, keel_pool_t **pool)
{
    stream_entered_t entered;
    if (!stream_enter(device, &entered)) return stream_device_lost(device);
    keel_status_t status = device->api->pool_create(device->vendor, own->threshold, &own->handle);
    if (!status) status = pool_create_books(memory_reclaim, own, pool);
    if (status && own->handle) device->api->pool_destroy(device->vendor, own->handle);
    stream_leave(&entered);
    return stream_device_note(device, status);
}

keel_status_t stream_pool_create(keel_device_t *base, const keel_pool_options_t *options,
                                 keel_pool_t **pool)
{
    stream_device_t *device = stream_device(base);
    bool vendor =
        stream_device_has(device, STREAM_POOLS) && !(options->memory & KEEL_MEMORY_HOST_VISIBLE);
    stream_pool_t *own = mem_zalloc(sizeof *own);
    if (!own) return status_no_memory();
    own->device = device;
    own->threshold = options->threshold ? options->threshold : UINT64_MAX;
    own->limited = options->limit < device->limits.memory;
    keel_status_t status =
        vendor ? vendor_create(device, own, pool) : pool_create_books(NULL, own, pool);
    if (status) {
        mem_free(own);
        return status;
    }
    own->base = *pool;
    lock_enter(&device->lock);
    own->number = ++device->pool_count;
    LIST_ADD(device->pools, own);
    lock_leave(&device->lock);
    return NULL;
}

void stream_pool_destroy(keel_pool_t *pool)
{
    stream_pool_t *own = pool_driver(pool);
    stream_device_t *device = own->device;
    stream_entered_t entered;
    if (stream_device_is_ours(device)) {
        lock_enter(&device->lock);
        LIST_REMOVE(device->pools, own);
        lock_leave(&device->lock);
    }
    if (own->handle && stream_enter(device, &entered)) {
        stream_queue_t *q = stream_queue_next(device, NULL);
        for (; q; q = stream_queue_next(device, q)) stream_queue_yield(q, 0);
        stream_peak_note(device, device->api->pool_reserved(device->vendor, own->handle));
        device->api->pool_destroy(device->vendor, own->handle);
        stream_leave(&entered);
    }
    mem_free(own);
    pool_destroy(pool);
}

stream_pool_t *stream_pool_vendor(const keel_pool_t *pool)
{
    stream_pool_t *own = pool_driver(pool);
    return own->handle ? own : NULL;
}

// The pool behind `after` that is not about to go away, retained; `after` is released.
static stream_pool_t *pool_next(stream_device_t *device, const stream_pool_t *after)
{
    lock_enter(&device->lock);
    stream_pool_t *pool = after ? after->next : device->pools;
    while (pool && !object_hold(&pool->base->object)) pool = pool->next;
    lock_leave(&device->lock);
    if (after) keel_pool_release(after->base);
    return pool;
}

uint64_t stream_pools_reserved(stream_device_t *device)
{
    uint64_t bytes = 0;
    for (stream_pool_t *pool = pool_next(device, NULL); pool; pool = pool_next(device, pool))
        if (pool->handle) bytes += device->api->pool_reserved(device->vendor, pool->handle);
    return bytes;
}

void stream_peak_note(stream_device_t *device, uint64_t own)
{
    uint64_t pools = stream_pools_reserved(device) + own;
    device_peak(&device->base, atomic_load(&device->base.used) + pools);
}

void stream_pool_stats(keel_pool_t *pool, keel_pool_stats_t *stats)
{
    const stream_pool_t *own = stream_pool_vendor(pool);
    stream_entered_t entered;
    pool_stats(pool, stats);
    if (!own) return;
    if (stream_enter(own->device, &entered)) {
        stats->reserved = own->device->api->pool_reserved(own->device->vendor, own->handle);
        stream_leave(&entered);
    }
    // The vendor may count what it rounds up apart.
    if (stats->reserved < stats->used) stats->reserved = stats->used;
}

keel_status_t stream_pool_trim(keel_pool_t *pool, uint64_t keep)
{
    stream_pool_t *own = stream_pool_vendor(pool);
    if (!own) return pool_trim(pool, keep);
    keel_pool_stats_t stats;
    pool_stats(pool, &stats);
    stream_entered_t entered;
    if (!stream_enter(own->device, &entered)) return stream_device_lost(own->device);
    uint64_t least = keep ? stats.used + PIECE : stats.used;
    uint64_t reserved = own->device->api->pool_reserved(own->device->vendor, own->handle);
    if (!reserved) reserved = own->device->limits.memory; // or it could not be asked
    bool more = keep < reserved && least + keep <= reserved;
    if (more) stream_peak_note(own->device, 0);
    keel_status_t status = more ? stream_device_settle(own->device, NULL) : NULL;
    if (more && !status)
        status = own->device->api->pool_trim(own->device->vendor, own->handle, least + keep);
    stream_leave(&entered);
    return stream_device_note(own->device, status);
}

// Takes from all pools what no buffer holds: all of it, or what is beyond their thresholds. Slabs
// go back through keel-free, and the kit minds their thresholds.
static keel_status_t pools_trim(stream_device_t *device, bool all)
{
    const stream_api_t *api = device->api;
    stream_peak_note(device, 0);
    keel_status_t status = stream_device_settle(device, NULL);
    for (stream_pool_t *pool = pool_next(device, NULL); pool; pool = pool_next(device, pool)) {
        if (all && !pool->handle) keel_status_release(pool_trim(pool->base, 0)); // it never fails
        if (!status && pool->handle && (all || pool->threshold != UINT64_MAX))
            status = api->pool_trim(device->vendor, pool->handle, all ? 0 : pool->threshold);
    }
    return status;
}

void stream_pools_empty(stream_device_t *device)
{
    keel_status_release(pools_trim(device, true)); // the alloca that needs the memory finds out
}

void stream_memory_gather(stream_device_t *device)
{
    stream_pools_empty(device);
    chores_wait(&device->chores);
}

// Whether one has more than its threshold, and not only because buffers hold so much.
static bool pools_exceed(stream_device_t *device)
{
    keel_pool_stats_t stats;
    bool exceed = false;
    for (stream_pool_t *pool = pool_next(device, NULL); pool; pool = pool_next(device, pool)) {
        if (!pool->handle || pool->threshold == UINT64_MAX) continue;
        pool_stats(pool->base, &stats);
        uint64_t reserved = device->api->pool_reserved(device->vendor, pool->handle);
        exceed |= reserved > pool->threshold && (!stats.used || reserved >= stats.used + PIECE);
    }
    return exceed;
}

void stream_pools_relieve(stream_device_t *device, bool busy)
{
    uint64_t over = reclaim_ended(&device->reclaim);
    stream_entered_t entered;
    if ((busy && over == device->reclaim.relieved) || !stream_enter(device, &entered)) return;
    keel_status_t status = pools_exceed(device) ? pools_trim(device, false) : NULL;
    if (!status) device->reclaim.relieved = over; // else the next round tries again
    stream_leave(&entered);
    keel_status_release(stream_device_note(device, status));
}
