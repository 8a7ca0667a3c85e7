// SPDX-License-Identifier: Apache-2.0
// Grids that are in memory: of kernels that look there by themselves, and of kernels made
// elsewhere, to which the device or the host gives them.
#include "drivers/stream/fixture.h"

// Both kinds of kernels add 1 to a word of slot 0 for each group of the grid in slot 1.
typedef struct grids_t {
    raw_t raw;
    keel_ref_t target;
    uint32_t k;
    keel_op_t ops[2];
} grids_t;

static void grids_make(grids_t *g, keel_ref_t target, keel_ref_t counts)
{
    g->k = 1;
    g->target = target;
    g->ops[0] = op_add(&g->target, &g->k, 1);
    g->ops[0].as.dispatch.counts_kind = KEEL_COUNTS_DYNAMIC;
    g->ops[0].as.dispatch.counts = counts;
    g->ops[1] = op_raw_add(&g->raw, target, 1, counts);
}

// Runs both, in a submission of their own or recorded: what they add up to.
static void both_run(const uint32_t grid[3], uint32_t expected)
{
    grids_t submitted, recorded;
    keel_buffer_t *x = numbers(0, 0, 0), *counts = numbers(9, 9, 9);
    keel_op_t ops[] = {keel_op_update(keel_span(counts, 0, 12), grid), keel_op_barrier(), {0}, {0}};
    grids_make(&submitted, keel_whole(x), keel_span(counts, 0, 12));
    memcpy(ops + 2, submitted.ops, sizeof submitted.ops);
    ok(submit(queue, KEEL_NO_WAITS, ops, 4));
    assert_int_equal(words_of(x)[0], expected);
    words_of(x)[0] = 0;
    words_of(counts)[0] = 9;
    grids_make(&recorded, keel_slot(0, 0, 4), keel_slot(1, 0, 12));
    memcpy(ops + 2, recorded.ops, sizeof recorded.ops);
    ops[0].as.update.target = keel_slot(1, 0, 12);
    keel_recording_t *recording = record(ops, 4, 2);
    for (uint32_t i = 1; i <= 3; i++) {
        ok(execute(queue, recording, KEEL_BIND(x, counts)));
        assert_int_equal(words_of(x)[0], i * expected);
    }
    keel_recording_release(recording);
    keel_buffer_release(x);
    keel_buffer_release(counts);
}

static void a_grid_that_earlier_work_wrote(void **state)
{
    (void)state;
    both_run((uint32_t[]){2, 3, 4}, 48);
}

static void an_empty_grid_runs_nothing(void **state)
{
    (void)state;
    both_run((uint32_t[]){2, 0, 4}, 0);
}

static void a_grid_that_is_too_large_is_refused(void **state)
{
    (void)state;
    raw_t raw;
    keel_buffer_t *x = numbers(0, 0, 0), *counts = numbers(1, 70000, 1);
    keel_op_t op = op_raw_add(&raw, keel_whole(x), 1, keel_span(counts, 0, 12));
    fails(submit(queue, KEEL_NO_WAITS, &op, 1), KEEL_OUT_OF_RANGE, "70000");
    keel_recording_t *recording = record(&op, 1, 0);
    fails(execute(queue, recording, KEEL_NO_BINDINGS), KEEL_OUT_OF_RANGE, "70000");
    assert_int_equal(words_of(x)[0], 0);
    words_of(counts)[1] = 7; // and then one that is not
    ok(execute(queue, recording, KEEL_NO_BINDINGS));
    assert_int_equal(words_of(x)[0], 7);
    keel_recording_release(recording);
    keel_buffer_release(x);
    keel_buffer_release(counts);
}

// More of them than the device has graphs for.
static void many_grids_in_one_submission(void **state)
{
    (void)state;
    enum { MANY = 100 };
    raw_t raws[MANY];
    keel_op_t ops[MANY];
    keel_buffer_t *x = numbers(0, 0, 0), *counts = numbers(2, 1, 1);
    for (int i = 0; i < MANY; i++)
        ops[i] = op_raw_add(&raws[i], keel_whole(x), 1, keel_span(counts, 0, 12));
    ok(submit(queue, KEEL_NO_WAITS, ops, MANY));
    assert_int_equal(words_of(x)[0], 2 * MANY);
    keel_buffer_release(x);
    keel_buffer_release(counts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_grid_that_earlier_work_wrote),
        TEST(an_empty_grid_runs_nothing),
        TEST(a_grid_that_is_too_large_is_refused),
        TEST(many_grids_in_one_submission),
    };
    return run_on_all(tests, COUNT(tests));
}
