// SPDX-License-Identifier: Apache-2.0
// Records that wait, by the cells that they wait for: a tick looks at the cells that have changed,
// and at who waits for them, and at nothing else. Lists of waiters are the tick's own; the list of
// cells that have changed is not.
#ifndef KEEL_SRC_DRIVERS_AMDGPU_DEVICE_WAITER_H_
#define KEEL_SRC_DRIVERS_AMDGPU_DEVICE_WAITER_H_

#include "drivers/amdgpu/device/protocol.h"

static inline uint64_t *wait_after(cell_side_t *side, uint64_t before)
{
    return before ? &PROTOCOL_AT(wait_t, before)->next : &side->waiters;
}

static inline uint64_t *wait_before(cell_side_t *side, uint64_t after)
{
    return after ? &PROTOCOL_AT(wait_t, after)->previous : &side->last;
}

// The first of the list is another one.
static inline void side_want(cell_side_t *side)
{
    uint64_t wanted = PROTOCOL_NOBODY;
    if (side->waiters) wanted = PROTOCOL_AT(wait_t, side->waiters)->value;
    // relaxed: who makes it less has a fence behind it; who sees it too small only asks for a tick.
    PROTOCOL_STORE(&side->wanted, wanted, __ATOMIC_RELAXED);
}

// Those that wait for less come first; of equals, the one that came first. Most often that is the
// end, so it is looked for from there.
static inline void wait_link(wait_t *wait)
{
    cell_side_t *side = PROTOCOL_AT(cell_side_t, wait->side);
    uint64_t before = side->last;
    while (before && PROTOCOL_AT(wait_t, before)->value > wait->value)
        before = PROTOCOL_AT(wait_t, before)->previous;
    wait->previous = before;
    wait->next = *wait_after(side, before);
    *wait_after(side, before) = wait->self;
    *wait_before(side, wait->next) = wait->self;
    wait->linked = 1;
    if (!before) side_want(side);
}

static inline void wait_unlink(wait_t *wait)
{
    cell_side_t *side = PROTOCOL_AT(cell_side_t, wait->side);
    *wait_after(side, wait->previous) = wait->next;
    *wait_before(side, wait->next) = wait->previous;
    wait->linked = 0;
    if (!wait->previous) side_want(side);
}

static inline void waits_unlink(const record_t *record)
{
    wait_t *waits = PROTOCOL_AT(wait_t, record->waits);
    for (uint32_t i = 0; i < record->wait_count; i++)
        if (waits[i].linked) wait_unlink(&waits[i]);
}

// Behind all others of a list of the tick's.
static inline void record_list(record_list_t *list, record_t *record)
{
    record->next = 0;
    record->previous = list->last;
    if (list->last)
        PROTOCOL_AT(record_t, list->last)->next = record->self;
    else
        list->first = record->self;
    list->last = record->self;
}

static inline void record_unlist(record_list_t *list, const record_t *record)
{
    if (record->previous)
        PROTOCOL_AT(record_t, record->previous)->next = record->next;
    else
        list->first = record->next;
    if (record->next)
        PROTOCOL_AT(record_t, record->next)->previous = record->previous;
    else
        list->last = record->previous;
}

#endif
