// SPDX-License-Identifier: Apache-2.0
#include "capture/hsa/flight.h"

#include <pthread.h>

#include "base/memory.h"
#include "capture/hsa/collect.h"
#include "capture/hsa/times.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static flight_t *spare, *inbox; // under `lock`
static flight_t *pending;       // the collector's

static flight_t *flight_make(void)
{
    flight_t *flight = mem_zalloc(sizeof *flight);
    if (!flight) return NULL;
    if (hsa.signal_create(1, 0, NULL, HSA_SIGNAL_GPU_ONLY, &flight->signal) == 0) return flight;
    mem_free(flight);
    return NULL;
}

flight_t *flight_take(void)
{
    pthread_mutex_lock(&lock);
    flight_t *flight = spare;
    if (flight) spare = flight->next;
    pthread_mutex_unlock(&lock);
    if (!flight) return flight_make();
    *flight = (flight_t){.signal = flight->signal};
    hsa.signal_silent_store_relaxed(flight->signal, 1);
    return flight;
}

static void flight_give(flight_t *flight)
{
    pthread_mutex_lock(&lock);
    flight->next = spare;
    spare = flight;
    pthread_mutex_unlock(&lock);
}

void flight_push(flight_t *first)
{
    flight_t *last = first;
    if (!first) return;
    for (;; last = last->next) {
        atomic_fetch_add_explicit(&last->queue->in_flight, 1, memory_order_relaxed);
        if (!last->next) break;
    }
    pthread_mutex_lock(&lock);
    last->next = inbox;
    inbox = first;
    pthread_mutex_unlock(&lock);
    collect_wake();
}

// Records one that has ended.
static void flight_end(const flight_t *flight)
{
    hsa_time_t time;
    if (flight->work.op == TRACE_OP_OTHER) return;
    if (hsa.profiling_get_dispatch_time(flight->work.agent, flight->signal, &time) != 0) {
        work_note(&flight->work);
        if (flight->own) times_forget(flight->own, flight);
        return;
    }
    if (flight->own) times_settle(flight->own, flight, time);
    work_end(&flight->work, time);
}

// Records one that does not end.
static void flight_give_up(const flight_t *flight)
{
    if (flight->work.op == TRACE_OP_OTHER) return;
    work_note(&flight->work);
    if (flight->own) times_forget(flight->own, flight);
}

static void inbox_take(void)
{
    pthread_mutex_lock(&lock);
    flight_t *first = inbox;
    inbox = NULL;
    pthread_mutex_unlock(&lock);
    flight_t **end = &pending;
    while (*end) end = &(*end)->next;
    *end = first;
}

uint64_t flight_collect(uint64_t *ended)
{
    uint64_t left = 0;
    inbox_take();
    for (flight_t **at = &pending; *at;) {
        flight_t *flight = *at;
        // scacquire: the times are written before.
        bool over = hsa.signal_load_scacquire(flight->signal) < 1;
        if (!over && !atomic_load_explicit(&flight->queue->given_up, memory_order_acquire)) {
            left++;
            at = &flight->next;
            continue;
        }
        *at = flight->next;
        ++*ended;
        flight_queue_t *queue = flight->queue;
        if (over) {
            // relaxed, both: the collector alone writes it, and nothing else counts.
            if (flight->place > atomic_load_explicit(&queue->reached, memory_order_relaxed))
                atomic_store_explicit(&queue->reached, flight->place, memory_order_relaxed);
            flight_end(flight);
            flight_give(flight);
        } else {
            flight_give_up(flight);
            flight->next = queue->lost;
            queue->lost = flight;
        }
        // release: the queue may go after the last one.
        atomic_fetch_sub_explicit(&queue->in_flight, 1, memory_order_release);
    }
    return left;
}

static bool queue_is_over(const void *of)
{
    const flight_queue_t *queue = of;
    return atomic_load_explicit(&((flight_queue_t *)(uintptr_t)queue)->in_flight,
                                memory_order_acquire) == 0;
}

void flight_drain(flight_queue_t *queue)
{
    if (collect_wait(queue_is_over, queue)) return;
    atomic_store_explicit(&queue->given_up, true, memory_order_release);
    (void)collect_wait(queue_is_over, queue); // false in the child of a fork, without a collector
}

void flight_recover(flight_queue_t *queue)
{
    while (queue->lost) {
        flight_t *flight = queue->lost;
        queue->lost = flight->next;
        flight_give(flight);
    }
}

void flight_drop(void)
{
    pthread_mutex_lock(&lock);
    flight_t *first = spare;
    spare = NULL;
    pthread_mutex_unlock(&lock);
    while (first) {
        flight_t *next = first->next;
        hsa.signal_destroy(first->signal);
        mem_free(first);
        first = next;
    }
}
