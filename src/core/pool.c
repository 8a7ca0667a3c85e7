// SPDX-License-Identifier: Apache-2.0
#include <keel/driver/driver.h>

#include "base/live.h"
#include "base/memory.h"
#include "core/check.h"
#include "core/device_ref.h"
#include "kit/behind.h"

// As below: blocks, the limit, and what happens there.
static keel_status_t limit_resolve(keel_device_t *device, keel_pool_options_t *options)
{
    uint64_t align = device->caps.buffer_alignment;
    CHECK(options->block_size % align == 0, KEEL_INVALID_ARGUMENT,
          "options->block_size is %llu, no multiple of %llu",
          (unsigned long long)options->block_size, (unsigned long long)align);
    CHECK(!options->limit || options->limit >= options->block_size, KEEL_INVALID_ARGUMENT,
          "options->limit is %llu, less than one block of %llu", (unsigned long long)options->limit,
          (unsigned long long)options->block_size);
    CHECK((unsigned)options->full <= KEEL_POOL_FAILS, KEEL_INVALID_ARGUMENT,
          "options->full is %u, which is none of keel_pool_full_t", (unsigned)options->full);
    if (!options->limit) {
        keel_memory_stats_t stats = {0};
        device->ops->device_memory(device, &stats);
        options->limit = stats.total;
        options->full = KEEL_POOL_FAILS;
    }
    return NULL;
}

// Fills in what the options leave open.
static keel_status_t options_resolve(keel_device_t *device, keel_pool_options_t *options)
{
    CHECK(options->node < device->caps.nodes, KEEL_OUT_OF_RANGE,
          "options->node is %u; the device has %u", options->node, device->caps.nodes);
    CHECK(!(options->usage & KEEL_USAGE_EXPORT), KEEL_UNSUPPORTED,
          "options->usage: buffers of pools cannot be exported");
    KEEL_TRY(check_flags("options->usage", options->usage, USAGE_ALL));
    KEEL_TRY(check_flags("options->memory", options->memory, MEMORY_ALL));
    uint32_t wanted = options->memory;
    options->memory = 0;
    for (int i = 0; i < 8 && !options->memory; i++)
        if ((device->caps.memory_types[i] & wanted) == wanted)
            options->memory = device->caps.memory_types[i];
    CHECK(options->memory, KEEL_UNSUPPORTED,
          "options->memory is 0x%x; the device has no such memory", wanted);
    if (!options->usage) options->usage = USAGE_DEFAULT;
    return limit_resolve(device, options);
}

static void pool_link(keel_pool_t *pool)
{
    keel_device_t *device = pool->device;
    lock_enter(device_lock(device));
    pool->link.next = device->all_pools;
    if (device->all_pools) device->all_pools->link.previous = pool;
    device->all_pools = pool;
    lock_leave(device_lock(device));
}

static void pool_unlink(keel_pool_t *pool)
{
    keel_device_t *device = pool->device;
    lock_enter(device_lock(device));
    if (pool->link.previous)
        pool->link.previous->link.next = pool->link.next;
    else
        device->all_pools = pool->link.next;
    if (pool->link.next) pool->link.next->link.previous = pool->link.previous;
    lock_leave(device_lock(device));
}

keel_status_t keel_pool_create(keel_device_t *device, const keel_pool_options_t *options,
                               keel_pool_t **pool)
{
    CHECK_NOT_NULL(pool);
    *pool = NULL;
    CHECK_NOT_NULL(device);
    KEEL_TRY(device_check(device));
    CHECK(device->caps.bits & KEEL_CAP_QUEUE_ALLOCA, KEEL_UNSUPPORTED,
          "the device has no KEEL_CAP_QUEUE_ALLOCA");
    keel_pool_options_t own = options ? *options : (keel_pool_options_t){0};
    KEEL_TRY(options_resolve(device, &own));
    char *name = NULL;
    KEEL_TRY(copy_name(own.name, &name));
    keel_pool_t *p = NULL;
    keel_status_t status = device->ops->pool_create(device, &own, &p);
    if (status) {
        mem_free(name);
        return status;
    }
    object_init(&p->object);
    own.name = NULL;
    p->options = own;
    p->name = name;
    p->info = (keel_pool_info_t){device, own};
    p->info.options.name = TEXT_OF(name);
    p->device = device;
    device_hold(device);
    live_add(LIVE_POOL, 1);
    pool_follow(p, behind_find);
    pool_link(p);
    *pool = p;
    return NULL;
}

keel_pool_t *keel_pool_retain(keel_pool_t *pool)
{
    if (pool) object_retain(&pool->object);
    return pool;
}

void keel_pool_release(keel_pool_t *pool)
{
    if (!pool || !object_release(&pool->object)) return;
    keel_device_t *device = pool->device;
    if (object_is_ours(&pool->object)) pool_unlink(pool);
    mem_free(pool->name);
    device->ops->pool_destroy(pool);
    live_add(LIVE_POOL, -1);
    device_drop(device);
}

const keel_pool_info_t *keel_pool_info(const keel_pool_t *pool)
{
    return &pool->info;
}

void keel_pool_stats(keel_pool_t *pool, keel_pool_stats_t *stats)
{
    *stats = (keel_pool_stats_t){.limit = pool->options.limit};
    if (object_is_ours(&pool->object)) pool->device->ops->pool_stats(pool, stats);
}

keel_status_t keel_pool_trim(keel_pool_t *pool, uint64_t keep)
{
    CHECK_NOT_NULL(pool);
    KEEL_TRY(device_check(pool->device));
    return pool->device->ops->pool_trim(pool, keep);
}
