// SPDX-License-Identifier: Apache-2.0
// Opening where there is nothing to open.
#include <keel/keel.h>
#include <string.h>

#include "unit.h"

static void refused(const char *uri, keel_code_t code, const char *says)
{
    keel_device_t *device = NULL;
    keel_status_t status = keel_device_open(uri, NULL, &device);
    assert_int_equal(keel_status_code(status), code);
    assert_non_null(strstr(keel_status_message(status), says));
    keel_status_release(status);
    assert_null(device);
}

static void test_a_library_that_is_not_there(void **state)
{
    (void)state;
    refused("amdgpu://0?lib=/no/such/library.so", KEEL_NOT_FOUND, "ROCm's runtime");
}

// libc is a library, but not this one.
static void test_a_library_that_is_another(void **state)
{
    (void)state;
    refused("amdgpu://0?lib=libc.so.6", KEEL_UNSUPPORTED, "hsa_init");
}

static void test_an_option_that_is_not_known(void **state)
{
    (void)state;
    refused("amdgpu://0?colour=red", KEEL_INVALID_ARGUMENT, "colour");
    refused("amdgpu://0?schedulers=5", KEEL_INVALID_ARGUMENT, "schedulers");
    refused("amdgpu://0?rings=here", KEEL_INVALID_ARGUMENT, "rings");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_library_that_is_not_there),
        cmocka_unit_test(test_a_library_that_is_another),
        cmocka_unit_test(test_an_option_that_is_not_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
