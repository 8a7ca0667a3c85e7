// SPDX-License-Identifier: Apache-2.0
// Several GPUs as one device: what is refused, and what is told of one. Run on software GPUs of two
// kinds (keel sim).
#include <keel/keel.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

static void refused(const char *uri, keel_code_t code, const char *says)
{
    keel_device_t *device = NULL;
    keel_status_t status = keel_device_open(uri, NULL, &device);
    assert_int_equal(keel_status_code(status), code);
    if (!strstr(keel_status_message(status), says))
        print_error("%s\n", keel_status_message(status));
    assert_non_null(strstr(keel_status_message(status), says));
    keel_status_release(status);
    assert_null(device);
}

static void test_what_cannot_be_one(void **state)
{
    (void)state;
    refused("amdgpu://0,2", KEEL_UNSUPPORTED, "GPUs 0 and 2 cannot be one device");
    refused("amdgpu://0,2", KEEL_UNSUPPORTED, "gfx906");
    refused("amdgpu://0,0", KEEL_INVALID_ARGUMENT, "GPU 0 is named twice");
    refused("amdgpu://0,7", KEEL_NOT_FOUND, "7");
    refused("amdgpu://0,1,0,1,0,1,0,1,0", KEEL_UNSUPPORTED, "8 GPUs at most");
}

static void test_what_holds_for_both(void **state)
{
    (void)state;
    keel_device_t *both = NULL, *one = NULL;
    assert_null(keel_device_open("amdgpu://0,1", NULL, &both));
    assert_null(keel_device_open("amdgpu://0", NULL, &one));
    const keel_device_info_t *info = keel_device_info(both), *single = keel_device_info(one);
    assert_string_equal(info->target, single->target);
    assert_string_equal(info->pci, "");
    assert_string_not_equal(single->pci, "");
    assert_false(info->has_uuid);
    assert_true(single->has_uuid);
    assert_int_equal(keel_device_caps(both)->nodes, 2);
    assert_int_equal(keel_device_caps(both)->workers, 2 * keel_device_caps(one)->workers);
    keel_memory_stats_t stats, alone;
    assert_null(keel_device_memory(both, &stats));
    assert_null(keel_device_memory(one, &alone));
    assert_int_equal(stats.total, 2 * alone.total);
    keel_device_release(one);
    keel_device_release(both);
}

int main(void)
{
    const char *gpus = getenv("KEEL_SIM_GPUS");
    if (!gpus || strcmp(gpus, "gfx90a,gfx90a,gfx906") != 0) return 77; // to be run by keel sim
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_cannot_be_one),
        cmocka_unit_test(test_what_holds_for_both),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
