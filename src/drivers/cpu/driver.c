// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/cpu.h"

static keel_status_t cpu_list(keel_device_listing_t *devices, size_t capacity, size_t *count)
{
    *count = 1;
    if (!capacity) return NULL;
    devices[0] = (keel_device_listing_t){.uri = "cpu://"};
    return cpu_hardware(devices[0].name, sizeof devices[0].name);
}

const keel_driver_t cpu_driver = {KEEL_DRIVER_HEAD, .name = "cpu", .list = cpu_list,
                                  .open = cpu_open};
