// SPDX-License-Identifier: Apache-2.0
#include "conformance/graphs/judge.h"
#include "conformance/graphs/model.h"
#include "graphs/sample.h"

#include <string.h>

static outcome_t outcome;
static judgement_t judgement;

// What a perfect run of a graph without failures would be seen to do.
static void outcome_make(const graph_t *graph)
{
    static model_t model;
    order_t order;
    memset(&outcome, 0, sizeof outcome);
    order_compute(graph, &order);
    model_init(&model, graph, NULL);
    for (size_t i = 0; i < graph->action_count; i++) {
        const action_t *action = &graph->actions[i];
        outcome.actions[i].state = SEEN_REACHED;
        assert_true(model_run(&model, i));
        if (action->kind != ACTION_PEEK) continue;
        const span_t *span = &action->ops[0].spans[0];
        memcpy(outcome.actions[i].bytes, &model.bytes[span->id][span->offset], span->length);
    }
    for (size_t s = 0; s < graph->semaphore_count; s++) {
        size_t count = order.event_counts[s];
        outcome.semaphores[s].value =
            count ? order.events[s][count - 1].value : graph->semaphores[s].initial;
    }
    memset(outcome.readable, true, sizeof outcome.readable);
    memcpy(outcome.memory, model.bytes, sizeof outcome.memory);
}

static void test_perfect_runs(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        const graph_t *graph = sample_generate(seed, false);
        outcome_make(graph);
        if (!graph_judge(graph, &outcome, &judgement))
            fail_msg("seed %d: %s", (int)seed, judgement.complaints);
    }
}

#define CHAIN                                                                                      \
    SAMPLE "semaphore 0 device=0 initial=0\n"                                                      \
           "0 t0 n0 submit q0.0 signal=s0:1 : fill b0+0:4 k=287454020,4\n"                         \
           "1 t0 n1 submit q0.0 wait=@0 : copy b0+0:4 b1+0:4\n"                                    \
           "2 t0 n2 wait wait=@1\n"                                                                \
           "3 t0 n3 peek after=2 : peek b1+0:4\n"                                                  \
           "4 t0 n4 submit q0.0 wait=s0:1,@1 signal=s0:5 : scale b1+0:4 k=1 groups=1,1,1\n"

static void expect_complaint(const graph_t *graph, const char *text)
{
    assert_false(graph_judge(graph, &outcome, &judgement));
    assert_non_null(strstr(judgement.complaints, text));
}

static void test_memory(void **state)
{
    (void)state;
    const graph_t *graph = sample_parse(CHAIN);
    outcome_make(graph);
    assert_memory_equal(outcome.memory[0], "\x44\x33\x22\x11", 4);
    assert_memory_equal(outcome.actions[3].bytes, "\x44\x33\x22\x11", 4);
    assert_true(graph_judge(graph, &outcome, &judgement));
    outcome.memory[0][2]++;
    expect_complaint(graph, "b0 byte 2 is 23, should be 22 (last written by 0)");
    outcome_make(graph);
    outcome.memory[1][63]++;
    expect_complaint(graph, "(last written by -1)");
    outcome_make(graph);
    outcome.actions[3].bytes[0] = 0;
    expect_complaint(graph, "action 3: b1 byte 0 is 00, should be 44");
}

static void test_points(void **state)
{
    (void)state;
    const graph_t *graph = sample_parse(CHAIN);
    outcome_make(graph);
    outcome.actions[4].state = SEEN_FAILED;
    expect_complaint(graph, "action 4: failed for no reason");
    outcome_make(graph);
    outcome.actions[0].state = SEEN_FAILED;
    expect_complaint(graph, "action 1: ran although a point it waits for was not reached");
    outcome_make(graph);
    outcome.actions[2].state = SEEN_FAILED;
    expect_complaint(graph, "action 2: the wait failed although all points were reached");
}

static void test_semaphores(void **state)
{
    (void)state;
    const graph_t *graph = sample_parse(CHAIN);
    outcome_make(graph);
    outcome.semaphores[0].value = 1;
    expect_complaint(graph, "s0 is at 1, should be from 5 to 5");
    outcome.semaphores[0].value = 3;
    expect_complaint(graph, "s0 is at 3, which no action signals");
    outcome_make(graph);
    outcome.semaphores[0].failed = true;
    expect_complaint(graph, "s0 has");
}

// Action 1 fails by itself, which must reach 2 and leave 3 alone, and 4, which waits for its end.
#define FAILURE                                                                                    \
    "failures 1\n" SAMPLE "0 t0 n0 submit q0.0 : fill b0+0:4 k=1,4\n"                              \
    "1 t0 n1 submit q0.0 wait=@0 : abort b0+0:4 k=0 groups=1,1,1\n"                                \
    "2 t0 n2 submit q0.0 wait=@1 : fill b1+0:4 k=2,4\n"                                            \
    "3 t0 n3 submit q0.0 wait=@0 : fill b1+8:4 k=3,4\n"                                            \
    "4 t0 n4 submit q0.0 wait=@1/ended : fill b1+16:4 k=4,4\n"

