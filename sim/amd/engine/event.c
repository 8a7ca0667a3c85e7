// SPDX-License-Identifier: Apache-2.0
// Events: flags that threads wait on, as the kernel driver has them.
//
// Setting an event wakes every thread that waits for it at that moment. It stays set, for the next
// thread, only if none waits, or until it is reset by hand. Each setting is counted: the event's
// age. A thread that says which age it knows is not made to wait for one that is past.
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "amd/engine/engine.h"

// No thread that names no age sleeps longer at a time. An event that is set before a thread waits
// is taken by the first that does, and runtimes without ages have two threads that wait for the
// errors of queues: the second would sleep for ever. It looks at its signals again whenever a wait
// ends, for whatever reason. In strict mode no thread does, so that one is seen which goes on
// though its event has not come.
enum { SLEEP_MAX_MS = 20 };

typedef struct {
    bool used, manual, set, fault;
    event_kind_t kind;
    unsigned waiters;
    uint64_t age;    // 1, and one more each time it is set
    uint64_t number; // of the event that is here; grows when one is destroyed
    unsigned node;   // of the fault
    uint64_t address;
    uint64_t
        left; // clock_ns when a thread's wait ended early; 0: it waits again, or the event came
} slot_t;

// What a thread remembers of an event while it waits.
typedef struct {
    uint64_t age, number;
} seen_t;

static slot_t slots[EVENT_MAX]; // 0 is none
static uint32_t free_hint = 1;  // no free slot is below
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void events_init(void)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

// The slot of an event, with the lock; NULL when there is none, without.
static slot_t *slot_lock(uint32_t id)
{
    pthread_once(&once, events_init);
    if (id == 0 || id >= EVENT_MAX) return NULL;
    pthread_mutex_lock(&lock);
    if (slots[id].used) return &slots[id];
    pthread_mutex_unlock(&lock);
    return NULL;
}

uint32_t event_create(event_kind_t kind, bool manual)
{
    pthread_once(&once, events_init);
    pthread_mutex_lock(&lock);
    uint32_t id = free_hint;
    while (id < EVENT_MAX && slots[id].used) id++;
    free_hint = id;
    if (id < EVENT_MAX) {
        slot_t *slot = &slots[id];
        *slot = (slot_t){.used = true,
                         .manual = manual,
                         .kind = kind,
                         .waiters = slot->waiters, // of the event before, who have not left yet
                         .age = 1,
                         .number = slot->number};
    }
    pthread_mutex_unlock(&lock);
    return id < EVENT_MAX ? id : 0;
}

// The lock is held.
static void slot_set(slot_t *slot)
{
    slot->age++;
    slot->left = 0;
    slot->set = slot->manual || slot->waiters == 0;
    pthread_cond_broadcast(&changed);
}

bool event_known(uint32_t id)
{
    slot_t *slot = slot_lock(id);
    if (slot) pthread_mutex_unlock(&lock);
    return slot != NULL;
}

bool event_set(uint32_t id)
{
    slot_t *slot = slot_lock(id);
    if (!slot) return false;
    slot_set(slot);
    pthread_mutex_unlock(&lock);
    return true;
}

bool event_reset(uint32_t id)
{
    slot_t *slot = slot_lock(id);
    if (!slot) return false;
    slot->set = false;
    pthread_mutex_unlock(&lock);
    return true;
}

bool event_destroy(uint32_t id)
{
    slot_t *slot = slot_lock(id);
    if (!slot) return false;
    slot->used = false;
    slot->number++; // who waits for it fails
    if (id < free_hint) free_hint = id;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return true;
}

void event_interrupt(uint32_t id)
{
    event_set(id);
}

bool event_memory_fault(unsigned node, uint64_t address)
{
    bool told = false;
    pthread_once(&once, events_init);
    pthread_mutex_lock(&lock);
    for (uint32_t id = 1; id < EVENT_MAX; id++) {
        slot_t *slot = &slots[id];
        if (!slot->used || slot->kind != EVENT_MEMORY) continue;
        slot->fault = true;
        slot->node = node;
        slot->address = address & ~(uint64_t)4095;
        slot_set(slot);
        told = true;
    }
    pthread_mutex_unlock(&lock);
    return told;
}

static struct timespec deadline_in(uint32_t milliseconds)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    time.tv_sec += milliseconds / 1000;
    time.tv_nsec += (long)(milliseconds % 1000) * 1000000;
    if (time.tv_nsec >= 1000000000) {
        time.tv_nsec -= 1000000000;
        time.tv_sec++;
    }
    return time;
}

