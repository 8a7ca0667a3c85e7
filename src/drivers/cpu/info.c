// SPDX-License-Identifier: Apache-2.0
// What a cpu device is. There is no driver and no interface of a vendor's, and no UUID.
#include <stdio.h>
#include <string.h>

#include "base/processor.h"
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

// The memory node that all workers are at: of those that are placed, the first processors count.
static keel_status_t node_find(const cpu_options_t *options, int *node)
{
    topology_set_t set;
    KEEL_TRY(cpu_set(options->cpus, &set));
    bool any = options->cpus && strcmp(options->cpus, "any") == 0;
    uint32_t workers = options->is_inline || any ? set.count : options->threads * options->nodes;
    *node = topology_set_node(&set, workers);
    topology_set_finish(&set);
    return NULL;
}

keel_status_t cpu_info(const cpu_options_t *options, keel_device_info_t *info)
{
    int node;
    KEEL_TRY(cpu_hardware(info->hardware, sizeof info->hardware));
    KEEL_TRY(node_find(options, &node));
    processor_vendor(info->vendor);
    info->has_numa_node = node >= 0;
    if (info->has_numa_node) info->numa_node = (uint32_t)node;
    return NULL;
}
