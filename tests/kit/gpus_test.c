// SPDX-License-Identifier: Apache-2.0
#include "kit/gpus.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "unit.h"

// The library is the number of its GPUs; the last of more than five does not work.
enum { SICK = 6 };

static keel_status_t count(const void *library, int *count)
{
    *count = *(const int *)library;
    return *count < 0 ? KEEL_ERROR(KEEL_INTERNAL, "no count") : NULL;
}

static keel_status_t check(int ordinal)
{
    return ordinal == SICK - 1 ? KEEL_ERROR(KEEL_INTERNAL, "it is sick") : NULL;
}

static keel_status_t describe(const void *library, int ordinal, char name[GPU_TEXT],
                              uint64_t *memory)
{
    snprintf(name, GPU_TEXT, "Model %d", ordinal);
    *memory = ((uint64_t)ordinal << 30) + 5;
    return check(ordinal);
}

static keel_status_t names(const void *library, int ordinal, gpu_names_t *names)
{
    const unsigned char uuid[16] = {0x01, 0x23, 0x45, 0x67, 0x89,
                                    0xab, 0xcd, 0xef, 0xfe, 0xdc,
                                    0xba, 0x98, 0x76, 0x54, (unsigned char)ordinal,
                                    0x10};
    gpu_uuid_print(uuid, names->uuid);
    snprintf(names->address, GPU_TEXT, "0000:0%d:00.0", ordinal + 1);
    return check(ordinal);
}

static const gpus_t gpus = {"gpu", count, describe, names};

static void test_uuid(void **state)
{
    (void)state;
    gpu_names_t first;
    assert_null(names(NULL, 0, &first));
    assert_string_equal(first.uuid, "01234567-89ab-cdef-fedc-ba9876540010");
    gpu_uuid_print("4b45454c00000001", first.uuid); // AMD's
    assert_string_equal(first.uuid, "4b45454c00000001");
}

static void finds(int there, const char *which, int ordinal)
{
    int found = -1;
    assert_null(gpus_find(&gpus, &there, which, &found));
    assert_int_equal(found, ordinal);
}

static void refuses(int there, const char *which, keel_code_t code, const char *words)
{
    int found = -1;
    keel_status_t status = gpus_find(&gpus, &there, which, &found);
    assert_int_equal(keel_status_code(status), code);
    assert_non_null(strstr(keel_status_message(status), words));
    assert_int_equal(found, -1);
    keel_status_release(status);
}

static void test_finds(void **state)
{
    (void)state;
    finds(3, "", 0);
    finds(3, "0", 0);
    finds(3, "2", 2);
    finds(3, "002", 2);
    finds(3, "GPU-01234567-89ab-cdef-fedc-ba9876540110", 1);
    finds(3, "gpu-01234567-89AB-CDEF-FEDC-BA9876540210", 2);
    finds(3, "MIG-01234567-89ab-cdef-fedc-ba9876540110", 1);
    finds(3, "0000:02:00.0", 1);
    finds(3, "00000000:03:00.0", 2);
    finds(3, ":03:00.0", 2);
}

static void test_not_there(void **state)
{
    (void)state;
    refuses(3, "3", KEEL_NOT_FOUND,
            "there is no gpu://3; there are 0 to 2, by number, UUID (GPU-...) or PCI address "
            "(0000:01:00.0)");
    refuses(0, "", KEEL_NOT_FOUND, "there is no gpu://;");
    refuses(3, "99999999999999999999", KEEL_NOT_FOUND, "gpu://999");
    refuses(3, "-1", KEEL_NOT_FOUND, "gpu://-1;");
    refuses(3, "GPU-01234567-89ab-cdef-fedc-ba9876540310", KEEL_NOT_FOUND, "0 to 2");
    refuses(3, "GPU-01234567-89ab-cdef-fedc-ba98765401", KEEL_NOT_FOUND, "0 to 2"); // a part
    refuses(3, "01234567-89ab-cdef-fedc-ba9876540110", KEEL_NOT_FOUND, "0 to 2");   // of what
    refuses(3, "0000:04:00.0", KEEL_NOT_FOUND, "0 to 2");
    refuses(-1, "0", KEEL_INTERNAL, "no count");
    refuses(SICK, "0000:08:00.0", KEEL_INTERNAL, "it is sick");
}

static void test_lists(void **state)
{
    (void)state;
    keel_device_listing_t devices[4] = {0};
    size_t listed = 9;
    int there = 3;
    assert_null(gpus_list(&gpus, NULL, &there, devices, 4, &listed));
    assert_int_equal(listed, 3);
    assert_string_equal(devices[0].uri, "gpu://0");
    assert_string_equal(devices[2].uri, "gpu://2");
    assert_string_equal(devices[2].name, "Model 2, 2 GiB");
    assert_string_equal(devices[3].uri, "");
    // There are more than there is room for, which is said.
    memset(devices, 0, sizeof devices);
    assert_null(gpus_list(&gpus, NULL, &there, devices, 1, &listed));
    assert_int_equal(listed, 3);
    assert_string_equal(devices[1].uri, "");
}

// A failure means that there are none, and the log says why.
static void test_list_of_none(void **state)
{
    (void)state;
    keel_device_listing_t devices[8];
    for (int there = -1; there <= SICK; there += SICK + 1) {
        size_t listed = 9;
        assert_null(gpus_list(&gpus, NULL, &there, devices, 8, &listed));
        assert_int_equal(listed, 0);
    }
    size_t listed = 9;
    keel_status_t opened = KEEL_ERROR(KEEL_NOT_FOUND, "no library");
    assert_null(gpus_list(&gpus, opened, NULL, devices, 8, &listed));
    assert_int_equal(listed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_uuid),         cmocka_unit_test(test_finds),
        cmocka_unit_test(test_not_there),    cmocka_unit_test(test_lists),
        cmocka_unit_test(test_list_of_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