// Begins to wait: remembers how old each event was. One that is set counts as set now, and is taken
// back unless it stays set; so does one that is older than the thread knows.
static void wait_begin(const event_wait_t *events, unsigned count, seen_t *seen)
{
    for (unsigned k = 0; k < count; k++) {
        slot_t *slot = &slots[events[k].id];
        bool newer = events[k].age && events[k].age != slot->age;
        slot->waiters++;
        slot->left = 0;
        seen[k] = (seen_t){slot->age - (slot->set || newer ? 1 : 0), slot->number};
        if (!slot->manual) slot->set = false;
    }
}

static bool wait_over(const event_wait_t *events, unsigned count, bool all, const seen_t *seen)
{
    unsigned activated = 0;
    for (unsigned k = 0; k < count; k++) {
        const slot_t *slot = &slots[events[k].id];
        if (slot->number != seen[k].number) return true;
        activated += slot->age != seen[k].age;
    }
    return all ? activated == count : activated > 0;
}

// Says what happened to each event; false when one was destroyed.
static bool wait_end(event_wait_t *events, unsigned count, const seen_t *seen)
{
    bool whole = true;
    for (unsigned k = 0; k < count; k++) {
        slot_t *slot = &slots[events[k].id];
        event_wait_t *event = &events[k];
        slot->waiters--;
        whole = whole && slot->number == seen[k].number;
        event->kind = slot->kind;
        event->activated = slot->age != seen[k].age;
        event->fault = event->activated && slot->fault;
        event->node = slot->node;
        event->address = slot->address;
        event->age = slot->age;
    }
    return whole;
}

static bool have_ages(const event_wait_t *events, unsigned count)
{
    for (unsigned k = 0; k < count; k++) {
        if (!events[k].age && slots[events[k].id].kind == EVENT_SIGNAL) return false;
    }
    return true;
}

static bool all_used(const event_wait_t *events, unsigned count)
{
    for (unsigned k = 0; k < count; k++) {
        if (events[k].id == 0 || events[k].id >= EVENT_MAX || !slots[events[k].id].used) {
            return false;
        }
    }
    return true;
}

// The lock is held, and all events are there.
static wait_result_t wait_locked(event_wait_t *events, unsigned count, bool all,
                                 uint32_t milliseconds, seen_t *seen)
{
    bool ages = have_ages(events, count) && !sim_settings()->strict;
    bool early = milliseconds > SLEEP_MAX_MS && !ages;
    bool endless = milliseconds == UINT32_MAX && !early;
    if (early) milliseconds = SLEEP_MAX_MS;
    struct timespec deadline = deadline_in(milliseconds);
    int waited = 0;
    wait_begin(events, count, seen);
    bool over = wait_over(events, count, all, seen);
    while (!over && waited != ETIMEDOUT) {
        waited = endless ? pthread_cond_wait(&changed, &lock)
                         : pthread_cond_timedwait(&changed, &lock, &deadline);
        over = wait_over(events, count, all, seen);
    }
    if (!over && early && count == 1) slots[events[0].id].left = clock_ns();
    if (!wait_end(events, count, seen)) return WAIT_FAILED;
    return over ? WAIT_DONE : WAIT_TIMEOUT;
}

wait_result_t event_wait(event_wait_t *events, unsigned count, bool all, uint32_t milliseconds)
{
    seen_t few[16], *seen = count <= 16 ? few : malloc(count * sizeof *seen);
    wait_result_t result = WAIT_UNKNOWN;
    pthread_once(&once, events_init);
    if (!seen) return WAIT_FAILED;
    pthread_mutex_lock(&lock);
    if (all_used(events, count)) result = wait_locked(events, count, all, milliseconds, seen);
    pthread_mutex_unlock(&lock);
    if (seen != few) free(seen);
    return result;
}

void event_watch(uint64_t before)
{
    pthread_mutex_lock(&lock);
    for (uint32_t id = 1; id < EVENT_MAX; id++) {
        slot_t *slot = &slots[id];
        if (!slot->used || !slot->left || slot->left >= before) continue;
        slot->left = 0;
        log_line(LOG_ERROR,
                 "watchdog: a thread waited for event %u and went on without it: the signal was "
                 "changed and no interrupt sent",
                 id);
    }
    pthread_mutex_unlock(&lock);
}

void event_forget(void)
{
    pthread_mutex_init(&lock, NULL);
    once = (pthread_once_t)PTHREAD_ONCE_INIT;
    memset(slots, 0, sizeof slots);
    free_hint = 1;
}
