// SPDX-License-Identifier: Apache-2.0
// What follows about the order of a graph's actions from its points and its threads.
//
// Two kinds of knowledge are kept apart. A submission that runs has seen all points it waits for
// reached, so all that lies behind them has succeeded; unless the point was to end alone. A thread
// that has waited knows less: where failures are possible, the end of a wait for a submission's own
// point says that this submission has ended, well or not, and nothing about those before it.
#ifndef GRAPHS_ORDER_H_
#define GRAPHS_ORDER_H_

#include "graphs/graph.h"

// Who brings a semaphore to a value.
typedef struct event_t {
    uint8_t action;
    bool inside; // by a host call, while the submission is still running
    uint32_t value;
} event_t;

typedef struct order_t {
    uint64_t issued[MAX_ACTIONS]; // begun before this one is (host actions: done before)
    uint64_t before[MAX_ACTIONS]; // ended before this one touches memory, if it ever does
    uint64_t firm[MAX_ACTIONS];   // of `before`: those that succeeded if this one runs
    // The value a semaphore has when the action runs, unless it has failed by then.
    uint32_t known[MAX_ACTIONS][MAX_SEMAPHORES];
    event_t events[MAX_SEMAPHORES][MAX_ACTIONS]; // by value
    uint8_t event_counts[MAX_SEMAPHORES];
} order_t;

// Only who signals what.
void order_events(const graph_t *graph, order_t *order);
// Computes all of it. Loops in the order show as actions that are before themselves.
void order_compute(const graph_t *graph, order_t *order);

// Computes it for one action, those before it being known, without looking at turns and threads.
// Its signals are for order_add_event.
void order_append(const graph_t *graph, order_t *order, size_t action);
void order_add_event(order_t *order, size_t semaphore, event_t event);

// The event that reaches a point, or NULL if the initial value does; `*missing` is set if none
// will.
const event_t *order_event(const graph_t *graph, const order_t *order, const point_t *point,
                           bool *missing);

#endif
