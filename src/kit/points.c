// SPDX-License-Identifier: Apache-2.0
#include "kit/points.h"

#include "base/memory.h"
#include "kit/semaphore.h"

// A hash table, of which half is always free.
typedef struct table_t {
    keel_point_t *slots;
    uint32_t capacity; // a power of two
} table_t;

static table_t points_table(const points_t *points)
{
    if (points->many) return (table_t){points->many, points->capacity};
    return (table_t){(keel_point_t *)(uintptr_t)points->few, POINTS_FEW};
}

// Where the point is, or is to be.
static keel_point_t *table_slot(table_t table, const keel_semaphore_t *semaphore, uint64_t value)
{
    uint64_t hash = ((uintptr_t)semaphore >> 6 ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    for (uint32_t i = (uint32_t)(hash >> 32);; i++) {
        keel_point_t *slot = &table.slots[i & (table.capacity - 1)];
        if (!slot->semaphore || (slot->semaphore == semaphore && slot->value == value)) return slot;
    }
}

static bool points_have(const points_t *points, const keel_semaphore_t *semaphore, uint64_t value)
{
    return table_slot(points_table(points), semaphore, value)->semaphore;
}

static bool points_grow(points_t *points)
{
    table_t old = points_table(points), larger = {.capacity = old.capacity * 2};
    larger.slots = mem_zalloc(larger.capacity * sizeof *larger.slots);
    if (!larger.slots) return false;
    for (const keel_point_t *p = old.slots; p < old.slots + old.capacity; p++)
        if (p->semaphore) *table_slot(larger, p->semaphore, p->value) = *p;
    mem_free(points->many);
    points->many = larger.slots;
    points->capacity = larger.capacity;
    return true;
}

static void points_put(points_t *points, keel_semaphore_t *semaphore, uint64_t value)
{
    if (points->count >= points_table(points).capacity / 2 && !points_grow(points)) {
        points->failed = true;
        return;
    }
    keel_point_t *slot = table_slot(points_table(points), semaphore, value);
    points->count += !slot->semaphore;
    *slot = (keel_point_t){.semaphore = semaphore, .value = value};
}

void points_add(points_t *points, const keel_submission_t *submission)
{
    points_put(points, submission->queue->timeline, submission->id);
    for (uint32_t i = 0; i < submission->signal_count; i++) {
        const keel_point_t *point = &submission->signals[i].point;
        points_put(points, point->semaphore, point->value);
    }
}

bool points_of(const points_t *points, const keel_submission_t *submission)
{
    return points_have(points, submission->queue->timeline, submission->id);
}

bool points_serve(const points_t *points, const keel_point_t *point)
{
    bool all = point->until & KEEL_UP_TO && !point->semaphore->ops->signal; // of a queue
    if (!all) return points_have(points, point->semaphore, point->value);
    table_t table = points_table(points);
    for (const keel_point_t *p = table.slots; p < table.slots + table.capacity; p++)
        if (p->semaphore == point->semaphore && p->value <= point->value) return true;
    return false;
}

void points_clear(points_t *points)
{
    mem_free(points->many);
    *points = (points_t){0};
}
