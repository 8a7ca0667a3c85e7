// SPDX-License-Identifier: Apache-2.0
// What must become of each action and semaphore, as far as it can be said before the graph runs.
//
// A submission fails if it fails by itself or if a point fails that it waits for, at once and
// without waiting for the others. So a semaphore can fail early, through a later signaller, while
// an earlier one is still at work: whether its point is reached first is then anybody's guess.
#ifndef GRAPHS_VERDICT_H_
#define GRAPHS_VERDICT_H_

#include "graphs/graph.h"
#include "graphs/order.h"

#include <keel/status.h>

typedef struct verdict_t {
    uint64_t origins[MAX_ACTIONS]; // actions whose failure may be the cause of this one's
    bool must_fail[MAX_ACTIONS];
    uint64_t semaphore_origins[MAX_SEMAPHORES];
    bool semaphore_must_fail[MAX_SEMAPHORES];
    // Bounds of the last value.
    uint32_t least[MAX_SEMAPHORES], most[MAX_SEMAPHORES];
} verdict_t;

// `failing`: actions that fail by themselves if they run.
void verdict_compute(const graph_t *graph, const order_t *order, uint64_t failing,
                     verdict_t *verdict);

// Finds these by running the model over the graph.
uint64_t graph_failing(const graph_t *graph, const order_t *order);

// The code of the failure that such an action, or one that fails a semaphore, injects.
keel_code_t injected_code(const graph_t *graph, size_t action);

#endif
