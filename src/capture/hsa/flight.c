// SPDX-License-Identifier: Apache-2.0
#include "capture/hsa/flight.h"

#include "base/memory.h"
#include "capture/hsa/collect.h"
#include "capture/hsa/times.h"

static _Atomic(flight_t *) inbox; // what the collector has not seen yet
static flight_t *pending;         // the collector's

// Puts a list onto a stack that is always taken as a whole.
static void stack_push(_Atomic(flight_t *) *stack, flight_t *first, flight_t *last)
{
    last->next = atomic_load_explicit(stack, memory_order_relaxed);
    // acq_rel: pairs with stack_take, for collect_wake, too.
    while (!atomic_compare_exchange_weak_explicit(stack, &last->next, first, memory_order_acq_rel,
                                                  memory_order_relaxed))
        continue;
}

static flight_t *stack_take(_Atomic(flight_t *) *stack)
{
    return atomic_exchange_explicit(stack, NULL, memory_order_acq_rel);
}

flight_t *flight_make(flight_queue_t *queue)
{
    flight_t *flight = stack_take(&queue->back);
    if (!flight) flight = mem_zalloc(sizeof *flight);
    if (!flight || flight->signal ||
        hsa.signal_create(1, 0, NULL, HSA_SIGNAL_GPU_ONLY, &flight->signal) == 0)
        return flight;
    mem_free(flight);
    return NULL;
}

void flight_push(flight_t *first, flight_t *last)
{
    stack_push(&inbox, first, last);
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
    flight_t **end = &pending;
    while (*end) end = &(*end)->next;
    *end = stack_take(&inbox);
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
            stack_push(&queue->back, flight, flight);
        } else {
            flight_give_up(flight);
            flight->next = queue->lost;
            queue->lost = flight;
        }
        // release: the queue may go after the last one. relaxed: the collector alone writes it.
        uint64_t recorded = atomic_load_explicit(&queue->recorded, memory_order_relaxed);
        atomic_store_explicit(&queue->recorded, recorded + 1, memory_order_release);
    }
    return left;
}

static uint64_t queue_left(const void *of)
{
    flight_queue_t *queue = (flight_queue_t *)(uintptr_t)of;
    // acquire: what is not left any more is recorded.
    uint64_t recorded = atomic_load_explicit(&queue->recorded, memory_order_acquire);
    return atomic_load_explicit(&queue->taken, memory_order_relaxed) - recorded;
}

bool flight_wait(flight_queue_t *queue)
{
    return collect_wait(queue_left, queue);
}

bool flight_drain(flight_queue_t *queue)
{
    if (flight_wait(queue)) return true;
    atomic_store_explicit(&queue->given_up, true, memory_order_release);
    return collect_wait(queue_left, queue);
}

static void list_destroy(flight_t *first)
{
    while (first) {
        flight_t *next = first->next;
        hsa.signal_destroy(first->signal);
        mem_free(first);
        first = next;
    }
}

void flight_finish(flight_queue_t *queue)
{
    list_destroy(queue->spare);
    list_destroy(queue->lost);
    list_destroy(stack_take(&queue->back));
    queue->spare = queue->lost = NULL;
}
