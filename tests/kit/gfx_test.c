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

static void test_generic_code_fits_its_processors(void **state)
{
    (void)state;
    assert_int_equal(gfx_rank("gfx906:sramecc+:xnack-", "gfx9-generic"), KEEL_RANK_COMPATIBLE);
    assert_int_equal(gfx_rank("gfx906:sramecc+:xnack-", "gfx9-generic:xnack-"),
                     KEEL_RANK_COMPATIBLE + 1);
    assert_int_equal(gfx_rank("gfx906:sramecc+:xnack-", "gfx9-generic:xnack+"), 0);
    assert_int_equal(gfx_rank(here, "gfx9-generic"), 0);
    assert_int_equal(gfx_rank("gfx942", "gfx9-4-generic"), KEEL_RANK_COMPATIBLE);
    assert_int_equal(gfx_rank("gfx942", "gfx9-generic"), 0);
    assert_int_equal(gfx_rank("gfx1036", "gfx10-3-generic"), KEEL_RANK_COMPATIBLE);
    assert_int_equal(gfx_rank("gfx1153", "gfx11-generic"), KEEL_RANK_COMPATIBLE);
    assert_int_equal(gfx_rank("gfx1200", "gfx11-generic"), 0);
    assert_int_equal(gfx_rank("gfx1201", "gfx12-generic"), KEEL_RANK_COMPATIBLE);
    assert_int_equal(gfx_rank("gfx1201", "gfx13-generic"), 0);
}

static void test_clocks(void **state)
{
    (void)state;
    assert_int_equal(gfx_usual_khz("gfx900:xnack-"), 27000);
    assert_int_equal(gfx_usual_khz(here), 25000);
    assert_int_equal(gfx_usual_khz("gfx942:sramecc+:xnack-"), 100000);
    assert_int_equal(gfx_usual_khz("gfx1100"), 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_processor_decides),
        cmocka_unit_test(test_features_must_be_the_same),
        cmocka_unit_test(test_more_features_fit_better),
        cmocka_unit_test(test_generic_code_fits_its_processors),
        cmocka_unit_test(test_clocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
