// SPDX-License-Identifier: Apache-2.0
#include "kit/on.h"

// Counts so many as over. The last one tells.
static void on_resolve(on_t *on, uint32_t count, keel_device_t *device)
{
    // acq_rel: what the points stand for, and how they ended, is seen by the owner.
    if (atomic_fetch_sub_explicit(&on->left, count, memory_order_acq_rel) == count)
        on->ended(on, device);
}

// Unlinks what is still linked. The caller holds one count.
static void on_unlink(on_t *on)
{
    uint32_t removed = 0;
    for (uint32_t i = 0; i < on->count; i++)
        removed += point_unwatch(&on->entries[i].point, &on->entries[i].waiter);
    if (removed) on_resolve(on, removed, NULL); // not the last
}

static bool on_settle(on_t *on, on_fate_t fate)
{
    uint32_t open = ON_OPEN;
    return atomic_compare_exchange_strong(&on->fate, &open, fate);
}

// A point has ended. The caller holds a count.
static void on_note(on_t *on, keel_status_t failure)
{
    if (!failure && on->mode == KEEL_ALL) return;
    if (!on_settle(on, ON_DECIDED)) return;
    on->failure = keel_status_retain(failure);
    on_unlink(on);
}

static void on_fire(waiter_t *waiter, keel_status_t failure)
{
    const on_entry_t *entry = (const on_entry_t *)(void *)waiter;
    on_t *on = entry->on;
    on_note(on, failure);
    on_resolve(on, 1, entry->point.semaphore->device);
}

static void entries_init(on_t *on, keel_points_t points)
{
    for (size_t i = 0; i < points.count; i++) {
        keel_semaphore_retain(points.points[i].semaphore);
        on->entries[i] = (on_entry_t){
            .waiter = {.fire = on_fire, .asks = true}, .point = points.points[i], .on = on};
    }
}

void on_begin(on_t *on, keel_points_t points, keel_wait_mode_t mode, on_entry_t *entries,
              void (*ended)(on_t *, keel_device_t *))
{
    *on = (on_t){.mode = mode, .entries = entries, .ended = ended};
    entries_init(on, points);
    on->count = (uint32_t)points.count;
    atomic_init(&on->left, on->count + 1);
    uint32_t over = 1; // ourselves, and entries that are not linked
    for (uint32_t i = 0; i < on->count; i++) {
        keel_status_t failure = NULL;
        bool open = atomic_load(&on->fate) == ON_OPEN;
        if (open && point_watch(&entries[i].point, &entries[i].waiter, &failure) == POINT_PENDING)
            continue;
        if (open) on_note(on, failure);
        keel_status_release(failure);
        over++;
    }
    // Who decided it while we were linking may have missed the later ones.
    if (atomic_load(&on->fate) != ON_OPEN) on_unlink(on);
    on_resolve(on, over, on->count ? entries[0].point.semaphore->device : NULL);
}

bool on_pin(on_t *on)
{
    uint32_t left = atomic_load(&on->left);
    while (left && !atomic_compare_exchange_weak(&on->left, &left, left + 1)) {
    }
    return left != 0;
}

bool on_drop(on_t *on)
{
    bool dropped = on_settle(on, ON_DROPPED);
    if (dropped) on_unlink(on);
    on_resolve(on, 1, on->entries[0].point.semaphore->device);
    return dropped;
}

void on_release(on_t *on)
{
    for (uint32_t i = 0; i < on->count; i++) keel_semaphore_release(on->entries[i].point.semaphore);
}
