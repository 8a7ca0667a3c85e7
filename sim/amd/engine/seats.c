// SPDX-License-Identifier: Apache-2.0
// Which queues of a GPU run. Hardware has places for so many at a time. A queue takes one when it
// has packets, and gives it back when it has none left. While more queues want to run than there
// are places, the first among those that wait takes the place of another: at once if that one's
// priority is lower, and after a slice of time if it is the same. Its waves stop where they are,
// give up their compute units, and go on when the queue is back.
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "amd/engine/engine.h"

enum { SLICE_NS = 5000000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER; // a place is free, or may be asked for
static queue_t *members[NODE_FIRST_GPU + GPU_MAX];        // of each node, by seat.next
static unsigned taken[NODE_FIRST_GPU + GPU_MAX];

void seat_forget(void)
{
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&changed, NULL);
    memset(members, 0, sizeof members);
    memset(taken, 0, sizeof taken);
}

void seat_add(queue_t *queue)
{
    pthread_mutex_lock(&lock);
    queue->seat.next = members[queue->node];
    members[queue->node] = queue;
    pthread_mutex_unlock(&lock);
}

// All below are called with the lock held, unless they say otherwise.
static void vacate(queue_t *queue)
{
    seat_t *seat = &queue->seat;
    if (!seat->taken) return;
    seat->taken = false;
    atomic_store(&seat->asked, false);
    seat->since = clock_ns();
    taken[queue->node]--;
    pthread_cond_broadcast(&changed);
}

void seat_remove(queue_t *queue)
{
    pthread_mutex_lock(&lock);
    vacate(queue);
    queue_t **link = &members[queue->node];
    while (*link && *link != queue) link = &(*link)->seat.next;
    if (*link) *link = queue->seat.next;
    pthread_mutex_unlock(&lock);
}

// Who gets the next place: the highest priority, then the longest wait.
static bool is_first(const queue_t *queue)
{
    for (const queue_t *other = members[queue->node]; other; other = other->seat.next) {
        const seat_t *a = &other->seat, *b = &queue->seat;
        if (other == queue || a->taken || !a->waiting) continue;
        if (a->priority > b->priority) return false;
        if (a->priority == b->priority && a->since < b->since) return false;
    }
    return true;
}

// Whose place a queue may have: the lowest priority, then the longest stay. NULL for none, also if
// a place is being left already.
static queue_t *victim_for(const queue_t *queue, uint64_t now)
{
    queue_t *victim = NULL;
    for (queue_t *other = members[queue->node]; other; other = other->seat.next) {
        const seat_t *seat = &other->seat;
        if (!seat->taken) continue;
        if (atomic_load(&seat->asked)) return NULL;
        bool lower = seat->priority < queue->seat.priority;
        bool over = seat->priority == queue->seat.priority && now - seat->since >= SLICE_NS;
        if (!lower && !over) continue;
        if (!victim || seat->priority < victim->seat.priority ||
            (seat->priority == victim->seat.priority && seat->since < victim->seat.since)) {
            victim = other;
        }
    }
    return victim;
}

// Asks a queue to leave, which it does when none of its threads runs waves any more.
static void ask(queue_t *queue)
{
    atomic_store(&queue->seat.asked, true);
    if (!queue->seat.riders) vacate(queue);
}

static bool try_sit(queue_t *queue)
{
    seat_t *seat = &queue->seat;
    if (seat->taken) return !atomic_load(&seat->asked);
    if (!is_first(queue)) return false;
    if (taken[queue->node] == sim_settings()->queues) {
        queue_t *victim = victim_for(queue, clock_ns());
        if (victim) ask(victim);
    }
    if (taken[queue->node] == sim_settings()->queues) return false;
    seat->taken = true;
    seat->since = clock_ns();
    taken[queue->node]++;
    return true;
}

static void sit(queue_t *queue)
{
    seat_t *seat = &queue->seat;
    if (!seat->waiting) seat->since = seat->taken ? seat->since : clock_ns();
    while (!try_sit(queue) && !atomic_load(&queue->stop)) {
        struct timespec time;
        seat->waiting = true;
        clock_gettime(CLOCK_MONOTONIC, &time);
        time.tv_nsec += SLICE_NS;
        time.tv_sec += time.tv_nsec / 1000000000;
        time.tv_nsec %= 1000000000;
        pthread_cond_clockwait(&changed, &lock, CLOCK_MONOTONIC, &time);
    }
    seat->waiting = false;
}

// From here on the lock is not held.
void seat_take(queue_t *queue)
{
    pthread_mutex_lock(&lock);
    sit(queue);
    pthread_mutex_unlock(&lock);
}

void seat_enter(queue_t *queue)
{
    pthread_mutex_lock(&lock);
    sit(queue);
    queue->seat.riders++;
    pthread_mutex_unlock(&lock);
}

void seat_leave(queue_t *queue)
{
    pthread_mutex_lock(&lock);
    if (--queue->seat.riders == 0 && atomic_load(&queue->seat.asked)) vacate(queue);
    pthread_mutex_unlock(&lock);
}

void seat_give(queue_t *queue)
{
    pthread_mutex_lock(&lock);
    if (!queue->seat.riders) vacate(queue);
    pthread_mutex_unlock(&lock);
}

void seat_priority(queue_t *queue, int priority)
{
    pthread_mutex_lock(&lock);
    queue->seat.priority = priority;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}
