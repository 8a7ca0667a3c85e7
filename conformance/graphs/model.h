// SPDX-License-Identifier: Apache-2.0
// The memory of a graph, when one action is done after the other.
#ifndef GRAPHS_MODEL_H_
#define GRAPHS_MODEL_H_

#include "graphs/graph.h"
#include "graphs/order.h"

typedef struct model_t {
    const graph_t *graph;
    // If not NULL: what was not written by an action that surely succeeded before the reader counts
    // as unknown to it.
    const order_t *order;
    uint8_t bytes[MAX_SPACES][SPACE_SIZE];
    bool unknown[MAX_SPACES][SPACE_SIZE]; // what is there is not defined
    uint8_t writers[MAX_SPACES][SPACE_SIZE];
    bool resident[MAX_SPACES];
    uint8_t residence[MAX_SPACES]; // which action said so
    const char *error; // why the graph makes no sense: a branch on what is unknown, an endless loop
    size_t action;
    bool failed;
} model_t;

void model_init(model_t *model, const graph_t *graph, const order_t *order);

// Does all operations of an action. False if it fails by itself: what it may have written is then
// unknown.
bool model_run(model_t *model, size_t action);

#endif
