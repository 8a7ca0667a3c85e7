// SPDX-License-Identifier: Apache-2.0
#include "graphs/sample.h"

#include <stdlib.h>
#include <string.h>

static void test_all_predictable(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        const char *problem = sample_problem(sample_generate(seed, seed % 2));
        if (problem[0]) fail_msg("seed %d: %s", (int)seed, problem);
    }
}

// Every kind of operation and action comes up.
static void test_variety(void **state)
{
    (void)state;
    size_t ops[OP_KINDS] = {0}, actions[ACTION_KINDS] = {0}, failing = 0, given = 0;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        const graph_t *graph = sample_generate(seed, true);
        failing += graph->failures;
        for (size_t i = 0; i < graph->action_count; i++) {
            actions[graph->actions[i].kind]++;
            for (size_t j = 0; j < graph->actions[i].op_count; j++)
                ops[graph->actions[i].ops[j].kind]++;
        }
        for (size_t i = 0; i < graph->recording_count; i++)
            for (size_t j = 0; j < graph->recordings[i].count; j++) {
                ops[graph->recordings[i].commands[j].kind]++;
                given += graph->recordings[i].commands[j].given;
            }
    }
    for (size_t i = 0; i < OP_KINDS; i++)
        if (ops[i] < 20) fail_msg("%s came up %zu times", op_infos[i].name, ops[i]);
    for (size_t i = ACTION_SUBMIT; i < ACTION_KINDS; i++) assert_true(actions[i] > 20);
    assert_in_range(failing, 400, 600);
    assert_true(given > 20);
}

static char *print(const graph_t *graph)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    graph_print(graph, NULL, NULL, file);
    fclose(file);
    return text;
}

static void test_same_seed_same_graph(void **state)
{
    (void)state;
    char *first = print(sample_generate(7, true));
    char *other = print(sample_generate(8, true));
    char *again = print(sample_generate(7, true));
    assert_string_equal(first, again);
    assert_string_not_equal(first, other);
    free(first);
    free(other);
    free(again);
}

// A listing says all there is to say.
static void test_listing(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        char *first = print(sample_generate(seed, true));
        graph_t *read = sample_parse(first);
        assert_string_equal(sample_problem(read), "");
        char *second = print(read);
        assert_string_equal(first, second);
        free(first);
        free(second);
    }
}

static void test_bad_listing(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"device 9 cpu://\n", "line 1: '9 cpu://'"},
        {"seed 1\nspace 0 cube device=0\n", "line 2: 'cube device=0'"},
        {"0 t0 n0 submit q0.0 wait=x\n", "line 1: 'x'"},
        {"0 t0 n0 submit q0.0 : fill b0+0:4 k=1\n", "line 1: ''"},
        {"0 t0 n0 submit q0.0 : jump\n", "line 1: 'jump'"},
        {"64 t0 n0 submit q0.0\n", "line 1: '64 t0 n0 submit q0.0'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        graph_t graph;
        char message[100] = "";
        assert_false(graph_parse(cases[i].text, &graph, message, sizeof message));
        assert_string_equal(message, cases[i].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_predictable), cmocka_unit_test(test_same_seed_same_graph),
        cmocka_unit_test(test_variety),         cmocka_unit_test(test_listing),
        cmocka_unit_test(test_bad_listing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
