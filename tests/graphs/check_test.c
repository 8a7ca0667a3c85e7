// SPDX-License-Identifier: Apache-2.0
#include "graphs/sample.h"

#include <string.h>

static void expect_problem(const char *text, const char *problem)
{
    assert_string_equal(sample_problem(sample_parse(text)), problem);
}

static void test_ordered_by_points(void **state)
{
    (void)state;
    expect_problem(SAMPLE "0 t0 n0 submit q0.0 : fill b0+0:16 k=1,1\n"
                          "1 t0 n1 submit q0.0 wait=@0 : copy b0+0:16 b1+0:16\n",
                   "");
    expect_problem(SAMPLE "semaphore 0 device=0 initial=0\n"
                          "0 t0 n1 submit q0.0 signal=s0:2 : fill b0+0:16 k=1,1\n"
                          "1 t0 n0 submit q0.0 wait=s0:1 : copy b0+0:16 b1+0:16\n",
                   "");
}

static void test_race(void **state)
{
    (void)state;
    expect_problem(SAMPLE "0 t0 n0 submit q0.0 : fill b0+0:16 k=1,1\n"
                          "1 t0 n1 submit q0.0 : copy b0+15:1 b1+0:1\n",
                   "actions 0 and 1 race");
    expect_problem(SAMPLE "0 t0 n0 submit q0.0 : fill b0+0:16 k=1,1\n"
                          "1 t0 n1 submit q0.0 : copy b0+16:1 b1+0:1\n",
                   "");
}

// Reading twice is no race; a write after both needs both.
static void test_readers(void **state)
{
    (void)state;
    const char *const readers = SAMPLE "0 t0 n0 submit q0.0 : copy b0+0:8 b1+0:8\n"
                                       "1 t0 n1 submit q0.0 : copy b0+0:8 b1+8:8\n";
    char text[1000];
    expect_problem(readers, "");
    strcpy(text, readers);
    strcat(text, "2 t0 n2 submit q0.0 wait=@1 : fill b0+0:8 k=1,1\n");
    expect_problem(text, "actions 0 and 2 race");
    strcpy(text, readers);
    strcat(text, "2 t0 n2 submit q0.0 wait=@0,@1 : fill b0+0:8 k=1,1\n");
    expect_problem(text, "");
}

// All up to a submission are those that surely came before it to its queue.
static void test_up_to(void **state)
{
    (void)state;
    const char *const first = SAMPLE "0 t0 n0 submit q0.0 : copy b0+0:8 b1+0:8\n";
    static const char *const rest[][2] = {
        {"1 t0 n1 submit q0.0\n2 t0 n2 submit q0.1 wait=@1/up_to : fill b0+0:8 k=1,1\n", ""},
        {"1 t1 n1 submit q0.0 after=0\n2 t0 n2 submit q0.1 wait=@1/up_to : fill b0+0:8 k=1,1\n",
         ""},
        {"1 t0 n1 submit q0.0\n2 t0 n2 submit q0.1 wait=@1 : fill b0+0:8 k=1,1\n",
         "actions 0 and 2 race"},
        {"1 t1 n1 submit q0.0\n2 t0 n2 submit q0.1 wait=@1/up_to : fill b0+0:8 k=1,1\n",
         "actions 0 and 2 race"},
        {"1 t0 n1 submit q0.2\n2 t0 n2 submit q0.1 wait=@1/up_to : fill b0+0:8 k=1,1\n",
         "actions 0 and 2 race"},
        {"semaphore 0 device=0 initial=0\n1 t0 n2 submit q0.0\n"
         "2 t0 n3 submit q0.1 wait=@1/up_to signal=s0:1\n3 t0 n1 submit q0.0 wait=s0:1\n",
         "action 2 would wait for ever"},
    };
    for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++) {
        char text[1000];
        snprintf(text, sizeof text, "%s%s", first, rest[i][0]);
        expect_problem(text, rest[i][1]);
    }
}

// What ends may have failed before what it waits for has ended.
static void test_ends(void **state)
{
    (void)state;
    const char *const ends = SAMPLE "0 t0 n0 submit q0.0 : copy b0+0:8 b1+0:8\n"
                                    "1 t0 n1 submit q0.0 wait=@0\n"
                                    "2 t0 n2 submit q0.0 wait=@1/ended : fill b0+0:8 k=1,1\n";
    char text[1000] = "failures 1\n";
    expect_problem(ends, "");
    strcat(text, ends);
    expect_problem(text, "actions 0 and 2 race");
    strcat(text, "semaphore 0 device=0 initial=0\n3 t0 n3 submit q0.0 signal=s0:1/ended\n");
    expect_problem(text, "action 3: a signal has no end");
}

