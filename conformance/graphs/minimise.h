// SPDX-License-Identifier: Apache-2.0
// Makes a failing graph small: drops what it can do without and still fail.
#ifndef GRAPHS_MINIMISE_H_
#define GRAPHS_MINIMISE_H_

#include "graphs/graph.h"

// Whether a graph still fails.
typedef bool (*still_fails_fn)(void *user, const graph_t *graph);

// Tries only graphs that graph_check accepts, until nothing can be dropped any more or keel_now_ns
// has passed `deadline_ns`. Returns how many it tried.
size_t graph_minimise(graph_t *graph, still_fails_fn still_fails, void *user, uint64_t deadline_ns);

// Takes an action out; what waited for it waits for what it waited for.
void action_drop(graph_t *graph, size_t index);

#endif
