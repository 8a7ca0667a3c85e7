// SPDX-License-Identifier: Apache-2.0
// Graphs from seeds.
#ifndef GRAPHS_GENERATE_H_
#define GRAPHS_GENERATE_H_

#include "graphs/graph.h"

#include <keel/device.h>

// What the generator knows of a device.
typedef struct device_traits_t {
    const char *uri;
    uint8_t nodes;
    uint32_t bits; // of keel_cap_t; a graph uses what all its devices have
} device_traits_t;

typedef struct generate_options_t {
    const device_traits_t *devices;
    size_t device_count;
    uint8_t threads; // at most so many submit
    bool failures;   // about half of the graphs hold some
} generate_options_t;

// Fills `graph`: what graph_check accepts, the same for the same seed and options.
void graph_generate(const generate_options_t *options, uint64_t seed, graph_t *graph);

#endif
