// SPDX-License-Identifier: Apache-2.0
#include "base/marks.h"

#include <stdlib.h>
#include <string.h>

#include "unit.h"

enum { MODEL = 20000 };

static void check(const marks_t *marks, const bool *model)
{
    for (uint64_t i = 0; i < MODEL; i++) assert_int_equal(marks_has(marks, i), model[i]);
    for (uint32_t i = 1; i < marks->count; i++) { // sorted, and none to be joined
        const marks_run_t *run = &marks->runs[i - 1], *next = run + 1;
        assert_true(run->word + run->count <= next->word);
        assert_true(run->bits != next->bits || run->word + run->count != next->word);
    }
}

// Rows of all lengths, anywhere, that overlap.
static void test_against_model(void **state)
{
    (void)state;
    bool *model = calloc(MODEL, sizeof *model);
    for (unsigned seed = 1; seed <= 6; seed++) {
        marks_t marks = {0};
        memset(model, 0, MODEL * sizeof *model);
        srand(seed);
        for (int i = 0; i < 300; i++) {
            static const int lengths[] = {1, 3, 64, 200, 1500};
            uint64_t length = 1 + (uint64_t)(rand() % lengths[rand() % (int)(seed % 5 + 1)]);
            uint64_t first = (uint64_t)rand() % (MODEL - length);
            if (seed == 6) first = first / 64 * 64; // whole words, which can be joined
            assert_true(marks_add(&marks, first, first + length - 1));
            for (uint64_t n = first; n < first + length; n++) model[n] = true;
            if (i % 30 == 0) check(&marks, model);
        }
        check(&marks, model);
        marks_finish(&marks);
    }
    free(model);
}

static void test_rows_and_patterns_are_small(void **state)
{
    (void)state;
    marks_t row = {0}, pattern = {0};
    for (uint64_t i = 1; i <= 1000000; i++) assert_true(marks_add(&row, i, i));
    assert_true(row.count <= 3);
    assert_false(marks_has(&row, 0) || marks_has(&row, 1000001));
    assert_true(marks_has(&row, 1) && marks_has(&row, 1000000));
    for (uint64_t i = 2; i <= 1000000; i += 2) assert_true(marks_add(&pattern, i, i));
    assert_true(pattern.count <= 3);
    assert_true(marks_has(&pattern, 500000) && !marks_has(&pattern, 500001));
    assert_true(marks_add(&pattern, 1, 1000000)); // all of it at once
    assert_true(pattern.count <= 3 && marks_has(&pattern, 500001));
    assert_true(marks_add(&row, (UINT64_C(1) << 63) - 70, (UINT64_C(1) << 63) - 1));
    assert_true(marks_has(&row, (UINT64_C(1) << 63) - 1));
    marks_finish(&row);
    marks_finish(&pattern);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_model),
        cmocka_unit_test(test_rows_and_patterns_are_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
