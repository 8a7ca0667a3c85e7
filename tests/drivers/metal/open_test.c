// SPDX-License-Identifier: Apache-2.0
// Opening devices, and what is said where there are none.
#include "drivers/metal/device.h"

static void refused(const char *uri, keel_code_t code, const char *words)
{
    keel_device_t *device = NULL;
    keel_status_t status = keel_device_open(uri, NULL, &device);
    assert_int_equal(keel_status_code(status), code);
    if (!strstr(keel_status_message(status), words)) fail_msg("%s", keel_status_message(status));
    keel_status_release(status);
}

static void test_no_metal(void **state)
{
    (void)state;
    refused("metal://0?lib=/nowhere/Metal", KEEL_NOT_FOUND, "no Metal can be opened here");
    refused("metal://0?lib=libm.so.6", KEEL_UNSUPPORTED, "Metal has no objc_msgSend");
    refused("metal://0?speed=1", KEEL_INVALID_ARGUMENT, "it has: lib");
}

static void two(void)
{
    keel_device_t *device = NULL;
    assert_null(device_try_open("1", &device));
    assert_string_equal(keel_device_info(device)->hardware, "Software Metal 1");
    device_close(device);
    refused("metal://2?lib=" METAL_LIBRARY, KEEL_NOT_FOUND, "there are 0 to 1");
    refused("metal://x?lib=" METAL_LIBRARY, KEEL_NOT_FOUND, "there is no metal://x");
}

static void none(void)
{
    refused("metal://0?lib=" METAL_LIBRARY, KEEL_NOT_FOUND, "Metal has no device here");
}

static void old(void)
{
    refused("metal://0?lib=" METAL_LIBRARY, KEEL_UNSUPPORTED, "that takes macOS 13 or iOS 16");
    while (sim_objects(NULL)) sched_yield();
}

// iOS before 18 has one device, and no list of them.
static void phone(void)
{
    keel_device_t *device = NULL;
    assert_null(keel_device_open("metal://?lib=" METAL_IOS_LIBRARY, NULL, &device));
    refused("metal://1?lib=" METAL_IOS_LIBRARY, KEEL_NOT_FOUND, "there are 0 to 0");
    keel_buffer_options_t options = {.size = 256,
                                     .memory = KEEL_MEMORY_DEVICE_LOCAL | KEEL_MEMORY_HOST_VISIBLE};
    keel_buffer_t *x = NULL;
    uint8_t bytes[256] = {0};
    assert_null(keel_buffer_create(device, &options, &x)); // managed, on some Macs
    assert_null(keel_buffer_write(x, 0, bytes, sizeof bytes));
    ok(submit(device, KEEL_NO_WAITS, keel_op_fill(keel_span(x, 64, 128), 7, 1)));
    assert_null(keel_buffer_read(x, 0, bytes, sizeof bytes));
    for (int i = 0; i < 256; i++) assert_int_equal(bytes[i], i >= 64 && i < 192 ? 7 : 0);
    keel_buffer_release(x);
    keel_device_release(device);
}

static void no_phone(void)
{
    refused("metal://0?lib=" METAL_IOS_LIBRARY, KEEL_NOT_FOUND, "Metal has no device here");
}

static void test_two_devices(void **state)
{
    (void)state;
    run_with("devices=2", two);
}

static void test_no_device(void **state)
{
    (void)state;
    run_with("devices=0", none);
}

static void test_ios(void **state)
{
    (void)state;
    run_with("leaks=1", phone);
    run_with("devices=0", no_phone);
}

static void test_old_system(void **state)
{
    (void)state;
    run_with("lacks=gpuAddress", old);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_devices), cmocka_unit_test(test_no_device),
        cmocka_unit_test(test_ios),         cmocka_unit_test(test_old_system),
        cmocka_unit_test(test_no_metal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
