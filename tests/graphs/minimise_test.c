// SPDX-License-Identifier: Apache-2.0
#include "conformance/graphs/minimise.h"
#include "graphs/sample.h"

#include <keel/base.h>
#include <stdlib.h>
#include <string.h>

static size_t op_total(const graph_t *graph, uint8_t kind)
{
    size_t total = 0;
    for (size_t i = 0; i < graph->action_count; i++)
        for (size_t j = 0; j < graph->actions[i].op_count; j++)
            total += graph->actions[i].ops[j].kind == kind;
    return total;
}

static size_t action_total(const graph_t *graph)
{
    size_t total = 0;
    for (size_t i = 0; i < graph->action_count; i++) total += graph->actions[i].kind != ACTION_NONE;
    return total;
}

// A bug that shows whenever there is a copy.
static bool fails_with_copy(void *user, const graph_t *graph)
{
    (void)user;
    return op_total(graph, OP_COPY) > 0;
}

static void test_one_operation(void **state)
{
    (void)state;
    size_t tried = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        graph_t graph = *sample_generate(seed, true);
        if (!fails_with_copy(NULL, &graph)) continue;
        tried += graph_minimise(&graph, fails_with_copy, NULL, UINT64_MAX);
        assert_string_equal(sample_problem(&graph), "");
        // Buffers of pools need another action, which gives them memory.
        assert_in_range(action_total(&graph), 1, 2);
        assert_int_equal(op_total(&graph, OP_COPY), 1);
    }
    assert_true(tried > 100);
}

// A bug that needs two submissions, one after the other, however far apart they were.
static bool fails_with_pair(void *user, const graph_t *graph)
{
    order_t order;
    (void)user;
    order_compute(graph, &order);
    for (size_t i = 0; i < graph->action_count; i++)
        for (size_t j = 0; j < i; j++)
            if (graph->actions[i].kind == ACTION_SUBMIT &&
                graph->actions[j].kind == ACTION_SUBMIT &&
                graph->actions[i].device != graph->actions[j].device &&
                order.firm[i] & action_bit(j))
                return true;
    return false;
}

static void test_pair(void **state)
{
    (void)state;
    size_t graphs = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        graph_t graph = *sample_generate(seed, false);
        if (!fails_with_pair(NULL, &graph)) continue;
        graph_minimise(&graph, fails_with_pair, NULL, UINT64_MAX);
        assert_string_equal(sample_problem(&graph), "");
        assert_in_range(action_total(&graph), 2, 4);
        graphs++;
    }
    assert_true(graphs > 5);
}

// A bug that shows whenever a recording with a fill is made.
static bool fails_with_recording(void *user, const graph_t *graph)
{
    (void)user;
    for (size_t i = 0; i < graph->recording_count; i++)
        for (size_t j = 0; graph->recordings[i].used && j < graph->recordings[i].count; j++)
            if (graph->recordings[i].commands[j].kind == OP_FILL) return true;
    return false;
}

// Nothing executes it, and yet it is listed; the others are left out.
static void test_recordings_that_are_only_made(void **state)
{
    (void)state;
    graph_t graph = *sample_parse(
        SAMPLE "recording 0 device=0 slots=0 one_shot=0 prepare=1 : copy b0+0:4 b1+0:4\n"
               "recording 1 device=0 slots=0 one_shot=0 prepare=1 : fill b0+0:4 k=1,1\n"
               "0 t0 n0 submit q0.0 : execute r0 add=1\n");
    char *text = NULL;
    size_t size = 0;
    assert_true(fails_with_recording(NULL, &graph));
    graph_minimise(&graph, fails_with_recording, NULL, UINT64_MAX);
    FILE *file = open_memstream(&text, &size);
    graph_print(&graph, NULL, NULL, file);
    fclose(file);
    assert_null(strstr(text, "recording 0"));
    assert_true(fails_with_recording(NULL, sample_parse(text)));
    free(text);
}

static bool never_fails(void *user, const graph_t *graph)
{
    (void)graph;
    ++*(size_t *)user;
    return false;
}

static void test_nothing_to_drop(void **state)
{
    (void)state;
    size_t calls = 0;
    graph_t graph = *sample_generate(3, true), before = graph;
    graph_minimise(&graph, never_fails, &calls, UINT64_MAX);
    assert_memory_equal(&graph, &before, sizeof graph);
    assert_true(calls > 5);
    calls = 0;
    graph_minimise(&graph, never_fails, &calls, keel_now_ns());
    assert_int_equal(calls, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_operation),
        cmocka_unit_test(test_pair),
        cmocka_unit_test(test_recordings_that_are_only_made),
        cmocka_unit_test(test_nothing_to_drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
