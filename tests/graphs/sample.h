// SPDX-License-Identifier: Apache-2.0
// Graphs for the tests of the graph tester: written as listings, or generated for devices that need
// not be there.
#ifndef TESTS_GRAPHS_SAMPLE_H_
#define TESTS_GRAPHS_SAMPLE_H_

#include "conformance/graphs/check.h"
#include "conformance/graphs/generate.h"
#include "conformance/graphs/listing.h"

#include "unit.h"

// Two buffers on one device, to which a test adds its actions.
#define SAMPLE                                                                                     \
    "device 0 cpu://inline\n"                                                                      \
    "space 0 buffer device=0 size=64\n"                                                            \
    "space 1 buffer device=0 size=64\n"

static inline graph_t *sample_parse(const char *text)
{
    static graph_t graph;
    char message[200] = "";
    if (!graph_parse(text, &graph, message, sizeof message)) fail_msg("%s", message);
    return &graph;
}

static inline graph_t *sample_generate(uint64_t seed, bool failures)
{
    static graph_t graph;
    static const device_traits_t devices[] = {{"cpu://", 1, UINT32_MAX},
                                              {"cpu://inline", 1, UINT32_MAX},
                                              {"cpu://?nodes=2", 2, UINT32_MAX}};
    generate_options_t options = {devices, 3, 4, failures};
    graph_generate(&options, seed, &graph);
    return &graph;
}

// What graph_check objects to, or "".
static inline const char *sample_problem(const graph_t *graph)
{
    static check_t check;
    graph_check(graph, &check);
    return check.problem;
}

#endif
