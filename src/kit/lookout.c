// SPDX-License-Identifier: Apache-2.0
#include <sched.h>
#include <stdlib.h>

#include "base/status.h"
#include "base/thread.h"
#include "kit/border.h"

typedef enum watch_state_t {
    WATCH_PARKED,
    WATCH_CAME, // the vendor's call is in here
    WATCH_LEFT, // and has gone
} watch_state_t;

typedef struct watch_t {
    struct watch_t *next;
    _Atomic uint32_t *word; // where the thread sleeps, or its heir
    uint64_t value;
    _Atomic uint32_t state; // watch_state_t
} watch_t;

typedef struct lane_t {
    struct lane_t *next;
    void *handle;           // owned
    watch_t *first, **last; // in order; owned
    uint64_t tail;          // the last value
} lane_t;

struct lookout_t {
    lookout_t *next; // stranded
    void *theirs;    // owned
    lane_t *lanes;   // owned
};

lookout_t *lookout_create(void *theirs)
{
    lookout_t *lookout = calloc(1, sizeof *lookout);
    if (lookout) lookout->theirs = theirs;
    return lookout;
}

void lookout_free(lookout_t *lookout)
{
    for (lane_t *lane = lookout->lanes, *next; lane; lane = next) {
        next = lane->next;
        for (watch_t *watch = lane->first, *after; watch; watch = after) {
            after = watch->next;
            free(watch);
        }
        free(lane);
    }
    free(lookout);
}

// The vendor's call. Nothing may be touched after the last store.
static void watch_came(void *user)
{
    watch_t *watch = user;
    _Atomic uint32_t *word = watch->word;
    atomic_store(&watch->state, WATCH_CAME);
    atomic_fetch_add(word, 1);
    futex_wake(word, 1);
    atomic_store(&watch->state, WATCH_LEFT);
}

static keel_status_t lane_find(border_t *border, lookout_t *lookout, uint64_t value, lane_t **found)
{
    for (lane_t *lane = lookout->lanes; lane; lane = lane->next) {
        *found = lane;
        if (!lane->first || lane->tail < value) return NULL;
    }
    lane_t *lane = calloc(1, sizeof *lane);
    if (!lane) return status_no_memory();
    keel_status_t status = border->ops->lane_create(border->place, &lane->handle);
    if (status) {
        free(lane);
        return status;
    }
    lane->last = &lane->first;
    lane->next = lookout->lanes;
    lookout->lanes = *found = lane;
    return NULL;
}

static bool is_watched(const lookout_t *lookout, uint64_t value)
{
    for (const lane_t *lane = lookout->lanes; lane; lane = lane->next)
        for (const watch_t *watch = lane->first; watch; watch = watch->next)
            if (watch->value == value) return true;
    return false;
}

keel_status_t lookout_watch(border_t *border, lookout_t *lookout, uint64_t value)
{
    lane_t *lane = NULL;
    if (is_watched(lookout, value)) return NULL;
    watch_t *watch = calloc(1, sizeof *watch);
    if (!watch) return status_no_memory();
    watch->word = &border->helper.word;
    watch->value = value;
    keel_status_t status = lane_find(border, lookout, value, &lane);
    if (!status)
        status = border->ops->lane_wait(border->place, lane->handle, lookout->theirs, value,
                                        watch_came, watch);
    if (status) {
        free(watch);
        return status;
    }
    *lane->last = watch;
    lane->last = &watch->next;
    lane->tail = value;
    return NULL;
}

bool lookout_tell(lookout_t *lookout, outside_t *outside, keel_semaphore_t *semaphore)
{
    bool parked = false;
    for (lane_t *lane = lookout->lanes; lane; lane = lane->next) {
        watch_t *watch;
        while ((watch = lane->first) && atomic_load(&watch->state) != WATCH_PARKED) {
            if (semaphore) outside_reach(outside, semaphore, watch->value);
            while (atomic_load(&watch->state) != WATCH_LEFT) sched_yield();
            lane->first = watch->next;
            if (!lane->first) lane->last = &lane->first;
            free(watch);
        }
        parked |= watch != NULL;
    }
    return parked;
}

static bool border_is_dead(border_t *border)
{
    if (border->dead) return true;
    keel_status_t failure = border->ops->check(border->place);
    border->dead = failure;
    keel_status_release(failure);
    return border->dead;
}

bool lookouts_sweep(border_t *border)
{
    const border_ops_t *ops = border->ops;
    for (lookout_t **link = &border->stranded, *lookout; (lookout = *link);) {
        bool parked = lookout_tell(lookout, NULL, NULL);
        if (parked && !border_is_dead(border)) {
            link = &lookout->next;
            continue;
        }
        *link = lookout->next;
        for (const lane_t *lane = lookout->lanes; lane; lane = lane->next)
            ops->lane_destroy(border->place, lane->handle);
        ops->theirs_close(border->place, lookout->theirs);
        if (!parked) lookout_free(lookout); // else the vendor may be in the middle of a call
    }
    return !border->stranded;
}

void lookout_destroy(border_t *border, lookout_t *lookout)
{
    lookout->next = border->stranded;
    border->stranded = lookout;
    lookouts_sweep(border);
}
