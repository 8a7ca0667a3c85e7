// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <string.h>

#include "unit.h"

static void says(keel_status_t status, const char *expected)
{
    char text[512], *place;
    keel_status_format(status, text, sizeof text);
    while ((place = strstr(text, " [")) != NULL) { // where in this file
        char *end = strchr(place, ']') + 1;
        memmove(place, end, strlen(end) + 1);
    }
    assert_string_equal(text, expected);
}

static keel_status_t failure(void)
{
    return keel_status_wrap(KEEL_ERROR(KEEL_DEVICE_LOST, "no power"), "the device is lost");
}

static void test_place_of_a_new_one(void **state)
{
    (void)state;
    keel_status_t status = failure(), placed = status_at(status, "queue 1");
    assert_ptr_equal(placed, status);
    says(placed, "DEVICE_LOST: the device is lost\n  at queue 1\n  because: no power");
    keel_status_release(placed);
    assert_null(status_at(NULL, "queue 1"));
    assert_ptr_equal(status_at(status_no_memory(), "queue 1"), status_no_memory());
}

// One that could not be described gets another code as well, and stays for others what it was.
static void test_another_code(void **state)
{
    (void)state;
    keel_status_t status = status_as(failure(), KEEL_CORRUPT);
    assert_int_equal(keel_status_code(status), KEEL_CORRUPT);
    keel_status_release(status);
    assert_int_equal(keel_status_code(status_as(status_no_memory(), KEEL_CORRUPT)), KEEL_CORRUPT);
    assert_int_equal(keel_status_code(status_no_memory()), KEEL_OUT_OF_MEMORY);
    assert_null(status_as(NULL, KEEL_CORRUPT));
}

// Others have it too, without a place or with one of their own: theirs does not change, and it says
// what has happened in the same words at each place.
static void test_place_of_a_shared_one(void **state)
{
    (void)state;
    keel_status_t status = failure();
    keel_status_t first = status_at(keel_status_retain(status), "queue 1");
    keel_status_t second = status_at(keel_status_retain(status), "queue 2");
    assert_string_equal(keel_status_path(status), "");
    assert_string_equal(keel_status_message(first), "the device is lost");
    assert_string_equal(keel_status_path(first), "queue 1");
    says(second, "DEVICE_LOST: the device is lost\n  at queue 2\n  because: no power");
    keel_status_release(status), keel_status_release(first), keel_status_release(second);
}

static void test_second_place(void **state)
{
    (void)state;
    keel_status_t status = status_at(status_at(failure(), "queue 1"), "queue 2");
    assert_string_equal(keel_status_path(status), "queue 2");
    says(status, "DEVICE_LOST: the device is lost\n  at queue 2\n"
                 "  because: the device is lost\n  at queue 1\n  because: no power");
    keel_status_release(status);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_place_of_a_new_one),
        cmocka_unit_test(test_another_code),
        cmocka_unit_test(test_place_of_a_shared_one),
        cmocka_unit_test(test_second_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
