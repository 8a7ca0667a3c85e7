// SPDX-License-Identifier: Apache-2.0
// Queue-ordered memory. Where the vendor has stream-ordered pools, memory of the device comes from
// one of our own, and the kit keeps the books: an alloca has its address when it is issued, a
// dealloca gives the memory back in the stream's order. All else is cut from slabs by the kit, and
// comes back when the run that gives it back has ended; so do the bytes that count for a limit,
// except that allocas later on the same stream may have them at once.
//
// Most often an alloca comes right behind a dealloca, and of the same size. So a dealloca is but
// kept in mind; if the next thing on the stream is no such alloca, the vendor is told before it.
#include "kit/pool.h"

#include "base/list.h"
#include "base/memory.h"
#include "base/status.h"
#include "drivers/stream/stream.h"
#include "kit/object.h"

enum {
    PIECE = 32 << 20, // the vendor gives back whole ones, until less than asked is left
    KEPT = 4 << 20,   // a queue keeps no more from the others
};

// In the books as the driver's.
typedef struct stream_pool_t {
    struct stream_pool_t *next, *previous; // of the device
    keel_pool_t *base;                     // whose it is
    stream_device_t *device;               // borrowed: the pool keeps it
    stream_pool_h handle;                  // owned; NULL: the kit's slabs
    uint64_t number;                       // no other of the device has, or had
    uint64_t threshold;                    // bytes; beyond that memory goes back
    bool limited; // to less than there is; if not, it is the vendor who says that there is no more
} stream_pool_t;

static uint64_t padding(const keel_buffer_t *buffer)
{
    return buffer->alignment > STREAM_ALIGNMENT ? buffer->alignment : 0;
}

// Takes the memory from a buffer: its handle, to be freed.
static uint64_t memory_take(keel_buffer_t *buffer)
{
    // relaxed: points order this with all uses.
    atomic_store_explicit(&buffer->resident, 0, memory_order_relaxed);
    atomic_store_explicit(&buffer->address, 0, memory_order_relaxed);
    return buffer->handle;
}

// A free is on its way, and the keeper is to look, which says that it rests and then counts frees.
static void free_begin(stream_pool_t *pool)
{
    atomic_fetch_add(&pool->device->frees, 1);
    if (pool->threshold != UINT64_MAX && !atomic_exchange(&pool->device->active, 1))
        helper_wake(&pool->device->keeper);
}

// A buffer goes away with its memory; nothing uses it any more.
static void memory_reclaim(keel_buffer_t *buffer)
{
    stream_pool_t *pool = pool_driver(buffer->pool);
    stream_entered_t entered;
    if (!stream_enter(pool->device, &entered)) return;
    free_begin(pool);
    keel_status_t status =
        pool->device->api->pool_free(pool->device->vendor, pool->device->side, memory_take(buffer));
    stream_leave(&entered);
    keel_status_release(stream_device_note(pool->device, status));
    stream_frees_tell(pool->device, 1);
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
    if (atomic_load(&device->lost)) stream_pools_break(device); // who did may have missed it
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
        device->api->pool_destroy(device->vendor, own->handle);
        stream_leave(&entered);
    }
    mem_free(own);
    pool_destroy(pool);
}

void stream_pools_break(stream_device_t *device)
{
    keel_status_t cause = stream_device_lost(device);
    keel_pool_request_t *ended = NULL;
    lock_enter(&device->lock);
    for (stream_pool_t *pool = device->pools; pool; pool = pool->next)
        ended = pool_break(pool->base, cause, ended);
    lock_leave(&device->lock);
    keel_status_release(cause);
    pool_tell(ended);
}

// The vendor's pool behind one; NULL: it has none.
static stream_pool_t *vendor_pool(const keel_pool_t *pool)
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

void stream_pool_stats(keel_pool_t *pool, keel_pool_stats_t *stats)
{
    const stream_pool_t *own = vendor_pool(pool);
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
    stream_pool_t *own = vendor_pool(pool);
    if (!own) return pool_trim(pool, keep);
    keel_pool_stats_t stats;
    pool_stats(pool, &stats);
    stream_entered_t entered;
    if (!stream_enter(own->device, &entered)) return stream_device_lost(own->device);
    uint64_t least = keep ? stats.used + PIECE : stats.used;
    uint64_t reserved = own->device->api->pool_reserved(own->device->vendor, own->handle);
    if (!reserved) reserved = own->device->limits.memory; // or it could not be asked
    bool more = keep < reserved && least + keep <= reserved;
    keel_status_t status = more ? stream_device_settle(own->device, NULL) : NULL;
    if (more && !status)
        status = own->device->api->pool_trim(own->device->vendor, own->handle, least + keep);
    stream_leave(&entered);
    return stream_device_note(own->device, status);
}

