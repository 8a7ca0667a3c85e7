// SPDX-License-Identifier: Apache-2.0
// Which code runs on which of NVIDIA's GPUs.
#include "kit/nvptx.h"
#include "unit.h"

static void test_targets_are_read(void **state)
{
    (void)state;
    int architecture = 0;
    bool only = true;
    assert_true(nvptx_parse("nvptx:sm_70", &architecture, &only));
    assert_int_equal(architecture, 70);
    assert_false(only);
    assert_true(nvptx_parse("nvptx:sm_90a", &architecture, &only));
    assert_int_equal(architecture, 90);
    assert_true(only);
    assert_false(nvptx_parse("nvptx:sm_", &architecture, &only));
    assert_false(nvptx_parse("gfx90a", &architecture, &only));
}

static void test_text_runs_on_later_ones(void **state)
{
    (void)state;
    uint32_t older = nvptx_rank(90, KEEL_IMAGE_PTX, "nvptx:sm_70");
    assert_true(older > 0);
    assert_true(nvptx_rank(90, KEEL_IMAGE_PTX, "nvptx:sm_80") > older);
    assert_int_equal(nvptx_rank(70, KEEL_IMAGE_PTX, "nvptx:sm_80"), 0);
    assert_int_equal(nvptx_rank(100, KEEL_IMAGE_PTX, "nvptx:sm_90a"), 0);
    assert_true(nvptx_rank(90, KEEL_IMAGE_PTX, "nvptx:sm_90a") > 0);
}

static void test_machine_code_runs_on_its_generation(void **state)
{
    (void)state;
    uint32_t exact = nvptx_rank(86, KEEL_IMAGE_CUBIN, "nvptx:sm_86");
    uint32_t older = nvptx_rank(86, KEEL_IMAGE_CUBIN, "nvptx:sm_80");
    assert_true(exact > older);
    assert_true(older > nvptx_rank(86, KEEL_IMAGE_PTX, "nvptx:sm_86"));
    assert_int_equal(nvptx_rank(90, KEEL_IMAGE_CUBIN, "nvptx:sm_86"), 0);
    assert_int_equal(nvptx_rank(80, KEEL_IMAGE_CUBIN, "nvptx:sm_86"), 0);
    assert_int_equal(nvptx_rank(90, KEEL_IMAGE_HSACO, "gfx90a"), 0);
    assert_true(nvptx_rank(90, KEEL_IMAGE_FATBIN, "") > 0); // it may have some; the vendor looks
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_targets_are_read),
        cmocka_unit_test(test_text_runs_on_later_ones),
        cmocka_unit_test(test_machine_code_runs_on_its_generation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
