// SPDX-License-Identifier: Apache-2.0
// Which code runs on which GPU.
#include "kit/gfx.h"

#include <keel/driver/image.h>

#include "unit.h"

static const char here[] = "gfx90a:sramecc+:xnack-";

static void test_the_processor_decides(void **state)
{
    (void)state;
    assert_int_equal(gfx_rank(here, "gfx90a"), KEEL_RANK_EXACT);
    assert_int_equal(gfx_rank(here, "gfx90"), 0);
    assert_int_equal(gfx_rank(here, "gfx90ab"), 0);
    assert_int_equal(gfx_rank(here, "gfx908"), 0);
    assert_int_equal(gfx_rank(here, ""), 0);
    assert_int_equal(gfx_rank("gfx900", "gfx900"), KEEL_RANK_EXACT);
}

static void test_features_must_be_the_same(void **state)
{
    (void)state;
    assert_int_equal(gfx_rank(here, "gfx90a:xnack+"), 0);
    assert_int_equal(gfx_rank(here, "gfx90a:sramecc+:xnack+"), 0);
    assert_int_equal(gfx_rank("gfx900", "gfx900:xnack-"), 0);
}

static void test_more_features_fit_better(void **state)
{
    (void)state;
    assert_int_equal(gfx_rank(here, "gfx90a:xnack-"), KEEL_RANK_EXACT + 1);
    assert_int_equal(gfx_rank(here, here), KEEL_RANK_EXACT + 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_processor_decides),
        cmocka_unit_test(test_features_must_be_the_same),
        cmocka_unit_test(test_more_features_fit_better),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
