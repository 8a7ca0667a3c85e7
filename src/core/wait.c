// SPDX-License-Identifier: Apache-2.0
#include "kit/wait.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/live.h"
#include "base/memory.h"
#include "base/notify.h"
#include "core/check.h"

enum { FEW = 8 }; // points that a wait takes without an allocation

static keel_status_t points_check(const keel_point_t *points, size_t count)
{
    CHECK(points || !count, KEEL_INVALID_ARGUMENT, "points is NULL, but count is %zu", count);
    CHECK(count < WAIT_COUNT, KEEL_INVALID_ARGUMENT,
          "count is %zu; at most %u points can be waited for", count, WAIT_COUNT - 1);
    for (size_t i = 0; i < count; i++) {
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
static bool points_are_past(const keel_point_t *points, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!point_is_past(points[i])) return false;
    return true;
}

static void entries_fill(wait_entry_t *entries, const keel_point_t *points, size_t count)
{
    for (size_t i = 0; i < count; i++) entries[i] = (wait_entry_t){.point = points[i]};
}

static keel_status_t wait_points(const keel_point_t *points, size_t count,
                                 const keel_wait_options_t *options, wait_entry_t *entries)
{
    wait_t wait;
    entries_fill(entries, points, count);
    wait_begin(&wait, options->mode, entries, count, -1);
    wait_sleep(&wait, options->deadline_ns ? options->deadline_ns : KEEL_FOREVER, options->spin_ns);
    return wait_end(&wait, options->index);
}

// Checks, and sees whether there is nothing to wait for.
static keel_status_t wait_check(const keel_point_t *points, size_t count, keel_wait_mode_t mode,
                                bool *over)
{
    CHECK(mode == KEEL_ALL || mode == KEEL_ANY, KEEL_INVALID_ARGUMENT,
          "mode is %d; it must be KEEL_ALL or KEEL_ANY", (int)mode);
    KEEL_TRY(points_check(points, count));
    *over = !count || (mode == KEEL_ALL && points_are_past(points, count));
    return NULL;
}

static keel_status_t wait_checked(const keel_point_t *points, size_t count,
                                  const keel_wait_options_t *options)
{
    if (count <= FEW) {
        wait_entry_t entries[FEW];
        return wait_points(points, count, options, entries);
    }
    wait_entry_t *entries = mem_alloc(count * sizeof *entries);
    if (!entries) return status_no_memory();
    keel_status_t status = wait_points(points, count, options, entries);
    mem_free(entries);
    return status;
}

keel_status_t keel_wait_with(const keel_point_t *points, size_t count,
                             const keel_wait_options_t *options)
{
    static const keel_wait_options_t defaults = {.mode = KEEL_ALL};
    bool over = false;
    if (!options) options = &defaults;
    KEEL_TRY(wait_check(points, count, options->mode, &over));
    return over ? NULL : wait_checked(points, count, options);
}

keel_status_t keel_wait(const keel_point_t *points, size_t count, keel_wait_mode_t mode,
                        uint64_t timeout_ns)
{
    keel_wait_options_t options = {.mode = mode};
    bool over = false;
    KEEL_TRY(wait_check(points, count, mode, &over));
    if (over) return NULL;
    // A deadline of 0 would be none; 1 is as long ago.
    if (timeout_ns != KEEL_FOREVER)
        options.deadline_ns = timeout_ns ? clock_deadline(timeout_ns) : 1;
    return wait_checked(points, count, &options);
}

struct keel_watch_t {
    wait_t wait;
    notify_t notify;
    uint32_t generation; // of fork
    size_t count;
    wait_entry_t entries[]; // semaphores retained
};

keel_status_t keel_watch_create(const keel_point_t *points, size_t count, keel_wait_mode_t mode,
                                keel_watch_t **watch)
{
    CHECK_NOT_NULL(watch);
    *watch = NULL;
    CHECK(mode == KEEL_ALL || mode == KEEL_ANY, KEEL_INVALID_ARGUMENT,
          "mode is %d; it must be KEEL_ALL or KEEL_ANY", (int)mode);
    KEEL_TRY(points_check(points, count));
    keel_watch_t *w = mem_zalloc(sizeof *w + count * sizeof w->entries[0]);
    if (!w) return status_no_memory();
    keel_status_t status = notify_init(&w->notify);
    if (status) {
        mem_free(w);
        return status;
    }
    w->generation = fork_generation();
    w->count = count;
    entries_fill(w->entries, points, count);
    for (size_t i = 0; i < count; i++) keel_semaphore_retain(points[i].semaphore);
    wait_begin(&w->wait, mode, w->entries, count, w->notify.write_fd);
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
