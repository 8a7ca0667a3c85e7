// SPDX-License-Identifier: Apache-2.0
// Devices: how they are made, end, and are lost.
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/fork.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/thread.h"
#include "drivers/stream/driver.h"
#include "drivers/stream/stream.h"
#include "kit/border.h"
#include "kit/device.h"
#include "kit/object.h"
#include "trace/captured.h"

// What each queue was at, as far as the host knows: on the device, or else waiting for something.
static keel_status_t lost_explain(stream_device_t *device, keel_status_t cause)
{
    const char *own_name = device->base.name ? device->base.name : device->api->driver;
    submission_names_t there = {.words = "first submissions not known complete: "};
    submission_names_t waiting = {.words = "waiting: "};
    STREAM_EACH_QUEUE(q, device)
    {
        lock_enter(&q->lock);
        const stream_event_t *event = q->flight;
        while (event && !event->segments) event = event->next; // of frees alone
        uint64_t id = event ? event->segments->base.id : atomic_load(&q->at);
        lock_leave(&q->lock);
        submission_names_t *names = id || atomic_load(&q->unmarked) ? &there : &waiting;
        if (!id) id = submission_first(&q->base);
        if (id) submission_names_add(names, &q->base, id);
    }
    return keel_status_wrap(cause, "device '%s' is lost%s%s", own_name, there.text, waiting.text);
}

static void lost_settle(keel_device_t *base)
{
    stream_device_t *device = stream_device(base);
    stream_queues_retire(device);
    border_wake(atomic_load(&device->border));
}

static void lost_end(stream_device_t *device, keel_status_t cause)
{
    device_end(&device->base, keel_status_retain(cause), lost_settle);
}

static const stream_hooks_t hooks = {
    .go = stream_run_go,
    .over = stream_run_over,
    .lost = stream_run_lost,
    .explain = lost_explain,
    .end = lost_end,
    .events = &stream_event_ops,
};

static void device_close(keel_device_t *base)
{
    stream_device_t *device = stream_device(base);
    aio_destroy(device->aio); // first: its thread may still be issuing to a queue, and hold it
    device->aio = NULL;
    helper_stop(&device->keeper);
    helper_stop(&device->issuer);
    border_close(atomic_load(&device->border));
    stream_queues_stop(device);
    if (device->traced) stream_clock_trace(device);
    chores_stop(&device->chores);
}

// Its events have gone: without the last device the vendor's context goes, too.
static void device_free(stream_device_t *device)
{
    if (stream_device_is_ours(device)) pages_close(&device->pages);
    keel_status_release(atomic_load(&device->lost));
    keel_status_release(atomic_load(&device->base.ended)); // if it was lost only now, or half open
    mem_free(device);
}

// All work has ended, but a thread that asks after a point may have its event for a moment longer,
// and no reference to the device.
static void *device_outlive(void *argument)
{
    stream_device_t *device = argument;
    while (atomic_load(&device->events)) {
        sched_yield();
        stream_events_destroy(device, UINT32_MAX);
    }
    device_free(device);
    return NULL;
}

static void device_destroy(keel_device_t *base)
{
    stream_device_t *device = stream_device(base);
    bool ours = stream_device_is_ours(device);
    if (!ours)
        device->lock = device->blocks.lock = (lock_t){0}; // the thread that held them is not here
    blocks_destroy(&device->blocks);
    stream_indirects_destroy(device);
    stream_launch_pool_destroy(device);
    stream_builtins_unload(device);
    if (ours) border_destroy(atomic_load(&device->border));
    aio_destroy(device->aio);
    stream_events_destroy(device, UINT32_MAX);
    // The thread that has an event may be this one: the device ended because it looked.
    if (ours && atomic_load(&device->events))
        thread_detach("keel-event", device_outlive, device); // without one it stays
    else
        device_free(device);
}

static void device_memory(keel_device_t *base, keel_memory_stats_t *stats)
{
    stream_device_t *device = stream_device(base);
    stream_entered_t entered;
    stats->total = device->limits.memory; // which holds also when the device is lost
    if (!stream_enter(device, &entered)) return;
    stats->used += stream_pools_reserved(device);
    device_peak(base, stats->used);
    stats->peak = atomic_load(&base->peak);
    uint64_t left = device->api->memory(device->vendor);
    if (left != UINT64_MAX) stats->budget = left;
    stream_leave(&entered);
}

