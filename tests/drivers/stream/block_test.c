// SPDX-License-Identifier: Apache-2.0
// Blocks of recordings: by conditions of the vendor's graphs, or by the host that reads the values.
#include "drivers/stream/fixture.h"

// Adds k to the first word of slot 0.
static keel_op_t plus(const uint32_t *k)
{
    static keel_ref_t target;
    target = keel_slot(0, 0, 4);
    return op_add(&target, k, 1);
}

static keel_ref_t value(uint32_t index)
{
    return keel_slot(1, index * 4, 4);
}

static const uint32_t k1 = 1, k10 = 10, k100 = 100, minus = UINT32_MAX;

// Adds that to value `index`.
static keel_op_t change(uint32_t index, const uint32_t *k)
{
    static keel_ref_t target[4];
    target[index] = value(index);
    return op_add(&target[index], k, 1);
}

// What the recording adds up to with these values.
static uint32_t sum(keel_recording_t *recording, uint32_t a, uint32_t b, uint32_t c)
{
    keel_buffer_t *x = numbers(0, 0, 0), *values = numbers(a, b, c);
    ok(execute(queue, recording, KEEL_BIND(x, values)));
    uint32_t result = words_of(x)[0];
    keel_buffer_release(x);
    keel_buffer_release(values);
    return result;
}

static void if_takes_one_way(void **state)
{
    (void)state;
    keel_op_t ops[] = {
        keel_op_if(value(0)), plus(&k1), keel_op_else(), plus(&k10), keel_op_end(), plus(&k100),
    };
    keel_recording_t *recording = record(ops, COUNT(ops), 2);
    assert_int_equal(sum(recording, 7, 0, 0), 101);
    assert_int_equal(sum(recording, 0, 0, 0), 110);
    keel_recording_release(recording);
}

// Writes of the first half are not looked at again.
static void else_minds_what_the_value_was(void **state)
{
    (void)state;
    keel_op_t ops[] = {
        keel_op_if(value(0)), change(0, &minus), keel_op_else(), plus(&k10), keel_op_end(),
    };
    keel_recording_t *recording = record(ops, COUNT(ops), 2);
    assert_int_equal(sum(recording, 1, 0, 0), 0);
    keel_recording_release(recording);
}

static void while_runs_as_long_as_the_value_holds(void **state)
{
    (void)state;
    keel_op_t ops[] = {keel_op_while(value(0)), plus(&k10), change(0, &minus), keel_op_end(),
                       plus(&k1)};
    keel_recording_t *recording = record(ops, COUNT(ops), 2);
    assert_int_equal(sum(recording, 20, 0, 0), 201);
    assert_int_equal(sum(recording, 0, 0, 0), 1);
    keel_recording_release(recording);
}

static void switch_takes_the_case_that_matches(void **state)
{
    (void)state;
    keel_op_t ops[] = {
        keel_op_switch(value(0)), keel_op_case(4), plus(&k1),    keel_op_case(0), plus(&k10),
        keel_op_case(9),          plus(&k100),     keel_op_end()};
    keel_recording_t *recording = record(ops, COUNT(ops), 2);
    assert_int_equal(sum(recording, 4, 0, 0), 1);
    assert_int_equal(sum(recording, 0, 0, 0), 10);
    assert_int_equal(sum(recording, 9, 0, 0), 100);
    assert_int_equal(sum(recording, 5, 0, 0), 0);
    keel_recording_release(recording);
}

// An outer loop sets up the inner one, which runs only in odd rounds.
static void blocks_nest(void **state)
{
    (void)state;
    keel_op_t ops[] = {
        keel_op_while(value(0)),
        change(0, &minus),
        keel_op_barrier(),
        keel_op_switch(value(0)),
        keel_op_case(2),
        keel_op_fill(value(1), 3, 4),
        keel_op_case(0),
        keel_op_fill(value(1), 1, 4),
        keel_op_end(),
        keel_op_while(value(1)),
        plus(&k10),
        change(1, &minus),
        keel_op_end(),
        keel_op_if(value(1)),
        plus(&k100),
        keel_op_else(),
        plus(&k1),
        keel_op_end(),
        keel_op_end(),
    };
    keel_recording_t *recording = record(ops, COUNT(ops), 2);
    assert_int_equal(sum(recording, 3, 0, 0), 30 + 10 + 3);
    keel_recording_release(recording);
}

static void a_loop_that_runs_too_often_is_named(void **state)
{
    (void)state;
    keel_op_t ops[] = {
        keel_op_fill(keel_slot(0, 4, 4), 1, 4),
        keel_op_group_begin("solver"),
        keel_op_while(value(0)),
        plus(&k1),
        keel_op_end(),
        keel_op_group_end(),
    };
    ops[2].as.branch.max_iterations = 5;
    keel_recording_t *recording = record(ops, COUNT(ops), 2);
    keel_buffer_t *x = numbers(0, 0, 0), *values = numbers(1, 0, 0);
    keel_point_t failed = execute(queue, recording, KEEL_BIND(x, values));
    fails(failed, KEEL_RESOURCE_EXHAUSTED, "the loop has run 5 times");
    keel_status_t status = keel_wait(KEEL_POINTS(failed), KEEL_ALL, 0);
    assert_non_null(strstr(keel_status_path(status), "solver"));
    keel_status_release(status);
    assert_int_equal(words_of(x)[0], 5);
    // What comes after it runs as ever.
    words_of(values)[0] = 0;
    ok(execute(queue, recording, KEEL_BIND(x, values)));
    keel_recording_release(recording);
    keel_buffer_release(x);
    keel_buffer_release(values);
}

// Rounds are counted anew each time that the loop begins, also within one submission.
static void each_loop_counts_its_own_rounds(void **state)
{
    (void)state;
    keel_op_t ops[] = {
        keel_op_while(value(0)),
        plus(&k1),
        change(0, &minus),
        keel_op_end(),
        keel_op_fill(value(0), 4, 4),
        keel_op_barrier(),
        keel_op_while(value(0)),
        plus(&k1),
        change(0, &minus),
        keel_op_end(),
    };
    ops[0].as.branch.max_iterations = ops[6].as.branch.max_iterations = 4;
    keel_recording_t *recording = record(ops, COUNT(ops), 2);
    keel_buffer_t *x = numbers(0, 0, 0), *values = numbers(4, 0, 0), *more = numbers(3, 0, 0);
    keel_op_t twice[] = {
        keel_op_execute(recording, KEEL_BIND(x, values)),
        keel_op_barrier(),
        keel_op_execute(recording, KEEL_BIND(x, more)),
    };
    ok(submit(queue, KEEL_NO_WAITS, twice, COUNT(twice)));
    assert_int_equal(words_of(x)[0], 8 + 7);
    keel_recording_release(recording);
    keel_buffer_release(x);
    keel_buffer_release(values);
    keel_buffer_release(more);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(if_takes_one_way),
        TEST(else_minds_what_the_value_was),
        TEST(while_runs_as_long_as_the_value_holds),
        TEST(switch_takes_the_case_that_matches),
        TEST(blocks_nest),
        TEST(a_loop_that_runs_too_often_is_named),
        TEST(each_loop_counts_its_own_rounds),
    };
    return run_on_all(tests, COUNT(tests));
}