// Takes from all pools what no buffer holds: all of it, or what is beyond their thresholds.
static keel_status_t pools_trim(stream_device_t *device, bool all)
{
    const stream_api_t *api = device->api;
    KEEL_TRY(stream_device_settle(device, NULL));
    keel_status_t status = NULL;
    for (stream_pool_t *pool = pool_next(device, NULL); pool; pool = pool_next(device, pool))
        if (!status && pool->handle && (all || pool->threshold != UINT64_MAX))
            status = api->pool_trim(device->vendor, pool->handle, all ? 0 : pool->threshold);
    return status;
}

void stream_pools_empty(stream_device_t *device)
{
    keel_status_release(pools_trim(device, true)); // whoever needs the memory finds out
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
    uint64_t over = atomic_load(&device->frees_over);
    stream_entered_t entered;
    if ((busy && over == device->relieved) || !stream_enter(device, &entered)) return;
    keel_status_t status = pools_exceed(device) ? pools_trim(device, false) : NULL;
    if (!status) device->relieved = over; // else the next round tries again
    stream_leave(&entered);
    keel_status_release(stream_device_note(device, status));
}

static void alloca_granted(keel_pool_request_t *request, keel_status_t status)
{
    keel_cmd_alloca_t *c =
        (keel_cmd_alloca_t *)(void *)((char *)request - offsetof(keel_cmd_alloca_t, request));
    stream_run_t *run = request->context;
    if (status)
        stream_run_fail(run, submission_blame(&run->base, NULL, &c->head, status));
    else
        c->settled = true;
    stream_run_done(run);
}

// Whether the queue keeps what a dealloca gives back: not if work comes behind it in the same run,
// nor what counts for a limit.
static bool memory_is_kept(const stream_run_t *run, const stream_pool_t *pool, uint64_t size)
{
    return size <= KEPT && !pool->limited && !pool->device->options.serial &&
           !stream_queue(run->base.queue)->adopted &&
           !(run->base.commands.kinds & ~STREAM_BRIEF_KINDS);
}

void stream_kept_free(stream_queue_t *queue)
{
    stream_device_t *device = stream_device(queue->base.device);
    uint64_t handle = kept_handle(&queue->kept);
    if (!handle) return;
    keel_status_t status = device->api->pool_free(device->vendor, queue->stream, handle);
    atomic_store_explicit(&queue->loose, true, memory_order_relaxed);
    kept_take(&queue->kept); // whoever finds it gone finds that; refused or not, it may be free
    keel_status_release(stream_device_note(device, status));
}

static keel_status_t memory_get(stream_run_t *run, stream_pool_t *pool, uint64_t size,
                                uint64_t *address)
{
    stream_device_t *device = pool->device;
    stream_queue_t *queue = stream_queue(run->base.queue);
    *address = kept_take_like(&queue->kept, pool->number, size);
    if (*address) return NULL;
    stream_kept_free(queue);
    keel_status_t status =
        device->api->pool_alloc(device->vendor, pool->handle, queue->stream, size, address);
    if (keel_status_code(status) != KEEL_RESOURCE_EXHAUSTED) return status;
    keel_status_release(status);
    stream_pools_empty(device);
    return device->api->pool_alloc(device->vendor, pool->handle, queue->stream, size, address);
}

// Gives a buffer what it was granted.
static keel_status_t memory_give(stream_run_t *run, stream_pool_t *pool, keel_buffer_t *buffer)
{
    uint64_t address = 0, extra = padding(buffer);
    KEEL_TRY(memory_get(run, pool, buffer->capacity + extra, &address));
    buffer->handle = address;
    if (extra) address += -address & (extra - 1);
    atomic_store_explicit(&buffer->address, address, memory_order_relaxed);
    // release: pairs with the acquire of whoever finds the buffer resident.
    atomic_store_explicit(&buffer->resident, 1, memory_order_release);
    run->placed = true;
    return NULL;
}

void stream_frees_tell(stream_device_t *device, uint32_t count)
{
    // Store, then look: whoever starves does it the other way round.
    atomic_fetch_add(&device->frees_over, count);
    if (!atomic_load(&device->starved)) return;
    lock_enter(&device->lock);
    keel_pool_request_t *starved = atomic_exchange(&device->starved, NULL);
    lock_leave(&device->lock);
    while (starved) {
        stream_run_t *fed = starved->context;
        starved = starved->next;
        stream_run_done(fed);
    }
}

// Has a request wait until more than `over` deallocas are over. False if none is under way.
static bool device_starve(stream_device_t *device, keel_pool_request_t *request, uint64_t over)
{
    lock_enter(&device->lock);
    request->next = atomic_load(&device->starved);
    atomic_store(&device->starved, request);
    bool fed = atomic_load(&device->frees_over) != over;
    bool hopeless = !fed && atomic_load(&device->frees) == over;
    if (fed || hopeless) atomic_store(&device->starved, request->next);
    lock_leave(&device->lock);
    if (fed) stream_run_done(request->context);
    return !hopeless;
}

