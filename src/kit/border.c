// SPDX-License-Identifier: Apache-2.0
#include "kit/border.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/thread.h"
#include "kit/timeline.h"

enum {
    LOOK_NS = 100000000,    // while something is parked: whether the lanes are still there
    OUTLIVE_NS = 1000000000 // the same when the device is gone
};

// Of a semaphore. All but `base` is the thread's.
struct carrier_t {
    outside_t base;
    carrier_t *next;    // in the list
    border_t *border;   // there as long as the device is
    void *ours;         // owned
    lookout_t *lookout; // owned
    bool failed;        // nothing is carried any more
};

static carrier_t *carrier_of(outside_t *outside)
{
    return (carrier_t *)(void *)outside;
}

// Nothing more can be carried: all waiters here learn why. Consumes.
static void carrier_fail(carrier_t *carrier, keel_semaphore_t *semaphore, keel_status_t status)
{
    const border_t *border = carrier->border;
    if (!status) return;
    carrier->failed = true;
    status = border->ops->note(border->place, status);
    if (semaphore)
        timeline_fail(semaphore, keel_status_wrap(status, "semaphore '%s' has lost its other side",
                                                  semaphore->name ? semaphore->name : ""));
    else
        keel_status_release(status);
}

static void signals_send(carrier_t *carrier, keel_semaphore_t *semaphore)
{
    const border_t *border = carrier->border;
    outgoing_t *list = outside_take(&carrier->base, semaphore);
    while (list) {
        outgoing_t *outgoing = list;
        list = outgoing->next;
        if (!carrier->failed)
            carrier_fail(carrier, semaphore,
                         border->ops->send(border->place, carrier->ours, outgoing));
        outside_drop(outgoing);
    }
}

// Gives back what the vendor has of it. No reference to the semaphore is left, or the
// device is closed: all work that signals it has ended.
static void carrier_clear(carrier_t *carrier)
{
    border_t *border = carrier->border;
    border->ops->ours_close(border->place, carrier->ours);
    lookout_destroy(border, carrier->lookout);
    carrier->lookout = NULL;
}

static void carrier_free(carrier_t *carrier)
{
    if (carrier->lookout) lookout_free(carrier->lookout); // in the child of a fork
    outside_finish(&carrier->base);
    mem_free(carrier);
}

// Does what there is to do for one. *parked: something waits for the other side. True if the
// semaphore is released, and nothing is left to do.
static bool carrier_work(carrier_t *carrier, bool *parked)
{
    border_t *border = carrier->border;
    bool released;
    keel_semaphore_t *semaphore = outside_hold(&carrier->base, &released);
    if (semaphore && !carrier->failed)
        carrier_fail(carrier, semaphore, border->ops->lost(border->place));
    if (semaphore || released) signals_send(carrier, semaphore);
    *parked |= lookout_tell(carrier->lookout, &carrier->base, semaphore) && !released;
    uint64_t awaited = UINT64_MAX;
    if (semaphore && !carrier->failed) awaited = outside_awaited(&carrier->base, semaphore);
    if (awaited != UINT64_MAX) {
        carrier_fail(carrier, semaphore, lookout_watch(border, carrier->lookout, awaited));
        *parked = true;
    }
    keel_semaphore_release(semaphore);
    return released;
}

static void fresh_gather(border_t *border)
{
    carrier_t *next;
    for (carrier_t *c = atomic_exchange(&border->fresh, NULL); c; c = next) {
        next = c->next;
        c->next = border->carriers;
        border->carriers = c;
    }
}

static uint64_t border_work(void *argument)
{
    border_t *border = argument;
    bool parked = false;
    fresh_gather(border);
    for (carrier_t **link = &border->carriers, *carrier; (carrier = *link);) {
        if (!carrier_work(carrier, &parked)) {
            link = &carrier->next;
            continue;
        }
        *link = carrier->next;
        carrier_clear(carrier);
        carrier_free(carrier);
    }
    keel_status_t failure = parked ? border->ops->check(border->place) : NULL;
    if (failure) border->ops->lose(border->place, failure); // which wakes us once more
    return parked && !failure ? clock_deadline(LOOK_NS) : KEEL_FOREVER;
}

static void carrier_wake(outside_t *outside)
{
    helper_wake(&carrier_of(outside)->border->helper);
}

// In the child of a fork only memory is freed.
static void carrier_forget(outside_t *outside, bool in_child)
{
    carrier_t *carrier = carrier_of(outside);
    border_t *border = carrier->border;
    if (in_child || outside_detach(&carrier->base))
        carrier_free(carrier);
    else
        helper_wake(&border->helper);
}

static const outside_ops_t carrier_ops = {carrier_wake, carrier_forget};

keel_status_t border_import(border_t *border, const border_sides_t *sides, uint64_t initial, int fd,
                            keel_semaphore_t **semaphore)
{
    carrier_t *carrier = mem_zalloc(sizeof *carrier);
    lookout_t *lookout = carrier ? lookout_create(sides->theirs) : NULL;
    keel_status_t status = status_no_memory();
    if (lookout) status = outside_create(&carrier->base, &carrier_ops, initial, fd, semaphore);
    if (status) {
        if (lookout) lookout_free(lookout);
        mem_free(carrier);
        border->ops->ours_close(border->place, sides->ours);
        border->ops->theirs_close(border->place, sides->theirs);
        return status;
    }
    carrier->border = border;
    carrier->ours = sides->ours;
    carrier->lookout = lookout;
    carrier->next = atomic_load(&border->fresh);
    while (!atomic_compare_exchange_weak(&border->fresh, &carrier->next, carrier)) {
    }
    return NULL;
}

void border_wake(border_t *border)
{
    if (border) helper_wake(&border->helper);
}

void border_close(border_t *border)
{
    if (!border) return;
    helper_stop(&border->helper);
    border_work(border); // what came just before
    for (carrier_t *carrier = border->carriers, *next; carrier; carrier = next) {
        next = carrier->next;
        carrier_clear(carrier);
        if (outside_close(&carrier->base)) carrier_free(carrier);
    }
}

static void border_end(border_t *border)
{
    border->ops->close(border->place);
    if (!border->dead) free(border);
}

// The thread's heir, when the device is gone.
static void *border_outlive(void *argument)
{
    border_t *border = argument;
    uint32_t seen = atomic_load(&border->helper.word);
    while (!lookouts_sweep(border)) {
        futex_wait(&border->helper.word, seen, clock_deadline(OUTLIVE_NS));
        seen = atomic_load(&border->helper.word);
    }
    border_end(border);
    return NULL;
}

void border_destroy(border_t *border)
{
    if (!border) return;
    helper_stop(&border->helper);
    if (lookouts_sweep(border))
        border_end(border);
    else
        thread_detach("keel-outside", border_outlive, border); // without one it stays
}

keel_status_t border_create(const border_ops_t *ops, void *place, border_t **made)
{
    border_t *border = calloc(1, sizeof *border);
    if (!border) {
        ops->close(place);
        return status_no_memory();
    }
    border->ops = ops;
    border->place = place;
    helper_init(&border->helper, "keel-outside", border_work, border);
    if (!helper_wake(&border->helper)) {
        border_end(border);
        return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED,
                          "there is no thread for semaphores of other APIs");
    }
    *made = border;
    return NULL;
}
