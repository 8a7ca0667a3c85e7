// SPDX-License-Identifier: Apache-2.0
// How many edges the graph of a recording has, on the CUDA driver in software: a barrier costs one
// for each node before it and one for each behind, a split barrier too.
#include <dlfcn.h>
#include <stdlib.h>

#include "drivers/cuda/device.h"

enum { MANY = 1000 };

static cuda_symbols_t *symbols;
static cuda_symbols_t real;
static CUresult (*get_edges)(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count);
static size_t edges; // of the last graph

static CUresult instantiate(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    assert_int_equal(get_edges(graph, NULL, NULL, &edges), CUDA_SUCCESS);
    return real.cuGraphInstantiateWithFlags(exec, graph, flags);
}

static int setup(void **state)
{
    symbols = symbols_open(&real);
    if (!symbols) return 1;
    void *library = dlopen(CUDA_LIBRARY, RTLD_NOW);
    void *symbol = library ? dlsym(library, "cuGraphGetEdges") : NULL;
    if (!symbol) return 1;
    *(void **)&get_edges = symbol;
    symbols->cuGraphInstantiateWithFlags = instantiate;
    *state = device_open("");
    return 0;
}

static int teardown(void **state)
{
    keel_device_release(*state);
    *symbols = real;
    return 0;
}

// The edges of a recording of these steps: f a fill, | a barrier, a digit the set of that event,
// and w followed by one its wait.
static size_t edges_of(keel_device_t *device, const char *steps)
{
    keel_buffer_t *buffer = buffer_create(device, 4, 0);
    keel_recording_t *recording = NULL;
    assert_null(keel_recording_create(device, NULL, &recording));
    for (const char *at = steps; *at; at++) {
        keel_op_t op = *at == 'f'   ? keel_op_fill(keel_whole(buffer), 0, 4)
                       : *at == '|' ? keel_op_barrier()
                       : *at == 'w' ? keel_op_event_wait((uint32_t)(*++at - '0'))
                                    : keel_op_event_set((uint32_t)(*at - '0'));
        assert_null(keel_recording_add(recording, &op, 1));
    }
    assert_null(keel_recording_end(recording));
    assert_null(keel_recording_prepare(recording, keel_device_queue(device, 0)));
    keel_recording_release(recording);
    keel_buffer_release(buffer);
    return edges;
}

static void test_few(void **state)
{
    assert_int_equal(edges_of(*state, "ffff"), 0);
    assert_int_equal(edges_of(*state, "f|ff"), 2);
    assert_int_equal(edges_of(*state, "ffff|fff"), 4 + 3);
    assert_int_equal(edges_of(*state, "f0fw0f"), 1); // between the two it is free
    assert_int_equal(edges_of(*state, "ff0fw0ff"), 2 + 2);
    assert_int_equal(edges_of(*state, "f0f1w1fw0f"), 2 + 2); // the later one is behind both
    assert_int_equal(edges_of(*state, "f0f1w0fw1f"), 2 + 1 + 1);
    assert_int_equal(edges_of(*state, "f0fw0fw0f"), 2);     // twice
    assert_int_equal(edges_of(*state, "f0ff|fw0f"), 3 + 2); // a barrier has waited for it
    assert_int_equal(edges_of(*state, "0fw0f1w1f"), 2 + 1); // nothing came before the first
    assert_int_equal(edges_of(*state, "f|0f1w0fw1f"), 3);
}

// n pairs of a set and a wait with work between them, and no barrier.
static void test_many(void **state)
{
    static keel_op_t ops[4 * MANY];
    keel_buffer_t *buffer = NULL;
    keel_recording_t *recording = NULL;
    keel_buffer_options_t options = {.size = 4};
    assert_null(keel_buffer_create(*state, &options, &buffer));
    for (uint32_t i = 0; i < MANY; i++) {
        ops[4 * i] = ops[4 * i + 3] = keel_op_fill(keel_whole(buffer), 0, 4);
        ops[4 * i + 1] = keel_op_event_set(i);
        ops[4 * i + 2] = keel_op_event_wait(i);
    }
    assert_null(keel_recording_create(*state, NULL, &recording));
    assert_null(keel_recording_add(recording, ops, 4 * MANY));
    assert_null(keel_recording_end(recording));
    assert_null(keel_recording_prepare(recording, keel_device_queue(*state, 0)));
    assert_in_range(edges, 2 * MANY - 1, 5 * MANY);
    keel_recording_release(recording);
    keel_buffer_release(buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
