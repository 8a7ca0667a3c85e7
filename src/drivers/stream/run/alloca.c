// SPDX-License-Identifier: Apache-2.0
// Allocas and deallocas. With a pool of the vendor's an alloca has its address when it is issued,
// and a dealloca gives the memory back in the stream's order. With slabs the memory comes back when
// the run that gives it back has ended; so do the bytes that count for a limit, except that allocas
// later on the same stream may have them at once.
//
// Most often an alloca follows a dealloca of the same size. So the queue keeps the memory of the
// last dealloca. If the next operation on the stream is no such alloca, the memory is freed first.
#include <stddef.h>

#include "base/status.h"
#include "drivers/stream/run/run.h"
#include "kit/pool.h"

enum { KEPT = 4 << 20 }; // bytes that a queue keeps from the others, at most

static uint64_t padding(const keel_buffer_t *buffer)
{
    return buffer->alignment > STREAM_ALIGNMENT ? buffer->alignment : 0;
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
           !stream_run_queue(run)->adopted && !(run->base.commands.kinds & ~STREAM_BRIEF_KINDS);
}

static keel_status_t memory_get(stream_run_t *run, stream_pool_t *pool, uint64_t size,
                                uint64_t *address)
{
    stream_device_t *device = pool->device;
    stream_queue_t *queue = stream_run_queue(run);
    *address = kept_take_like(&queue->returns.kept, pool->number, size);
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
    // release: pairs with the acquire of a thread that finds the buffer resident.
    atomic_store_explicit(&buffer->resident, 1, memory_order_release);
    stream_run_follow(run, STREAM_TAIL_OTHERS);
    return NULL;
}

static void alloca_again(reclaim_waiter_t *waiter)
{
    stream_run_done((stream_run_t *)(void *)((char *)waiter - offsetof(stream_run_t, starved)));
}

// There is no memory, and `over` deallocas were over when it was asked for. Waits for those that
// are under way: the run's own first, and its work, for others may be waiting for them (free.c,
// indirect.c); then, if the pool had granted it, those of the pool that are not issued, which are
// the kit's; then issued ones of any pool, and what is being given back.
static bool alloca_await(stream_run_t *run, keel_cmd_alloca_t *c, bool granted, uint64_t over)
{
    run->starved.again = alloca_again;
    if (!run->frees && run->tail != STREAM_TAIL_OWN)
        return (granted && pool_alloca_again(c->buffer, &c->request)) ||
               reclaim_wait(&stream_run_device(run)->reclaim, &run->starved, over);
    if (granted) pool_alloca_undo(c->buffer);
    stream_run_park(run);
    return true;
}

// The walk stops at an alloca that waits: deallocas that its barrier does not hold up go first.
static void deallocas_first(stream_run_t *run, const keel_cmd_alloca_t *c)
{
    for (keel_cmd_alloca_t *d; (d = pool_dealloca_beside(c));) {
        keel_status_t status = stream_dealloca(run, d);
        if (status) stream_run_fail(run, submission_blame(&run->base, NULL, &d->head, status));
    }
}

keel_status_t stream_alloca(stream_run_t *run, keel_cmd_alloca_t *c, bool *waits)
{
    stream_device_t *device = stream_run_device(run);
    stream_pool_t *pool = stream_pool_vendor(c->buffer->pool);
    keel_status_t status = NULL;
    keel_pool_stats_t stats;
    uint64_t over = reclaim_ended(&device->reclaim);
    if (c->memory.buffer) return pool_lend(c);
    if (!c->settled) {
        deallocas_first(run, c);
        c->request.done = alloca_granted;
        c->request.context = run;
        c->request.order = run->base.queue;
        if (pool_alloca(c->buffer, &c->request, &status) == POOL_WAITING) {
            *waits = true;
            if (!run->deallocates && !run->frees && run->tail != STREAM_TAIL_OWN) return NULL;
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
    if (!c->settled || resident || !stream_pool_vendor(c->buffer->pool)) return;
    c->settled = false;
    pool_alloca_undo(c->buffer);
}

// Gives back the memory of a buffer, or keeps it in place of what was kept.
static keel_status_t memory_return(stream_run_t *run, stream_pool_t *pool, keel_buffer_t *buffer)
{
    stream_queue_t *queue = stream_run_queue(run);
    uint64_t size = buffer->capacity + padding(buffer);
    stream_run_follow(run, STREAM_TAIL_OTHERS);
    if (queue->adopted)
        stream_run_follow(run, STREAM_TAIL_OWN); // memory/settle.c leaves those alone
    run->frees++;
    run->segment.frees = true;
    stream_pool_free_begin(pool);
    uint64_t handle = stream_pool_memory_take(buffer);
    if (memory_is_kept(run, pool, size)) {
        stream_kept_free(queue);
        kept_put(&queue->returns.kept, pool->number, size, handle);
        return NULL;
    }
    atomic_store_explicit(&queue->returns.unmarked, true, memory_order_relaxed);
    return pool->device->api->pool_free(pool->device->vendor, queue->stream, handle);
}

keel_status_t stream_dealloca(stream_run_t *run, keel_cmd_alloca_t *c)
{
    stream_pool_t *pool = stream_pool_vendor(c->buffer->pool);
    keel_status_t status, told;
    if (!pool_dealloca_starts(c, &status)) return status;
    if (pool && atomic_load(&c->buffer->resident))
        status = stream_device_note(pool->device, memory_return(run, pool, c->buffer));
    if (pool && !pool->limited) {
        told = pool_dealloca(c->buffer);
    } else {
        run->deallocates = run->segment.frees = true;
        told = pool_dealloca_begin(c->buffer, pool ? run->base.queue : NULL, &c->piece);
        if (!pool && !told) { // allocas of other pools wait for it, too
            reclaim_begin(&stream_run_device(run)->reclaim);
            run->frees++;
        }
    }
    if (!status) return told;
    keel_status_release(told);
    return status;
}