// There is no memory, and `over` deallocas were over when it was asked for. Waits for those that
// are under way: the run's own first, and its work, for others may be waiting for them (free.c,
// graph_once.c); then, if the pool had granted it, those of the pool that are not issued, which are
// the kit's; then issued ones of any pool, and what is being given back.
static bool alloca_await(stream_run_t *run, keel_cmd_alloca_t *c, bool granted, uint64_t over)
{
    if (!run->frees && !run->issued)
        return (granted && pool_alloca_again(c->buffer, &c->request)) ||
               device_starve(stream_device(run->base.queue->device), &c->request, over);
    if (granted) pool_alloca_undo(c->buffer);
    stream_run_park(run);
    return true;
}

keel_status_t stream_alloca(stream_run_t *run, keel_cmd_alloca_t *c, bool *waits)
{
    stream_device_t *device = stream_device(run->base.queue->device);
    stream_pool_t *pool = vendor_pool(c->buffer->pool);
    keel_status_t status = NULL;
    keel_pool_stats_t stats;
    uint64_t over = atomic_load(&device->frees_over);
    if (!c->settled) {
        c->request.done = alloca_granted;
        c->request.context = run;
        c->request.order = run->base.queue;
        if (pool_alloca(c->buffer, &c->request, &status) == POOL_WAITING) {
            *waits = true;
            if (!run->deallocates && !run->frees && !run->issued) return NULL;
            // It may wait for what the run itself has given back, and others too, who may need a
            // device at rest or its graphs (alloca_await): all is to be known over before it ends.
            pending_add(&run->pending);
            stream_run_park(run);
            return NULL;
        }
    }
    bool granted = pool && !status;
    if (granted) status = memory_give(run, pool, c->buffer);
    if (!status) return NULL;
    c->settled = false;
    pool_stats(c->buffer->pool, &stats);
    bool hopeless = keel_status_code(status) != KEEL_RESOURCE_EXHAUSTED ||
                    (!granted && stats.used + c->buffer->size > stats.limit);
    if (hopeless && granted) pool_alloca_undo(c->buffer);
    *waits = !hopeless && alloca_await(run, c, granted, over);
    if (!*waits) {
        if (granted) status = pool_refuse(c->buffer, status);
        return stream_device_note(device, status);
    }
    keel_status_release(status);
    return NULL;
}

void stream_alloca_drop(keel_cmd_alloca_t *c)
{
    bool resident = atomic_load(&c->buffer->resident);
    if (!c->settled || resident || !vendor_pool(c->buffer->pool)) return;
    c->settled = false;
    pool_alloca_undo(c->buffer);
}

// Gives back the memory of a buffer, or keeps it in place of what was kept.
static keel_status_t memory_return(stream_run_t *run, stream_pool_t *pool, keel_buffer_t *buffer)
{
    stream_queue_t *queue = stream_queue(run->base.queue);
    uint64_t size = buffer->capacity + padding(buffer);
    run->placed = true;
    run->issued |= queue->adopted; // which settle.c leaves alone
    run->frees++;
    free_begin(pool);
    uint64_t handle = memory_take(buffer);
    if (memory_is_kept(run, pool, size)) {
        stream_kept_free(queue);
        kept_put(&queue->kept, pool->number, size, handle);
        return NULL;
    }
    atomic_store_explicit(&queue->loose, true, memory_order_relaxed);
    return pool->device->api->pool_free(pool->device->vendor, queue->stream, handle);
}

keel_status_t stream_dealloca(stream_run_t *run, keel_cmd_alloca_t *c)
{
    stream_pool_t *pool = vendor_pool(c->buffer->pool);
    keel_status_t status = NULL, told;
    c->settled = true;
    if (pool && atomic_load(&c->buffer->resident))
        status = stream_device_note(pool->device, memory_return(run, pool, c->buffer));
    if (pool && !pool->limited) {
        told = pool_dealloca(c->buffer);
    } else {
        run->deallocates = true;
        told = pool_dealloca_begin(c->buffer, pool ? run->base.queue : NULL, &c->piece);
    }
    if (!status) return told;
    keel_status_release(told);
    return status;
}

void stream_deallocas_end(stream_run_t *run)
{
    run->deallocates = false;
    KEEL_EACH_COMMAND (c, &run->base.commands) {
        keel_cmd_alloca_t *dealloca = (keel_cmd_alloca_t *)(uintptr_t)c;
        if (c->kind == KEEL_CMD_DEALLOCA && dealloca->piece.open)
            pool_dealloca_end(dealloca->buffer, &dealloca->piece);
    }
}
