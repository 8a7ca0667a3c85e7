// SPDX-License-Identifier: Apache-2.0
// A tester that finds nothing proves nothing: here the runner leaves out edges on purpose.
#include "conformance/graphs/report.h"
#include "graphs/sample.h"

#include <string.h>

static const char *const uris[] = {"cpu://inline"};

static job_t job_make(size_t skip_action)
{
    job_t job = {.uris = uris, .uri_count = 1, .repeat = true, .count = 3};
    job.run.limit_s = 20;
    job.run.skip = true;
    job.run.skip_action = skip_action;
    return job;
}

// A listing and the submission that will not wait: what the tester must say.
static void expect_caught(const char *text, size_t skip_action, const char *complaint)
{
    page_t *page = page_create();
    job_t job = job_make(skip_action);
    page->graph = *sample_parse(text);
    job.run.skip = false;
    child_run(page, &job);
    assert_int_equal(page->state, CHILD_DONE);
    job.run.skip = true;
    child_run(page, &job);
    assert_int_equal(page->state, CHILD_FAILED);
    if (!strstr(page->judgement.complaints, complaint)) fail_msg("%s", page->judgement.complaints);
    page_destroy(page);
}

static void test_lost_write(void **state)
{
    (void)state;
    expect_caught(SAMPLE "semaphore 0 device=0 initial=0\n"
                         "0 t0 n1 submit q0.0 signal=s0:1 : fill b0+0:4 k=1,1\n"
                         "1 t0 n0 submit q0.1 wait=s0:1 : copy b0+0:4 b1+0:4\n",
                  1, "b1 byte 0 is");
}

static void test_lost_failure(void **state)
{
    (void)state;
    expect_caught("failures 1\n" SAMPLE "0 t0 n0 submit q0.0 : abort b0+0:4 k=0 groups=1,1,1\n"
                  "1 t0 n1 submit q0.1 wait=@0 : fill b1+0:4 k=1,1\n",
                  1, "action 1: ran although a point it waits for was not reached");
}

static void test_lost_order_of_signals(void **state)
{
    (void)state;
    expect_caught(SAMPLE "semaphore 0 device=0 initial=0\n"
                         "0 t0 n1 submit q0.0 signal=s0:1\n"
                         "1 t0 n0 submit q0.1 wait=s0:1 signal=s0:2\n",
                  1, "failed");
}

// A submission of a generated graph without whose waits there is a race, or -1.
static int edge_choose(const graph_t *graph)
{
    for (size_t i = graph->action_count; i-- > 0;) {
        graph_t mutant = *graph;
        if (graph->actions[i].kind != ACTION_SUBMIT || !graph->actions[i].wait_count) continue;
        mutant.actions[i].wait_count = 0;
        if (strstr(sample_problem(&mutant), "race")) return (int)i;
    }
    return -1;
}

// Made for one device, which is there.
static const graph_t *inline_generate(uint64_t seed)
{
    static graph_t graph;
    static const device_traits_t device = {"cpu://inline", 1, UINT32_MAX};
    generate_options_t options = {&device, 1, 3, false};
    graph_generate(&options, seed, &graph);
    return &graph;
}

static size_t action_total(const graph_t *graph)
{
    size_t total = 0;
    for (size_t i = 0; i < graph->action_count; i++) total += graph->actions[i].kind != ACTION_NONE;
    return total;
}

// Of graphs with one edge left out many are caught, and what is then shown is small.
static void test_random_graphs(void **state)
{
    (void)state;
    page_t *page = page_create();
    size_t tried = 0, caught = 0, minimised = 0;
    for (uint64_t seed = 0; seed < 80; seed++) {
        const graph_t *graph = inline_generate(seed);
        int skip = edge_choose(graph);
        if (skip < 0) continue;
        job_t job = job_make((size_t)skip);
        job.run.limit_s = 4; // without the edge some hang
        page->graph = *graph;
        child_run(page, &job);
        tried++;
        if (page->state != CHILD_FAILED) continue;
        caught++;
        if (minimised == 3) continue;
        minimised++;
        FILE *nowhere = fopen("/dev/null", "w");
        failure_minimise(page, &job, 60, nowhere);
        fclose(nowhere);
        assert_true(page->judgement.kinds != 0);
        assert_int_equal(page->graph.actions[skip].kind, ACTION_SUBMIT);
        assert_in_range(action_total(&page->graph), 1, 4);
    }
    page_destroy(page);
    assert_true(tried > 40);
    assert_true(caught * 4 > tried);
    assert_int_equal(minimised, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lost_write),
        cmocka_unit_test(test_lost_failure),
        cmocka_unit_test(test_lost_order_of_signals),
        cmocka_unit_test(test_random_graphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
