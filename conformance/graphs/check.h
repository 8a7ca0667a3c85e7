// SPDX-License-Identifier: Apache-2.0
// Is a graph one of which the outcome can be predicted? Independent of how it was made: generated,
// read from a file or shrunk.
#ifndef GRAPHS_CHECK_H_
#define GRAPHS_CHECK_H_

#include "graphs/graph.h"
#include "graphs/order.h"

typedef struct check_t {
    order_t order;
    char problem[160]; // empty: none
} check_t;

// Everything: well formed, ends, signals ordered, no two unordered actions touch the same memory,
// branches and counts follow from what surely happened. Fills `check->order`.
bool graph_check(const graph_t *graph, check_t *check);

// The parts of it. Each returns false and says why.
bool shape_check(const graph_t *graph, check_t *check);   // numbers in range, blocks balanced
bool end_check(const graph_t *graph, check_t *check);     // no deadlock
bool signals_check(const graph_t *graph, check_t *check); // values of semaphores grow
bool hazards_check(const graph_t *graph, check_t *check); // memory
bool pools_check(const graph_t *graph, check_t *check);   // the tight pool never runs out
bool control_check(const graph_t *graph, check_t *check); // branches and counts

// Whether the last of `ops` is ordered after those of the others that it has memory in common with.
bool ops_ordered(const graph_t *graph, const op_t *ops, size_t count, const span_t *table);

// Whether a recording can be executed with the table of `execute`.
bool execute_check(const graph_t *graph, const op_t *execute, uint8_t device, check_t *check);
bool execute_shape_check(const graph_t *graph, const op_t *execute, uint8_t device, check_t *check);

// Notes a problem; always false.
bool check_problem(check_t *check, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
