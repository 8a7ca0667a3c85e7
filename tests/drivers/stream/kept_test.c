// SPDX-License-Identifier: Apache-2.0
#include "drivers/stream/queue/kept.h"

#include "unit.h"

static void test_kept(void **state)
{
    (void)state;
    kept_t kept = {0};
    assert_int_equal(kept_take(&kept), 0);
    assert_int_equal(kept_take_like(&kept, 0, 0), 0);
    kept_put(&kept, 1, 64, 0x1000);
    assert_int_equal(kept_handle(&kept), 0x1000);
    assert_int_equal(kept_take_like(&kept, 2, 64), 0);
    assert_int_equal(kept_take_like(&kept, 1, 65), 0);
    assert_int_equal(kept_take_like(&kept, 1, 64), 0x1000);
    assert_int_equal(kept_take_like(&kept, 1, 64), 0);
    kept_put(&kept, 2, 128, 0x2000);
    assert_int_equal(kept_take(&kept), 0x2000);
    assert_int_equal(kept_handle(&kept), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kept)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
