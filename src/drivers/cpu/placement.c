// SPDX-License-Identifier: Apache-2.0
// Which processor each worker runs on. Nodes get neighbouring cores. More workers than processors
// are left to the system: two pinned to one core could wait for each other while another core is
// idle.
#include <string.h>

#include "base/log.h"
#include "drivers/cpu/cpu.h"

keel_status_t cpu_count_default(uint32_t *count)
{
    return topology_core_count(count);
}

keel_status_t cpu_set(const char *cpus, topology_set_t *set)
{
    bool any = cpus && strcmp(cpus, "any") == 0;
    return keel_status_wrap(topology_set_init(set, any ? NULL : cpus), "option cpus is refused");
}

keel_status_t cpu_place(cpu_node_t *nodes, uint32_t node_count, const char *cpus)
{
    if (cpus && strcmp(cpus, "any") == 0) return NULL;
    topology_set_t set;
    keel_status_t status = cpu_set(cpus, &set);
    if (status) return status;
    uint32_t workers = node_count * nodes[0].worker_count;
    for (uint32_t i = 0; !status && i < workers && workers <= set.count; i++) {
        cpu_node_t *node = &nodes[i / nodes[0].worker_count];
        status = topology_bind(node->workers[i % nodes[0].worker_count].thread, set.processors[i]);
    }
    if (workers > set.count)
        log_say(KEEL_LOG_INFO, "%u workers on %u processors: not placed", workers, set.count);
    topology_set_finish(&set);
    return status;
}