static void outcome_fail(const graph_t *graph, size_t action, size_t number)
{
    seen_t *seen = &outcome.actions[action];
    seen->state = SEEN_FAILED;
    seen->cause.code = injected_code(graph, number);
    seen->cause.numbers = action_bit(number);
}

// A perfect run of it.
static const graph_t *failure_make(void)
{
    const graph_t *graph = sample_parse(FAILURE);
    memset(&outcome, 0, sizeof outcome);
    memset(outcome.readable, true, sizeof outcome.readable);
    outcome.actions[0].state = outcome.actions[3].state = SEEN_REACHED;
    outcome.actions[4].state = SEEN_REACHED;
    outcome_fail(graph, 1, 1);
    outcome_fail(graph, 2, 1);
    for (uint32_t i = 0; i < 64; i++) {
        outcome.memory[0][i] = data_byte(0, i);
        outcome.memory[1][i] = data_byte(1, i);
    }
    memcpy(&outcome.memory[1][8], "\x03\0\0", 4);
    memcpy(&outcome.memory[1][16], "\x04\0\0", 4);
    return graph;
}

static void test_failures(void **state)
{
    (void)state;
    const graph_t *graph = failure_make();
    assert_true(graph_judge(graph, &outcome, &judgement));
    // What the failing action wrote is not judged; what the next one would have written is.
    outcome.memory[0][0]++;
    assert_true(graph_judge(graph, &outcome, &judgement));
    outcome.memory[1][0]++;
    expect_complaint(graph, "b1 byte 0");
    graph = failure_make();
    outcome.actions[2].state = SEEN_REACHED;
    expect_complaint(graph, "action 2: ran although a point it waits for was not reached");
    graph = failure_make();
    outcome.actions[1].state = SEEN_REACHED;
    expect_complaint(graph, "action 1: did not fail as it should by itself");
    graph = failure_make();
    outcome_fail(graph, 3, 1);
    expect_complaint(graph, "action 3: failed for no reason");
    graph = failure_make();
    outcome_fail(graph, 4, 1);
    expect_complaint(graph, "action 4: failed for no reason");
}

static void test_causes(void **state)
{
    (void)state;
    const graph_t *graph = failure_make();
    outcome.actions[2].cause.numbers = action_bit(3);
    expect_complaint(graph, "action 2: failed with a cause that is not its own");
    graph = failure_make();
    outcome.actions[2].cause.numbers = 0;
    expect_complaint(graph, "action 2: failed with a cause that is not its own");
    graph = failure_make();
    outcome.actions[2].cause.code = KEEL_DEVICE_LOST;
    expect_complaint(graph, "action 2: failed with a cause that is not its own");
}

// A semaphore may fail before an earlier signaller has come to it, and what waits for that may then
// fail or not. What is sure to be reached before stays sure.
static void test_verdicts(void **state)
{
    (void)state;
    const graph_t *graph = sample_parse("failures 1\n" SAMPLE "semaphore 0 device=0 initial=0\n"
                                        "semaphore 1 device=0 initial=0\n"
                                        "0 t0 n0 submit q0.0 signal=s0:1\n"
                                        "1 t1 n1 fail signal=s1:0\n"
                                        "2 t0 n2 submit q0.0 wait=s0:1,s1:1 signal=s0:2\n"
                                        "3 t0 n3 submit q0.0 wait=s0:1\n"
                                        "4 t2 n4 signal signal=s1:1\n"
                                        "5 t0 n5 submit q0.0 wait=@0\n");
    order_t order;
    verdict_t verdict;
    assert_string_equal(sample_problem(graph), "");
    order_compute(graph, &order);
    verdict_compute(graph, &order, graph_failing(graph, &order), &verdict);
    assert_int_equal(verdict.origins[0], 0);
    assert_int_equal(verdict.origins[2], action_bit(1));
    assert_int_equal(verdict.origins[3], action_bit(1));
    assert_false(verdict.must_fail[2] || verdict.must_fail[3]);
    assert_int_equal(verdict.origins[5], 0);
    assert_true(verdict.semaphore_must_fail[1]);
    assert_int_equal(verdict.least[0], 0);
    assert_int_equal(verdict.most[0], 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_perfect_runs), cmocka_unit_test(test_memory),
        cmocka_unit_test(test_points),       cmocka_unit_test(test_semaphores),
        cmocka_unit_test(test_failures),     cmocka_unit_test(test_causes),
        cmocka_unit_test(test_verdicts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
