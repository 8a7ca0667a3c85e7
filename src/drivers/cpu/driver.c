// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include "base/system.h"
#include "drivers/cpu/cpu.h"

keel_status_t cpu_hardware(char *name, size_t size)
{
    uint32_t cores;
    KEEL_TRY(cpu_count_default(&cores));
    char model[96];
    system_cpu_name(model, sizeof model);
    snprintf(name, size, "%s, %u core%s", model, cores, cores == 1 ? "" : "s");
    return NULL;
}

static keel_status_t cpu_list(keel_device_info_t *devices, size_t capacity, size_t *count)
{
    *count = 1;
    if (!capacity) return NULL;
    devices[0] = (keel_device_info_t){.uri = "cpu://"};
    return cpu_hardware(devices[0].name, sizeof devices[0].name);
}

const keel_driver_t cpu_driver = {KEEL_DRIVER_HEAD, .name = "cpu", .list = cpu_list,
                                  .open = cpu_open};
