// SPDX-License-Identifier: Apache-2.0
#include "kit/wait.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/live.h"
#include "base/memory.h"
#include "base/notify.h"
#include "core/check.h"

enum { FEW = 8 }; // points that a wait takes without an allocation

static keel_status_t points_check(keel_points_t list)
{
    const keel_point_t *points = list.points;
    CHECK(points || !list.count, KEEL_INVALID_ARGUMENT, "points is NULL, but count is %zu",
          list.count);
    CHECK(list.count < WAIT_COUNT, KEEL_INVALID_ARGUMENT,
          "count is %zu; at most %u points can be waited for", list.count, WAIT_COUNT - 1);
    for (size_t i = 0; i < list.count; i++) {
        CHECK(points[i].semaphore, KEEL_INVALID_ARGUMENT, "points[%zu].semaphore is NULL", i);
        CHECK(object_is_ours(&points[i].semaphore->object), KEEL_DEVICE_LOST,
              "points[%zu]: the semaphore was made before fork and stayed with the parent process",
              i);
        CHECK(point_exists(points[i]), KEEL_INVALID_ARGUMENT,
              "points[%zu]: the queue has no submission %llu yet", i,
              (unsigned long long)points[i].value);
    }
    return NULL;
}

// The common case, without any lock.
static bool points_are_past(keel_points_t list)
{
    for (size_t i = 0; i < list.count; i++)
        if (!point_is_past(list.points[i])) return false;
    return true;
}

static void entries_fill(wait_entry_t *entries, keel_points_t list)
{
    for (size_t i = 0; i < list.count; i++) entries[i] = (wait_entry_t){.point = list.points[i]};
}

static keel_status_t wait_check(keel_points_t points, keel_wait_mode_t mode)
{
    CHECK(mode == KEEL_ALL || mode == KEEL_ANY, KEEL_INVALID_ARGUMENT,
          "mode is %d; it must be KEEL_ALL or KEEL_ANY", (int)mode);
    return points_check(points);
}

static keel_status_t wait_points(keel_points_t points, keel_wait_mode_t mode, uint64_t timeout_ns,
                                 const keel_wait_options_t *options, wait_entry_t *entries)
{
    wait_t wait;
    uint64_t deadline_ns = timeout_ns ? clock_deadline(timeout_ns) : 0;
    entries_fill(entries, points);
    wait_begin(&wait, mode, entries, points.count, -1);
    wait_sleep(&wait, deadline_ns, options ? options->spin_ns : 0);
    return wait_end(&wait, options ? options->index : NULL);
}

keel_status_t keel_wait_with(keel_points_t points, keel_wait_mode_t mode, uint64_t timeout_ns,
                             const keel_wait_options_t *options)
{
    KEEL_TRY(wait_check(points, mode));
    if (!points.count || (mode == KEEL_ALL && points_are_past(points))) return NULL;
    if (points.count <= FEW) {
        wait_entry_t entries[FEW];
        return wait_points(points, mode, timeout_ns, options, entries);
    }
    wait_entry_t *entries = mem_alloc(points.count * sizeof *entries);
    if (!entries) return status_no_memory();
    keel_status_t status = wait_points(points, mode, timeout_ns, options, entries);
    mem_free(entries);
    return status;
}

struct keel_watch_t {
    wait_t wait;
    notify_t notify;
    uint32_t generation; // of fork
    size_t count;
    wait_entry_t entries[]; // semaphores retained
};

keel_status_t keel_watch_create(keel_points_t points, keel_wait_mode_t mode, keel_watch_t **watch)
{
    CHECK_NOT_NULL(watch);
    *watch = NULL;
    KEEL_TRY(wait_check(points, mode));
    keel_watch_t *w = mem_zalloc(sizeof *w + points.count * sizeof w->entries[0]);
    if (!w) return status_no_memory();
    keel_status_t status = notify_init(&w->notify);
    if (status) {
        mem_free(w);
        return status;
    }
    w->generation = fork_generation();
    w->count = points.count;
    entries_fill(w->entries, points);
    for (size_t i = 0; i < w->count; i++) keel_semaphore_retain(points.points[i].semaphore);
    wait_begin(&w->wait, mode, w->entries, w->count, w->notify.write_fd);
    live_add(LIVE_WATCH, 1);
    *watch = w;
    return NULL;
}

int keel_watch_fd(const keel_watch_t *watch)
{
    return watch->notify.read_fd;
}

void keel_watch_release(keel_watch_t *watch)
{
    if (!watch) return;
    if (fork_is_ours(watch->generation)) keel_status_release(wait_end(&watch->wait, NULL));
    for (size_t i = 0; i < watch->count; i++)
        keel_semaphore_release(watch->entries[i].point.semaphore);
    notify_finish(&watch->notify);
    mem_free(watch);
    live_add(LIVE_WATCH, -1);
}
