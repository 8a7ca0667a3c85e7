// SPDX-License-Identifier: Apache-2.0
// How fast a way is, by what is known of the links.
#include <keel/driver/object.h>

#include "unit.h"

static keel_device_t *device_open(const char *uri, uint64_t link)
{
    keel_device_t *device = NULL;
    assert_null(keel_device_open(uri, NULL, &device));
    device->info.link = link;
    return device;
}

static void check(const char *first, uint64_t first_link, const char *second, uint64_t second_link,
                  keel_reach_t expected)
{
    keel_device_t *a = device_open(first, first_link), *b = device_open(second, second_link);
    keel_reach_t reach;
    assert_null(keel_device_reach(a, b, &reach));
    assert_int_equal(reach.how, expected.how);
    assert_int_equal(reach.bandwidth, expected.bandwidth);
    keel_device_release(a);
    keel_device_release(b);
}

static void test_slower_link_counts(void **state)
{
    (void)state;
    const char *card = "cpu://inline?memory=discrete", *host = "cpu://inline";
    check(card, 100, card, 50, (keel_reach_t){KEEL_REACH_STAGED, 50});
    check(card, 50, card, 100, (keel_reach_t){KEEL_REACH_STAGED, 50});
    check(card, 100, card, 0, (keel_reach_t){KEEL_REACH_STAGED, 100});
    check(card, 0, card, 0, (keel_reach_t){KEEL_REACH_STAGED, 0});
    check(card, 100, host, 0, (keel_reach_t){KEEL_REACH_HOST, 100});
    check(host, 0, card, 100, (keel_reach_t){KEEL_REACH_HOST, 100});
    check(host, 0, host, 0, (keel_reach_t){KEEL_REACH_HOST, 0});
}

static void test_no_way(void **state)
{
    (void)state;
    check("null://", 100, "null://", 100, (keel_reach_t){KEEL_REACH_NONE, 0});
}

static void test_own_memory_has_no_link(void **state)
{
    (void)state;
    keel_device_t *device = device_open("cpu://inline?memory=discrete", 100);
    keel_reach_t reach;
    assert_null(keel_device_reach(device, device, &reach));
    assert_int_equal(reach.how, KEEL_REACH_PEER);
    assert_int_equal(reach.bandwidth, 0);
    keel_device_release(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slower_link_counts),
        cmocka_unit_test(test_no_way),
        cmocka_unit_test(test_own_memory_has_no_link),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
