// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "drivers/stream/stream.h"
#include "kit/border.h"
#include "kit/object.h"

enum {
    KEEPER_NS = 10000000,
    KEEPER_SLOW_NS = 40000000, // watchers sleep for what comes next, or frees alone are left
    KEEPER_ROUNDS = 100,       // without work before the keeper goes to sleep
    DRAIN_NS = 5000000,
    DRAIN_ATTEMPTS = 200,
};

bool stream_device_is_ours(const stream_device_t *device)
{
    return fork_is_ours(device->generation);
}

KEEL_HOT bool stream_enter(stream_device_t *device, stream_entered_t *entered)
{
    bool lost = atomic_load_explicit(&device->lost, memory_order_relaxed);
    if (__builtin_expect(lost || !stream_device_is_ours(device), 0)) return false;
    entered->device = device;
    device->api->enter(device->vendor, &entered->before);
    return true;
}

KEEL_HOT void stream_leave(stream_entered_t *entered)
{
    entered->device->api->leave(&entered->before);
}

keel_status_t stream_device_lost(stream_device_t *device)
{
    // acquire: pairs with stream_device_lose.
    return keel_status_retain(atomic_load_explicit(&device->lost, memory_order_acquire));
}

// What each queue was at, as far as the host knows: on the device, or else waiting for something.
static keel_status_t lost_explain(stream_device_t *device, keel_status_t cause)
{
    const char *own_name = device->base.name ? device->base.name : device->api->driver;
    submission_names_t there = {.words = "first submissions not known complete: "};
    submission_names_t waiting = {.words = "waiting: "};
    for (stream_queue_t *q = stream_queue_next(device, NULL); q; q = stream_queue_next(device, q)) {
        lock_enter(&q->lock);
        const stream_event_t *event = q->flight;
        while (event && !event->runs) event = event->next; // of frees alone
        uint64_t id = event ? event->runs->base.id : atomic_load(&q->at);
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

void stream_device_lose(stream_device_t *device, keel_status_t cause)
{
    keel_status_t none = NULL;
    bool first = !stream_device_is_lost(device);
    if (first) cause = status_as(lost_explain(device, cause), KEEL_DEVICE_LOST); // whatever it was
    // release: pairs with stream_device_lost.
    if (!first || !atomic_compare_exchange_strong(&device->lost, &none, cause)) {
        keel_status_release(cause);
        return;
    }
    log_say(KEEL_LOG_ERROR, "%s", keel_status_message(cause));
    stream_pools_break(device); // first: not for want of deallocas, which end, too
    device_end(&device->base, keel_status_retain(cause), lost_settle);
}

keel_status_t stream_device_note(stream_device_t *device, keel_status_t status)
{
    if (__builtin_expect(!status, 1)) return NULL;
    keel_status_t lost = stream_device_lost(device);
    if (lost) {
        keel_status_release(status);
        return lost;
    }
    if (keel_status_code(status) != KEEL_DEVICE_LOST) return status;
    stream_device_lose(device, status);
    return stream_device_lost(device);
}

keel_status_t stream_device_drain(stream_device_t *device, stream_h stream)
{
    for (int left = DRAIN_ATTEMPTS;; left--) {
        if (stream_device_is_lost(device)) return stream_device_lost(device); // it stays so
        keel_status_t status = device->api->stream_drain(device->vendor, stream);
        if (!status || keel_status_code(status) == KEEL_DEVICE_LOST) return status;
        const char *silent = "nobody can say whether work has ended";
        if (!left) return status_as(keel_status_wrap(status, "%s", silent), KEEL_DEVICE_LOST);
        keel_status_release(status);
        clock_sleep(DRAIN_NS);
    }
}

// Work that nobody waits for ends too, if a little later: its buffers and memory must come back.
static uint64_t device_keep(void *argument)
{
    stream_device_t *device = argument;
    bool alone;
    stream_queues_bury(device);
    if (atomic_load(&device->active)) {
        bool busy = stream_queues_poll(device, &alone);
        device->idle_rounds = busy ? 0 : device->idle_rounds + 1;
        stream_pools_relieve(device, busy);
        if (device->idle_rounds < KEEPER_ROUNDS || stream_events_shed(device))
            return clock_deadline(busy && !alone ? KEEPER_SLOW_NS : KEEPER_NS);
        device->idle_rounds = 0;
        atomic_store(&device->active, 0);
        busy = stream_queues_poll(device, &alone); // what came just before is not to be forgotten
        if (busy && !atomic_exchange(&device->active, 1)) return clock_deadline(KEEPER_NS);
    }
    return KEEL_FOREVER;
}

static void device_close(keel_device_t *base)
{
    stream_device_t *device = stream_device(base);
    helper_stop(&device->keeper);
    helper_stop(&device->issuer);
    border_close(atomic_load(&device->border));
    stream_queues_stop(device);
    chores_stop(&device->chores);
}

static void device_destroy(keel_device_t *base)
{
    stream_device_t *device = stream_device(base);
    bool ours = stream_device_is_ours(device);
    stream_entered_t entered;
    if (!ours) device->lock = device->blocks.lock = (lock_t){0}; // whoever held them is not here
    blocks_destroy(&device->blocks);
    stream_onces_destroy(device);
    if (ours && stream_enter(device, &entered)) {
        stream_blanks_destroy(device);
        stream_builtins_unload(device);
        stream_leave(&entered);
    }
    stream_events_destroy(device, UINT32_MAX);
    if (ours) border_destroy(atomic_load(&device->border));
    aio_destroy(device->aio);
    if (ours) pages_close(&device->pages);
    keel_status_release(atomic_load(&device->lost));
    keel_status_release(atomic_load(&device->base.ended)); // if it was lost only now, or half open
    mem_free(device);
}

static void device_memory(keel_device_t *base, keel_memory_stats_t *stats)
{
    stream_device_t *device = stream_device(base);
    stream_entered_t entered;
    stats->total = device->limits.memory; // which holds also when the device is lost
    if (!stream_enter(device, &entered)) return;
    stats->used += stream_pools_reserved(device);
    if (stats->peak < stats->used) stats->peak = stats->used;
    stats->budget = device->api->memory(device->vendor);
    stream_leave(&entered);
}

static keel_device_ops_t ops_of(const stream_device_t *device)
{
    keel_device_ops_t ops = {
        .device_close = device_close,
        .device_destroy = device_destroy,
        .device_clock = stream_device_clock,
        .device_memory = device_memory,
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
    return ops;
}

// What the host does in place of the device: files and calls always, the rest where the vendor
// lacks a feature.
static uint32_t caps_emulated(const stream_device_t *device)
{
    uint32_t bits = KEEL_CAP_FILES | KEEL_CAP_HOST_CALLS;
    if (!stream_device_has(device, STREAM_POOLS)) bits |= KEEL_CAP_QUEUE_ALLOCA;
    if (!stream_device_has(device, STREAM_CONDITIONS)) bits |= KEEL_CAP_BRANCHES;
    if (!stream_device_has(device, STREAM_UPDATABLE)) bits |= KEEL_CAP_DYNAMIC_COUNTS;
    return bits;
}

static void caps_fill(stream_device_t *device)
{
    const stream_limits_t *limits = &device->limits;
    uint32_t local = KEEL_MEMORY_DEVICE_LOCAL | KEEL_MEMORY_DEVICE_VISIBLE;
    uint32_t host = KEEL_MEMORY_HOST_VISIBLE | KEEL_MEMORY_HOST_COHERENT | KEEL_MEMORY_HOST_CACHED;
    keel_caps_t *caps = &device->base.caps;
    // The most urgent level is the machine's own (watch.c), if there are several.
    int32_t levels = limits->least - limits->greatest;
    if (levels) levels--;
    device_dlpack(&limits->dlpack, device->dlpack);
    *caps = (keel_caps_t){
        .bits = KEEL_CAP_QUEUE_ALLOCA | KEEL_CAP_DYNAMIC_COUNTS | KEEL_CAP_BRANCHES |
                KEEL_CAP_EVENTS | KEEL_CAP_TIMESTAMPS | KEEL_CAP_RAW_ARGUMENTS | KEEL_CAP_FILES |
                KEEL_CAP_HOST_CALLS | KEEL_CAP_IMPORT_HOST | KEEL_CAP_DLPACK | KEEL_CAP_GROUP_SIZE |
                KEEL_CAP_EXECUTES,
        .queue_families = 1u << KEEL_QUEUE_COMPUTE | 1u << KEEL_QUEUE_TRANSFER,
        .min_priority = -(levels / 2),
        .max_priority = levels - levels / 2,
        .nodes = 1,
        .workers = limits->processors,
        .max_bindings = STREAM_MAX_BINDINGS,
        .max_slots = 1024,
        .max_constants = STREAM_MAX_CONSTANTS,
        .max_arguments = limits->max_arguments,
        .max_group_size = limits->max_group_size,
        .max_group_sizes = {limits->max_group_sizes[0], limits->max_group_sizes[1],
                            limits->max_group_sizes[2]},
        .subgroup_size = limits->subgroup_size,
        .max_local_memory = limits->max_local_memory,
        .max_groups = UINT32_MAX,
        .max_group_counts = {limits->max_group_counts[0], limits->max_group_counts[1],
                             limits->max_group_counts[2]},
        .max_buffer_size = limits->memory,
        .buffer_alignment = STREAM_ALIGNMENT,
        .max_commands = 1u << 24,
        .max_depth = STREAM_MAX_DEPTH,
        .memory_types = {local, KEEL_MEMORY_DEVICE_VISIBLE | host,
                         stream_device_has(device, STREAM_MANAGED) ? local | host : 0},
        .dlpack = device->dlpack,
    };
    if (stream_device_has(device, STREAM_SHARED)) caps->bits |= KEEL_CAP_EXPORT_FD;
    if (stream_device_has(device, STREAM_OUTSIDE)) caps->bits |= KEEL_CAP_IMPORT_SEMAPHORE;
    caps->native = caps->bits & ~caps_emulated(device);
}

static keel_status_t device_init(stream_device_t *device)
{
    KEEL_TRY(stream_api_check(device->api, device->limits.features));
    device->ops = ops_of(device);
    device->base.ops = &device->ops;
    snprintf(device->base.target, sizeof device->base.target, "%s", device->limits.target);
    snprintf(device->base.hardware, sizeof device->base.hardware, "%s", device->limits.name);
    device->modules = (cache_t){.class = &stream_module_class, .owner = device};
    helper_init(&device->keeper, "keel-keeper", device_keep, device);
    helper_init(&device->issuer, "keel-issue", stream_queues_issue, device);
    chores_init(&device->chores, "keel-free", stream_may_free, device);
    caps_fill(device);
    KEEL_TRY(aio_create(&device->aio));
    stream_entered_t entered;
    if (!stream_enter(device, &entered)) return stream_device_lost(device);
    keel_status_t status = stream_builtins_load(device);
    if (!status) stream_blanks_make(device, device->limits.quirks.launch_graphs);
    stream_leave(&entered);
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
        api->close(vendor);
        return status_no_memory();
    }
    d->api = api;
    d->vendor = vendor;
    d->limits = *limits;
    d->limits.features = features_used(limits->features, options);
    d->options = *options;
    d->peeks = !stream_device_has(d, STREAM_CONDITIONS) || !stream_device_has(d, STREAM_UPDATABLE);
    d->most_pending = limits->quirks.pending ? limits->quirks.pending : UINT64_MAX - 1;
    d->options.library = NULL; // the URI's, which goes
    d->pages = (pages_user_t){&stream_pages_ops, api, vendor, &d->lost};
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
