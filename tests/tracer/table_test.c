// SPDX-License-Identifier: Apache-2.0
// What the columns of a table come to.
#include "tracer/table.h"

#include <stdlib.h>
#include <string.h>

#include "ok.h"

enum { KEY = 1, MANY = 1000 };

// The only row of a table of these durations, each of a call of its own.
static table_stats_t stats_of(const uint64_t *durations, int count)
{
    table_t table = {0};
    for (int i = 0; i < count; i++)
        OK(table_add(&table, (table_item_t){KEY, "name", 1, durations[i], 0}));
    table_stats_t stats = table_stats(&table.rows[0]);
    table_finish(&table);
    return stats;
}

static void test_even(void **state)
{
    table_stats_t stats = stats_of((const uint64_t[]){10000, 2000, 1000, 3000}, 4);
    assert_int_equal(stats.mean, 4000);
    assert_int_equal(stats.median, 2500);
    assert_int_equal(stats.least, 1000);
    assert_int_equal(stats.most, 10000);
    assert_int_equal(stats.deviation, 3535); // the root of 12.5 million
}

static void test_odd(void **state)
{
    table_stats_t stats = stats_of((const uint64_t[]){9, 1, 5}, 3);
    assert_int_equal(stats.median, 5);
    stats = stats_of((const uint64_t[]){7}, 1);
    assert_int_equal(stats.median, 7);
    assert_int_equal(stats.deviation, 0);
}

// A call in two parts is one call; durations are those of the parts.
static void test_parts(void **state)
{
    table_t table = {0};
    OK(table_add(&table, (table_item_t){KEY, "name", 1, 300, 0}));
    OK(table_add(&table, (table_item_t){KEY, "name", 0, 100, 0}));
    table_stats_t stats = table_stats(&table.rows[0]);
    assert_int_equal(table.rows[0].calls, 1);
    assert_int_equal(stats.mean, 200);
    assert_int_equal(stats.median, 200);
    assert_int_equal(stats.most, 300);
    table_finish(&table);
}

static int number_compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

// In no order, with many that are equal: what sorting finds.
static void test_many(void **state)
{
    static uint64_t durations[MANY], sorted[MANY];
    for (int count = 1; count <= MANY; count += 37) {
        for (int i = 0; i < count; i++) durations[i] = (uint64_t)i * 7919 % 101;
        memcpy(sorted, durations, sizeof sorted);
        qsort(sorted, (size_t)count, sizeof *sorted, number_compare);
        uint64_t low = sorted[(count - 1) / 2], high = sorted[count / 2];
        assert_int_equal(stats_of(durations, count).median, low + (high - low) / 2);
    }
}

// The share of each row is of the total of all.
static void test_share(void **state)
{
    table_t table = {0};
    char text[2000] = "";
    OK(table_add(&table, (table_item_t){KEY, "small", 1, 1000, 0}));
    OK(table_add(&table, (table_item_t){KEY + 1, "large", 1, 3000, 6000}));
    FILE *out = fmemopen(text, sizeof text - 1, "w");
    assert_non_null(out);
    table_print(&table, "title", 20, out);
    fclose(out);
    table_finish(&table);
    const char *large = strstr(text, "75.0 %  large (2.00 GB/s)");
    assert_non_null(large);
    assert_non_null(strstr(large, "25.0 %  small\n")); // after it
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_even), cmocka_unit_test(test_odd),   cmocka_unit_test(test_parts),
        cmocka_unit_test(test_many), cmocka_unit_test(test_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