static bool device_native(keel_device_t *base, keel_queue_t *queue, keel_native_t kind,
                          uint64_t *handle)
{
    const stream_natives_t *natives = &stream_device(base)->limits.natives;
    if (queue) {
        *handle = (uintptr_t)stream_queue(queue)->stream;
        return kind == natives->stream;
    }
    *handle = kind == natives->device ? natives->device_handle : natives->context_handle;
    return kind == natives->device || kind == natives->context;
}

static keel_device_ops_t ops_of(const stream_device_t *device)
{
    keel_device_ops_t ops = {
        .device_close = device_close,
        .device_destroy = device_destroy,
        .device_clock = stream_device_clock,
        .device_memory = device_memory,
        .device_peers = stream_device_peers,
        .queue_create = stream_queue_create,
        .queue_destroy = stream_queue_destroy,
        .queue_submit = stream_queue_submit,
        .buffer_alloc = stream_buffer_alloc,
        .buffer_free = stream_buffer_free,
        .buffer_import = stream_buffer_import,
        .buffer_forget = stream_buffer_forget,
        .pool_create = stream_pool_create,
        .pool_destroy = stream_pool_destroy,
        .pool_stats = stream_pool_stats,
        .pool_trim = stream_pool_trim,
        .executable_rank = stream_executable_rank,
        .executable_load = stream_executable_load,
        .executable_unload = stream_executable_unload,
        .executable_global = stream_executable_global,
        .executable_write = stream_executable_write,
        .recording_prepare = stream_recording_prepare,
        .recording_discard = stream_recording_discard,
    };
    if (stream_device_has(device, STREAM_SHARED)) ops.buffer_export = stream_buffer_export;
    if (stream_device_has(device, STREAM_OUTSIDE)) {
        ops.semaphore_import = stream_semaphore_import;
    }
    if (device->limits.natives.stream) ops.device_native = device_native;
    return ops;
}

static keel_status_t device_init(stream_device_t *device)
{
    KEEL_TRY(stream_api_check(device->api, device->limits.features));
    device->ops = ops_of(device);
    device->base.ops = &device->ops;
    device->base.info = device->limits.info;
    device->modules = (cache_t){.class = &stream_module_class, .owner = device};
    helper_init(&device->keeper, "keel-keeper", stream_device_keep, device);
    helper_init(&device->issuer, "keel-issue", stream_queues_issue, device);
    chores_init(&device->chores, "keel-free", stream_may_free, device);
    stream_caps_fill(device);
    KEEL_TRY(aio_create(&device->aio));
    stream_entered_t entered;
    if (!stream_enter(device, &entered)) return stream_device_lost(device);
    keel_status_t status = stream_builtins_load(device);
    if (!status) status = stream_launch_pool_make(device);
    if (!status) status = stream_indirects_create(device);
    stream_leave(&entered);
    if (!status && trace_is_on() && !trace_is_captured(device->api->driver))
        stream_clock_trace(device);
    return status;
}

// Options may turn features off.
static uint32_t features_used(uint32_t features, const stream_options_t *options)
{
    if (options->alloc_sync) features &= ~(uint32_t)STREAM_POOLS;
    // Within a graph no error names a command.
    if (options->serial) features &= ~(uint32_t)STREAM_CONDITIONS;
    return features;
}

keel_status_t stream_device_create(const stream_api_t *api, stream_vendor_t *vendor,
                                   const stream_limits_t *limits, const stream_options_t *options,
                                   keel_device_t **device)
{
    stream_device_t *d = mem_zalloc(sizeof *d);
    if (!d) {
        api->close_device(vendor);
        return status_no_memory();
    }
    d->api = api;
    d->hooks = &hooks;
    d->vendor = vendor;
    d->limits = *limits;
    d->limits.features = features_used(limits->features, options);
    d->options = *options;
    d->peeks = !stream_device_has(d, STREAM_CONDITIONS) || !stream_device_has(d, STREAM_UPDATABLE);
    d->most_pending = limits->quirks.pending ? limits->quirks.pending : UINT64_MAX - 1;
    if (!d->limits.quirks.transfer_room) d->limits.quirks.transfer_room = 1;
    d->options.library = NULL; // the URI's, which goes
    d->pages = (pages_user_t){&stream_pages_ops, api, vendor, &d->lost,
                              .bytewise = !limits->quirks.locks_pages};
    d->blocks = (blocks_t){.ops = &stream_blocks_ops, .owner = d};
    d->generation = fork_generation();
    keel_status_t status = device_init(d);
    if (status) {
        device_destroy(&d->base);
        return status;
    }
    *device = &d->base;
    return NULL;
}
