// SPDX-License-Identifier: Apache-2.0
#include "base/topology.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/status.h"

static keel_status_t set_add(topology_set_t *set, uint32_t processor)
{
    if ((set->count & (set->count + 1)) == 0) { // full at each power of two less one
        uint32_t *more = mem_resize(set->processors, (2 * set->count + 1) * sizeof *more);
        if (!more) return status_no_memory();
        set->processors = more;
    }
    set->processors[set->count++] = processor;
    return NULL;
}

static keel_status_t set_parse(topology_set_t *set, const char *text)
{
    const char *at = text;
    for (;;) {
        char *end;
        unsigned long first = strtoul(at, &end, 10), last = first;
        bool good = end != at && first < 65536;
        if (good && *end == '-') {
            at = end + 1;
            last = strtoul(at, &end, 10);
            good = end != at && last >= first && last < 65536;
        }
        if (!good || (*end && *end != ','))
            return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "'%s' is no list of processors such as 0-3,8",
                              text);
        for (unsigned long p = first; p <= last; p++) KEEL_TRY(set_add(set, (uint32_t)p));
        if (!*end) return NULL;
        at = end + 1;
    }
}

void topology_set_finish(topology_set_t *set)
{
    mem_free(set->processors);
    *set = (topology_set_t){0};
}

#if !KEEL_PORTABLE

#include <hwloc.h>

// Loading takes milliseconds, so it is done once. hwloc's answers are read only afterwards.
static struct {
    pthread_once_t once;
    hwloc_topology_t topology; // NULL: could not be loaded
} machine = {.once = PTHREAD_ONCE_INIT};

static void machine_load(void)
{
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) < 0) return;
    if (hwloc_topology_load(topology) < 0) {
        hwloc_topology_destroy(topology);
        return;
    }
    machine.topology = topology;
}

// The processors this thread may run on.
static keel_status_t allowed_get(hwloc_cpuset_t *allowed)
{
    pthread_once(&machine.once, machine_load);
    if (!machine.topology)
        return KEEL_ERROR(KEEL_INTERNAL, "hwloc cannot read the machine's topology");
    *allowed = hwloc_bitmap_alloc();
    if (!*allowed) return status_no_memory();
    if (hwloc_get_cpubind(machine.topology, *allowed, HWLOC_CPUBIND_PROCESS) < 0)
        hwloc_bitmap_copy(*allowed, hwloc_topology_get_allowed_cpuset(machine.topology));
    return NULL;
}

// One processor of each core that may be used.
static keel_status_t cores_list(topology_set_t *set)
{
    hwloc_cpuset_t allowed;
    KEEL_TRY(allowed_get(&allowed));
    keel_status_t status = NULL;
    hwloc_obj_t core = NULL;
    while (!status && (core = hwloc_get_next_obj_by_type(machine.topology, HWLOC_OBJ_CORE, core))) {
        if (!hwloc_bitmap_intersects(core->cpuset, allowed)) continue;
        int processor = -1;
        do processor = hwloc_bitmap_next(core->cpuset, processor);
        while (processor >= 0 && !hwloc_bitmap_isset(allowed, (unsigned)processor));
        if (processor >= 0) status = set_add(set, (uint32_t)processor);
    }
    hwloc_bitmap_free(allowed);
    return status;
}

static bool processor_exists(uint32_t processor)
{
    pthread_once(&machine.once, machine_load);
    return !machine.topology || hwloc_get_pu_obj_by_os_index(machine.topology, processor);
}

// -1: it is not known.
static int processor_node(uint32_t processor)
{
    pthread_once(&machine.once, machine_load);
    hwloc_obj_t unit =
        machine.topology ? hwloc_get_pu_obj_by_os_index(machine.topology, processor) : NULL;
    bool one = unit && unit->nodeset && hwloc_bitmap_weight(unit->nodeset) == 1;
    return one ? hwloc_bitmap_first(unit->nodeset) : -1;
}

keel_status_t topology_bind(pthread_t thread, uint32_t processor)
{
    pthread_once(&machine.once, machine_load);
    hwloc_cpuset_t one = machine.topology ? hwloc_bitmap_alloc() : NULL;
    if (!one) return status_no_memory();
    hwloc_bitmap_only(one, processor);
    int failed = hwloc_set_thread_cpubind(machine.topology, thread, one, 0);
    int error = errno;
    hwloc_bitmap_free(one);
    if (!failed) return NULL;
    return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "a worker cannot be placed on processor %u (errno %d)",
                      processor, error);
}

#else

static keel_status_t cores_list(topology_set_t *set)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    for (long i = 0; i < (count > 0 ? count : 1); i++) KEEL_TRY(set_add(set, (uint32_t)i));
    return NULL;
}

static bool processor_exists(uint32_t processor)
{
    long count = sysconf(_SC_NPROCESSORS_CONF);
    return count <= 0 || processor < (uint64_t)count;
}

static int processor_node(uint32_t processor)
{
    (void)processor;
    return -1;
}

keel_status_t topology_bind(pthread_t thread, uint32_t processor)
{
    (void)thread, (void)processor; // a hint there is no portable way to give
    return NULL;
}

#endif

keel_status_t topology_set_init(topology_set_t *set, const char *text)
{
    *set = (topology_set_t){0};
    keel_status_t status = text ? set_parse(set, text) : cores_list(set);
    for (uint32_t i = 0; !status && i < set->count; i++)
        if (!processor_exists(set->processors[i]))
            status = KEEL_ERROR(KEEL_INVALID_ARGUMENT, "the machine has no processor %u",
                                set->processors[i]);
    if (!status && !set->count) status = set_add(set, 0);
    if (status) topology_set_finish(set);
    return status;
}

int topology_set_node(const topology_set_t *set, uint32_t count)
{
    int node = set->count ? processor_node(set->processors[0]) : -1;
    for (uint32_t i = 1; i < count && i < set->count; i++)
        if (processor_node(set->processors[i]) != node) return -1;
    return node;
}

keel_status_t topology_core_count(uint32_t *count)
{
    topology_set_t cores;
    KEEL_TRY(topology_set_init(&cores, NULL));
    *count = cores.count;
    topology_set_finish(&cores);
    return NULL;
}