static void test_barrier(void **state)
{
    (void)state;
    expect_problem(SAMPLE "0 t0 n0 submit q0.0 : fill b0+0:8 k=1,1; copy b0+0:8 b1+0:8\n",
                   "action 0: operations 0 and 1 race");
    expect_problem(SAMPLE "0 t0 n0 submit q0.0 : fill b0+0:8 k=1,1; barrier; copy b0+0:8 b1+0:8\n",
                   "");
}

static void test_event(void **state)
{
    (void)state;
    const char *const ordered =
        SAMPLE "recording 0 device=0 slots=1 : fill $0+0:8 k=1,1; event_set k=0; "
               "fill $0+8:8 k=2,1; event_wait k=0; copy $0+0:8 $0+16:8\n"
               "0 t0 n0 submit q0.0 : execute r0 b0+0:32\n";
    const char *const unordered =
        SAMPLE "recording 0 device=0 slots=1 : fill $0+0:8 k=1,1; event_set k=0; "
               "fill $0+8:8 k=2,1; event_wait k=0; copy $0+8:8 $0+16:8\n"
               "0 t0 n0 submit q0.0 : execute r0 b0+0:32\n";
    expect_problem(ordered, "");
    expect_problem(unordered, "action 0: operations 2 and 4 race");
}

// Slots that are bound to the same memory.
static void test_aliases(void **state)
{
    (void)state;
    expect_problem(SAMPLE "recording 0 device=0 slots=2 : fill $0+0:8 k=1,1; fill $1+0:8 k=2,1\n"
                          "0 t0 n0 submit q0.0 : execute r0 b0+0:8 b0+4:8\n",
                   "action 0: operations 0 and 1 race");
}

// A host wait orders memory; where failures are possible, only after what it waited for itself.
static void test_host_wait(void **state)
{
    (void)state;
    const char *const body = SAMPLE "0 t0 n0 submit q0.0 : fill b0+0:8 k=1,1\n"
                                    "1 t0 n1 submit q0.0 wait=@0 : fill b1+0:8 k=1,1\n"
                                    "2 t0 n2 wait wait=@1\n"
                                    "3 t1 n3 submit q0.0 after=2 : fill b0+0:8 k=2,1\n";
    char text[1000] = "failures 1\n";
    expect_problem(body, "");
    strcat(text, body);
    expect_problem(text, "actions 0 and 3 race");
}

static void test_deadlock(void **state)
{
    (void)state;
    expect_problem(SAMPLE "semaphore 0 device=0 initial=0\n"
                          "0 t0 n1 signal signal=s0:1\n"
                          "1 t0 n0 wait wait=s0:1\n",
                   "action 0 would wait for ever");
    expect_problem(SAMPLE "semaphore 0 device=0 initial=0\n"
                          "0 t1 n1 signal signal=s0:1\n"
                          "1 t0 n0 wait wait=s0:1\n",
                   "");
    expect_problem(SAMPLE "semaphore 0 device=0 initial=0\n"
                          "0 t0 n0 submit q0.0 wait=s0:1\n",
                   "action 0 would wait for ever");
}

// A signal from within a submission tells of what came before it, not of its end.
static void test_signal_inside(void **state)
{
    (void)state;
    const char *const body =
        SAMPLE "semaphore 0 device=0 initial=0\n"
               "0 t0 n0 submit q0.0 : fill b0+0:4 k=1,1\n"
               "1 t0 n1 submit q0.0 wait=@0 : fill b1+0:4 k=1,1; call_signal k=0,3\n";
    char text[1000];
    snprintf(text, sizeof text, "%s%s", body,
             "2 t0 n2 submit q0.0 wait=s0:3 : fill b0+0:4 k=2,1\n");
    expect_problem(text, "");
    snprintf(text, sizeof text, "%s%s", body,
             "2 t0 n2 submit q0.0 wait=s0:3 : fill b1+0:4 k=2,1\n");
    expect_problem(text, "actions 1 and 2 race");
}

