// SPDX-License-Identifier: Apache-2.0
// The HIP that forwards to libcuda (tests/hardware/hip_on_cuda) has all that the driver may use:
// what is missing would be a feature that it never meets.
#include "drivers/hip/symbols.h"
#include "unit.h"

static void test_nothing_is_missing(void **state)
{
    (void)state;
    const hip_symbols_t *symbols = NULL;
    keel_status_t status = hip_symbols_open(HIP_LIBRARY, &symbols);
    if (status) fail_msg("%s", keel_status_message(status));
#define SYMBOL(type, name, feature, parameters)                                                    \
    if (!symbols->name) fail_msg("it has no " #name);
#include "drivers/hip/symbols.def"
#undef SYMBOL
    assert_int_equal(symbols->missing, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
