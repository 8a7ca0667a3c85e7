// SPDX-License-Identifier: Apache-2.0
#include "kit/wait.h"

#include "base/clock.h"
#include "base/memory.h"
#include "core/check.h"
#include "trace/event.h"

enum { FEW = 8 }; // points that a wait takes without an allocation

static keel_status_t points_check(keel_points_t list)
{
    const keel_point_t *points = list.points;
    CHECK(points || !list.count, KEEL_INVALID_ARGUMENT, "points is NULL, but count is %zu",
          list.count);
    CHECK(list.count < WAIT_COUNT, KEEL_INVALID_ARGUMENT,
          "count is %zu; at most %u points can be waited for", list.count, WAIT_COUNT - 1);
    for (size_t i = 0; i < list.count; i++) KEEL_TRY(point_check(&points[i], "points", i));
    return NULL;
}

// The common case, without any lock.
static bool points_are_past(keel_points_t list)
{
    for (size_t i = 0; i < list.count; i++)
        if (!point_is_past(&list.points[i])) return false;
    return true;
}

static void entries_fill(wait_entry_t *entries, keel_points_t list)
{
    for (size_t i = 0; i < list.count; i++) entries[i] = (wait_entry_t){.point = list.points[i]};
}

keel_status_t wait_check(keel_points_t points, keel_wait_mode_t mode)
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
    wait_begin(&wait, mode, entries, points.count);
    wait_sleep(&wait, deadline_ns, options ? options->spin_ns : 0);
    return wait_end(&wait, options ? options->index : NULL);
}

// The rest of keel_wait_with, so that a wait for what is past needs no room for entries.
__attribute__((noinline)) static keel_status_t wait_pending(keel_points_t points,
                                                            keel_wait_mode_t mode,
                                                            uint64_t timeout_ns,
                                                            const keel_wait_options_t *options)
{
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

KEEL_COLD __attribute__((noinline)) static keel_status_t
wait_traced(keel_points_t points, keel_wait_mode_t mode, uint64_t timeout_ns,
            const keel_wait_options_t *options)
{
    uint64_t start = trace_now();
    keel_status_t status = wait_pending(points, mode, timeout_ns, options);
    trace_wait(start, points.count, status);
    return status;
}

keel_status_t keel_wait_with(keel_points_t points, keel_wait_mode_t mode, uint64_t timeout_ns,
                             const keel_wait_options_t *options)
{
    KEEL_TRY(wait_check(points, mode));
    if (!points.count || (mode == KEEL_ALL && points_are_past(points))) return NULL;
    if (trace_is_on()) return wait_traced(points, mode, timeout_ns, options);
    return wait_pending(points, mode, timeout_ns, options);
}
