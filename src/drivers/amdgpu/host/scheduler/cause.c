// SPDX-License-Identifier: Apache-2.0
// Why something failed, by numbers that the GPU passes on. It takes a number from a cell that a
// record waits for, or from the record's `cancel`, and puts it into cells that the record signals.
// A submission keeps its semaphores, and is listed until the GPU is done with it. So a number that
// neither a cell nor a listed record has is free, and stands for another cause later.
#include "base/memory.h"
#include "base/status.h"
#include "drivers/amdgpu/host/scheduler/scheduler.h"

enum { CAUSES = 16 }; // that there is room for at first

struct amdgpu_cause_t {
    keel_status_t status; // owned; NULL: the number is free
    bool held;
};

keel_status_t amdgpu_causes_init(amdgpu_scheduler_t *s)
{
    s->causes = mem_zalloc(CAUSES * sizeof *s->causes);
    if (!s->causes) return status_no_memory();
    s->cause_capacity = CAUSES;
    s->causes[0].status = status_no_memory(); // where there is none for a cause
    return NULL;
}

void amdgpu_causes_free(amdgpu_scheduler_t *s)
{
    for (uint64_t i = 0; i < s->cause_capacity; i++) keel_status_release(s->causes[i].status);
    mem_free(s->causes);
}

static void number_hold(amdgpu_scheduler_t *s, const uint64_t *number)
{
    // relaxed: what a listed record has not written yet, another one of these words has as well.
    uint64_t held = PROTOCOL_LOAD(number, __ATOMIC_RELAXED);
    if (held) s->causes[held - 1].held = true;
}

// Under the lock, as all below that is not said to take it. How many are left.
static uint64_t causes_sweep(amdgpu_scheduler_t *s)
{
    const uint64_t first = 1; // which stays
    uint64_t left = 0;
    for (const amdgpu_cell_t *c = s->cells; c; c = c->next) number_hold(s, &c->cell->cause);
    for (const amdgpu_run_t *run = s->runs; run; run = run->flight.next) {
        number_hold(s, &run->record->cancel);
        number_hold(s, &run->record->cause);
    }
    number_hold(s, &first);
    for (uint64_t i = 0; i < s->cause_capacity; i++) {
        amdgpu_cause_t *cause = &s->causes[i];
        if (!cause->held) {
            keel_status_release(cause->status);
            cause->status = NULL;
        }
        left += cause->held;
        cause->held = false;
    }
    s->cause_next = 0;
    return left;
}

static void causes_grow(amdgpu_scheduler_t *s)
{
    uint64_t capacity = 2 * s->cause_capacity;
    amdgpu_cause_t *causes = mem_resize(s->causes, capacity * sizeof *causes);
    if (!causes) return;
    for (uint64_t i = s->cause_capacity; i < capacity; i++) causes[i] = (amdgpu_cause_t){0};
    s->causes = causes;
    s->cause_capacity = capacity;
}

// False: there is none.
static bool number_find(amdgpu_scheduler_t *s)
{
    while (s->cause_next < s->cause_capacity && s->causes[s->cause_next].status) s->cause_next++;
    return s->cause_next < s->cause_capacity;
}

uint64_t amdgpu_cause_note(amdgpu_scheduler_t *s, keel_status_t cause)
{
    if (!number_find(s) && causes_sweep(s) > s->cause_capacity / 2) causes_grow(s);
    if (!number_find(s)) return 1;
    s->causes[s->cause_next].status = keel_status_retain(cause);
    return ++s->cause_next;
}

void amdgpu_cell_fail(amdgpu_device_t *device, cell_t *cell, keel_status_t cause)
{
    amdgpu_scheduler_t *s = device->scheduler;
    lock_enter(&s->lock);
    cell_fail(cell, amdgpu_cause_note(s, cause));
    lock_leave(&s->lock);
}

keel_status_t amdgpu_cause_get(amdgpu_device_t *device, uint64_t number)
{
    amdgpu_scheduler_t *s = device->scheduler;
    if (!number) return NULL;
    lock_enter(&s->lock);
    keel_status_t cause = keel_status_retain(s->causes[number - 1].status);
    lock_leave(&s->lock);
    return cause;
}

void amdgpu_cell_list(amdgpu_scheduler_t *s, amdgpu_cell_t *cell)
{
    lock_enter(&s->lock);
    cell->next = s->cells;
    cell->link = &s->cells;
    if (cell->next) cell->next->link = &cell->next;
    s->cells = cell;
    lock_leave(&s->lock);
}

void amdgpu_cell_unlist(amdgpu_scheduler_t *s, amdgpu_cell_t *cell)
{
    lock_enter(&s->lock);
    *cell->link = cell->next;
    if (cell->next) cell->next->link = cell->link;
    if (!s->cells) causes_sweep(s);
    lock_leave(&s->lock);
}
