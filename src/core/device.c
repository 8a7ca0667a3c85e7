// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/live.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/shared_page.h"
#include "base/thread.h"
#include "core/check.h"
#include "core/device_ref.h"
#include "core/registry.h"
#include "core/uri.h"
#include "kit/across.h"
#include "kit/chores.h"
#include "kit/ledger.h"
#include "kit/submission.h"
#include "kit/view.h"
#include "kit/wait.h"

keel_status_t keel_device_list(const char *driver, keel_device_listing_t *devices, size_t capacity,
                               size_t *count)
{
    CHECK_NOT_NULL(count);
    CHECK(devices || !capacity, KEEL_INVALID_ARGUMENT, "devices is NULL, but capacity is %zu",
          capacity);
    *count = 0;
    if (driver) {
        const keel_driver_t *found = NULL;
        KEEL_TRY(registry_find(driver, &found));
        return found->list(devices, capacity, count);
    }
    const keel_driver_t *d;
    for (size_t i = 0; (d = registry_at(i)); i++) {
        size_t more = 0, room = capacity > *count ? capacity - *count : 0;
        KEEL_TRY(d->list(room ? devices + *count : NULL, room, &more));
        *count += more;
    }
    return NULL;
}

// The queue and the pool that each node starts with.
static keel_status_t device_furnish(keel_device_t *device)
{
    uint32_t nodes = device->caps.nodes;
    device->queues =
        mem_zalloc((nodes + 1) * sizeof(keel_queue_t *)); // one more, so that a NULL ends both
    device->pools = mem_zalloc((nodes + 1) * sizeof(keel_pool_t *));
    if (!device->queues || !device->pools) return status_no_memory();
    for (uint32_t node = 0; node < nodes; node++) {
        char name[16] = "queue ";
        name[6] = (char)('0' + node % 10);
        keel_queue_options_t queue = {.node = node, .name = name};
        KEEL_TRY(keel_queue_create(device, &queue, &device->queues[node]));
        if (!(device->caps.bits & KEEL_CAP_QUEUE_ALLOCA)) continue;
        keel_pool_options_t pool = {.node = node, .name = "default"};
        KEEL_TRY(keel_pool_create(device, &pool, &device->pools[node]));
    }
    return NULL;
}

static keel_status_t device_init(keel_device_t *device, const char *uri,
                                 const keel_device_options_t *options)
{
    KEEL_TRY(copy_name(uri, &device->uri));
    KEEL_TRY(copy_name(options && options->name ? options->name : uri, &device->name));
    device->info.uri = device->uri;
    device->info.name = device->name;
    return device_furnish(device);
}

// Takes back what a driver has opened that is not whole.
static void device_refuse(keel_device_t *device)
{
    const keel_device_ops_t *ops = device ? device->ops : NULL;
    if (ops && ops->device_close) ops->device_close(device);
    if (ops && ops->device_destroy) ops->device_destroy(device);
}

keel_status_t keel_device_open(const char *uri, const keel_device_options_t *options,
                               keel_device_t **device)
{
    CHECK_NOT_NULL(device);
    *device = NULL;
    CHECK_NOT_NULL(uri);
    uri_t parsed;
    const keel_driver_t *driver = NULL;
    KEEL_TRY(uri_parse(uri, &parsed));
    KEEL_TRY(registry_find(parsed.driver, &driver));

    keel_device_t *d = NULL;
    KEEL_TRY(driver->open(&parsed.parts, &d));
    keel_status_t status = registry_check_device(driver, d);
    if (status) {
        device_refuse(d);
        return status;
    }
    fork_generation();
    if (shared_page_is_supported()) d->caps.bits |= KEEL_CAP_SHARED_SEMAPHORE;
    object_init(&d->object);
    atomic_init(&d->users, 1);
    live_add(LIVE_DEVICE, 1);
    status = device_init(d, uri, options);
    if (status) {
        keel_device_release(d);
        return status;
    }
    *device = d;
    return NULL;
}

keel_device_t *keel_device_retain(keel_device_t *device)
{
    if (device) atomic_fetch_add_explicit(&device->users, 1, memory_order_relaxed);
    return device;
}

static keel_status_t queue_drain(keel_queue_t *queue, uint64_t deadline_ns)
{
    wait_t wait;
    wait_entry_t entry = {.point = keel_ended(keel_up_to(keel_queue_newest(queue)))};
    wait_begin(&wait, KEEL_ALL, &entry, 1);
    wait_sleep(&wait, deadline_ns, 0);
    return wait_end(&wait, NULL);
}

static void device_unfurnish(keel_device_t *device)
{
    for (uint32_t i = 0; device->queues && i < device->caps.nodes; i++)
        keel_queue_release(device->queues[i]);
    for (uint32_t i = 0; device->pools && i < device->caps.nodes; i++)
        keel_pool_release(device->pools[i]);
    device_drop_staging(device);
}

