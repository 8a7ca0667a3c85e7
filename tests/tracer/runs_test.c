// SPDX-License-Identifier: Apache-2.0
#include "tracer/runs.h"

#include "ok.h"
#include "unit.h"

static void expect(const runs_t *runs, int64_t id, uint32_t wanted)
{
    uint32_t value = UINT32_MAX;
    assert_true(runs_get(runs, id, &value));
    assert_int_equal(value, wanted);
}

static void test_empty(void **state)
{
    runs_t runs = {0};
    uint32_t value;
    assert_false(runs_get(&runs, 0, &value));
    assert_false(runs_get(&runs, -1, &value));
    runs_finish(&runs);
}

// A million in turn are one run; what is left out between them, in ids or in values, begins
// another.
static void test_turn(void **state)
{
    enum { COUNT = 1000000, STEP = 1000 };
    runs_t runs = {0};
    uint32_t value;
    for (int64_t i = 0; i < COUNT; i++) OK(runs_put(&runs, 5 + i, (uint32_t)i));
    assert_int_equal(runs.count, 1);
    OK(runs_put(&runs, COUNT + 5, COUNT + 7));
    OK(runs_put(&runs, COUNT + 10, COUNT + 8));
    assert_int_equal(runs.count, 3);
    for (int64_t i = 0; i < COUNT; i += STEP) expect(&runs, 5 + i, (uint32_t)i);
    expect(&runs, COUNT + 5, COUNT + 7);
    expect(&runs, COUNT + 10, COUNT + 8);
    assert_false(runs_get(&runs, 4, &value));
    assert_false(runs_get(&runs, COUNT + 6, &value));
    assert_false(runs_get(&runs, COUNT + 11, &value));
    runs_finish(&runs);
}

// Ids of damaged databases, and of others, may be anything, in any order.
static void test_any(void **state)
{
    static const int64_t ids[] = {7, INT64_MAX, 3, -1, INT64_MIN, 0, 4, -2};
    enum { COUNT = sizeof ids / sizeof *ids };
    runs_t runs = {0};
    for (uint32_t i = 0; i < COUNT; i++) OK(runs_put(&runs, ids[i], i));
    OK(runs_put(&runs, 7, 99));
    OK(runs_put(&runs, -1, 99));
    for (uint32_t i = 0; i < COUNT; i++) expect(&runs, ids[i], i);
    runs_finish(&runs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_turn),
        cmocka_unit_test(test_any),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
