// SPDX-License-Identifier: Apache-2.0
// cmocka, after the headers it expects its user to have included.
#ifndef TESTS_UNIT_H_
#define TESTS_UNIT_H_

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

// cmocka prints that the end of a group has failed, and does not count it: here it counts.
static CMFixtureFunction unit_teardown;
static int unit_teardown_failed;

static inline int unit_teardown_count(void **state)
{
    unit_teardown_failed = unit_teardown && unit_teardown(state);
    return unit_teardown_failed;
}

static inline int unit_run(const char *name, const struct CMUnitTest *tests, size_t count,
                           CMFixtureFunction setup, CMFixtureFunction teardown)
{
    unit_teardown = teardown;
    int failed = _cmocka_run_group_tests(name, tests, count, setup, unit_teardown_count);
    return failed + unit_teardown_failed;
}

#undef cmocka_run_group_tests
#define cmocka_run_group_tests(tests, setup, teardown)                                             \
    unit_run(#tests, tests, sizeof(tests) / sizeof *(tests), setup, teardown)

#endif
