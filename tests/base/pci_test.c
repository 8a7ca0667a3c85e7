// SPDX-License-Identifier: Apache-2.0
#include "base/pci.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

static char root[64];

static void put(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

// A port, and the device behind it, whose address is a link as in sysfs.
static int setup(void **state)
{
    (void)state;
    strcpy(root, "/tmp/keel-pci-XXXXXX");
    if (!mkdtemp(root)) return 1;
    put("tree/port/max_link_speed", "16.0 GT/s PCIe\n");
    put("tree/port/max_link_width", "16\n");
    put("tree/port/card/vendor", "0x10de\n");
    put("tree/port/card/numa_node", "1\n");
    put("tree/port/card/max_link_speed", "32.0 GT/s PCIe\n");
    put("tree/port/card/max_link_width", "16\n");
    put("tree/port/card/driver/module/version", "580.159.04\n");
    put("plain/vendor", "0x1002\n");
    put("odd/vendor", "0x1002\n");
    put("odd/max_link_speed", "Unknown\n");
    put("odd/max_link_width", "0\n");
    put("odd/numa_node", "-1\n");
    char path[128];
    snprintf(path, sizeof path, "%s/0000:3b:00.0", root);
    if (symlink("tree/port/card", path)) return 1;
    snprintf(path, sizeof path, "%s/0000:3c:00.0", root);
    if (symlink("plain", path)) return 1;
    snprintf(path, sizeof path, "%s/0000:3d:00.0", root);
    return symlink("odd", path);
}

static int teardown(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command);
}

static void test_reads_a_device(void **state)
{
    (void)state;
    pci_device_t device;
    pci_read(root, "0000:3b:00.0", &device);
    assert_int_equal(device.vendor, 0x10de);
    assert_int_equal(device.numa_node, 1);
    assert_string_equal(device.driver, "580.159.04");
    // The port is the slower end: 16 lanes, 16 GT/s each, 128 of 130 bits.
    assert_int_equal(device.link / 1000000, 31507);
}

static void test_what_is_missing_is_not_known(void **state)
{
    (void)state;
    static const char *const addresses[] = {"0000:3c:00.0", "0000:3d:00.0"};
    pci_device_t device;
    for (int i = 0; i < 2; i++) {
        pci_read(root, addresses[i], &device);
        assert_int_equal(device.vendor, 0x1002);
        assert_int_equal(device.numa_node, -1);
        assert_int_equal(device.link, 0);
        assert_string_equal(device.driver, "");
    }
}

static void test_no_device(void **state)
{
    (void)state;
    static const char *const addresses[] = {"", "0000:99:00.0", "tree/port/card", "..", "plain"};
    pci_device_t device;
    for (int i = 0; i < 5; i++) {
        pci_read(root, addresses[i], &device);
        assert_int_equal(device.vendor, 0);
        assert_int_equal(device.numa_node, -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_a_device),
        cmocka_unit_test(test_what_is_missing_is_not_known),
        cmocka_unit_test(test_no_device),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