static void test_unordered_signals(void **state)
{
    (void)state;
    const char *const body = SAMPLE "semaphore 0 device=0 initial=0\n"
                                    "0 t0 n0 submit q0.0 signal=s0:1\n";
    char text[1000];
    strcpy(text, body);
    // The own point of a submission says nothing about when its semaphores move.
    strcat(text, "1 t0 n1 submit q0.0 wait=@0 signal=s0:2\n");
    expect_problem(text, "action 1 signals s0:2 without knowing of s0:1");
    strcpy(text, body);
    strcat(text, "1 t1 n1 signal signal=s0:2\n");
    expect_problem(text, "action 1 signals s0:2 without knowing of s0:1");
    strcpy(text, body);
    strcat(text, "1 t0 n1 submit q0.0 wait=s0:1 signal=s0:2\n");
    expect_problem(text, "");
}

// A count that depends on what may have failed cannot be predicted.
static void test_soft_control(void **state)
{
    (void)state;
    const char *const body = "failures 1\n" SAMPLE "0 t0 n0 submit q0.0 : update b0+0:12 k=1,4\n"
                             "1 t0 n1 wait wait=@0\n"
                             "2 t0 n2 submit q0.0 after=1 : scale b1+0:8 k=1 static=b0+0:12\n";
    expect_problem(body, "action 2: a branch or a count depends on unknown memory");
    expect_problem(strchr(body, '\n') + 1, "");
}

static void test_pool(void **state)
{
    (void)state;
    const char *const body = SAMPLE "space 2 pool device=0 size=64\n"
                                    "0 t0 n0 submit q0.0 : alloca b2+0:64\n"
                                    "1 t0 n1 submit q0.0 wait=@0 : dealloca b2+0:64\n"
                                    "2 t0 n2 submit q0.0 wait=@1 : fill b2+0:4 k=1,1\n";
    char text[1000] = "failures 1\n";
    expect_problem(body, "action 2 fails, which `failures 0` denies");
    strcat(text, body);
    expect_problem(text, "");
}

// An alloca of a full pool waits for deallocas that were submitted; there must be one.
static void test_tight_pool(void **state)
{
    (void)state;
    const char *const body = SAMPLE "space 2 pool device=0 pool=3 size=64\n"
                                    "space 3 pool device=0 pool=3 size=64\n"
                                    "0 t0 n0 submit q0.0 : alloca b2+0:64\n"
                                    "1 t1 n1 submit q0.0 wait=@0 : dealloca b2+0:64\n";
    static const struct {
        const char *action, *problem;
    } cases[] = {
        {"2 t0 n2 submit q0.0 wait=@0 after=1 : alloca b3+0:64\n", ""},
        {"2 t0 n2 submit q0.0 wait=@1 : alloca b3+0:64\n", ""},
        {"2 t0 n2 submit q0.0 wait=@0 : alloca b3+0:64\n",
         "b2 and b3 may want the tight pool at once"},
        {"2 t0 n2 submit q0.0 after=1 : alloca b3+0:64\n",
         "b2 and b3 may want the tight pool at once"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[1000];
        snprintf(text, sizeof text, "%s%s", body, cases[i].action);
        expect_problem(text, cases[i].problem);
    }
}

// Whatever edge is taken from a generated graph, it is either found missing or was not needed: no
// conflicting pair depended on it.
static void test_lost_edges(void **state)
{
    (void)state;
    size_t lost = 0, found = 0;
    for (uint64_t seed = 0; seed < 150; seed++) {
        graph_t *graph = sample_generate(seed, true);
        for (size_t i = 0; i < graph->action_count; i++)
            for (size_t j = 0; j < graph->actions[i].wait_count; j++) {
                graph_t mutant = *graph;
                action_t *action = &mutant.actions[i];
                if (action->kind != ACTION_SUBMIT) continue;
                action->waits[j] = action->waits[--action->wait_count];
                lost++;
                found += sample_problem(&mutant)[0] != 0;
            }
    }
    assert_true(lost > 1000);
    assert_true(found * 10 > lost * 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ordered_by_points),
        cmocka_unit_test(test_race),
        cmocka_unit_test(test_readers),
        cmocka_unit_test(test_up_to),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_barrier),
        cmocka_unit_test(test_event),
        cmocka_unit_test(test_aliases),
        cmocka_unit_test(test_host_wait),
        cmocka_unit_test(test_deadlock),
        cmocka_unit_test(test_unordered_signals),
        cmocka_unit_test(test_signal_inside),
        cmocka_unit_test(test_soft_control),
        cmocka_unit_test(test_tight_pool),
        cmocka_unit_test(test_pool),
        cmocka_unit_test(test_lost_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