// Waits for all that runs, and has the driver give up its threads. What came in before the queue
// was closed, and too late for device_end to see, is asked to end here.
static void device_settle(keel_device_t *device)
{
    for (keel_queue_t *q = device_next_queue(device, NULL); q; q = device_next_queue(device, q)) {
        ledger_close(q->timeline);
        submission_cancel_all(q, atomic_load(&device->ended));
    }
    for (keel_queue_t *q = device_next_queue(device, NULL); q; q = device_next_queue(device, q))
        keel_status_release(queue_drain(q, KEEL_FOREVER));
    device_wait_alone(device);
    views_close(device);
    device->ops->device_close(device);
}

static void *device_close(void *argument)
{
    keel_device_t *device = argument;
    keel_status_t cause =
        KEEL_ERROR(KEEL_CANCELLED, "device '%s' was closed", TEXT_OF(device->name));
    device_end(device, cause, device_settle);
    chores_t *calls = atomic_load(&device->calls);
    if (calls) chores_stop(calls); // with those that the end has made due
    device_unfurnish(device);
    device_drop(device);
    return NULL;
}

void keel_device_release(keel_device_t *device)
{
    // acq_rel: the last one sees what the others did.
    if (!device || atomic_fetch_sub_explicit(&device->users, 1, memory_order_acq_rel) != 1) return;
    if (!object_is_ours(&device->object)) {
        device_unfurnish(device);
        device_drop(device);
        return;
    }
    lock_enter(device_lock(device));
    atomic_store(&device->closed, true); // under the lock: no queue is added from here on
    lock_leave(device_lock(device));
    if (!submission_is_inside(device)) {
        device_close(device);
    } else if (!thread_detach("keel-close", device_close, device)) {
        // A call of the device's own work cannot wait for that work to end; a thread of its own
        // could have.
        log_say(KEEL_LOG_ERROR,
                "device '%s' stays open: there is no thread to close it from a host call",
                device->name);
    }
}

const keel_device_info_t *keel_device_info(const keel_device_t *device)
{
    return &device->info;
}

// The lesser of two rates, of those that are known.
static uint64_t rate_least(uint64_t one, uint64_t other)
{
    if (!one || !other) return one ? one : other;
    return one < other ? one : other;
}

keel_status_t keel_device_reach(keel_device_t *device, keel_device_t *other, keel_reach_t *reach)
{
    CHECK_NOT_NULL(device);
    CHECK_NOT_NULL(other);
    CHECK_NOT_NULL(reach);
    KEEL_TRY(device_check(device));
    KEEL_TRY(device_check(other));
    keel_reach_how_t how = device_reach(device, other);
    bool by_host = how == KEEL_REACH_STAGED || how == KEEL_REACH_HOST;
    *reach = (keel_reach_t){
        .how = how,
        .bandwidth = by_host ? rate_least(device->info.link, other->info.link) : 0,
    };
    return NULL;
}

const keel_caps_t *keel_device_caps(const keel_device_t *device)
{
    return &device->caps;
}

keel_queue_t *keel_device_queue(keel_device_t *device, size_t index)
{
    return device && index < device->caps.nodes ? device->queues[index] : NULL;
}

keel_pool_t *keel_device_pool(keel_device_t *device, size_t node)
{
    return device && node < device->caps.nodes ? device->pools[node] : NULL;
}

keel_status_t keel_device_wait_idle(keel_device_t *device, uint64_t timeout_ns)
{
    CHECK_NOT_NULL(device);
    KEEL_TRY(device_check(device));
    uint64_t deadline_ns = clock_deadline(timeout_ns);
    for (keel_queue_t *q = device_next_queue(device, NULL); q; q = device_next_queue(device, q)) {
        keel_status_t status = queue_drain(q, deadline_ns);
        if (status) {
            keel_queue_release(q);
            return status;
        }
    }
    return NULL;
}

keel_status_t keel_device_clock(keel_device_t *device, keel_clock_pair_t *pair)
{
    CHECK_NOT_NULL(device);
    CHECK_NOT_NULL(pair);
    KEEL_TRY(device_check(device));
    uint64_t before = keel_now_ns(), there = 0;
    if (device->ops->device_clock)
        KEEL_TRY(device->ops->device_clock(device, &there));
    else
        there = keel_now_ns();
    uint64_t after = keel_now_ns();
    *pair = (keel_clock_pair_t){
        .host_ns = before + (after - before) / 2,
        .device_ns = there,
        .error_ns = (after - before + 1) / 2,
    };
    return NULL;
}

keel_status_t keel_device_memory(keel_device_t *device, keel_memory_stats_t *stats)
{
    CHECK_NOT_NULL(device);
    CHECK_NOT_NULL(stats);
    KEEL_TRY(device_check(device));
    *stats = (keel_memory_stats_t){
        .used = atomic_load(&device->used),
        .peak = atomic_load(&device->peak),
        .buffers = atomic_load(&device->buffers),
    };
    device->ops->device_memory(device, stats);
    return NULL;
}
