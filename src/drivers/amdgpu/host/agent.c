// SPDX-License-Identifier: Apache-2.0
// What HSA says of a GPU.
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "drivers/amdgpu/host/amdgpu.h"
#include "executable/triple.h"

// The walk over the agents.
typedef struct agents_t {
    const hsa_symbols_t *hsa;
    int gpus, wanted;     // so far; the one that is looked for, or -1
    hsa_agent_t gpu, cpu; // that one; the first
    bool has_cpu;
} agents_t;

static hsa_status_t agent_each(hsa_agent_t agent, void *data)
{
    agents_t *agents = data;
    hsa_device_type_t type;
    hsa_status_t status = agents->hsa->hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);
    if (status != HSA_STATUS_SUCCESS) return status;
    if (type == HSA_DEVICE_TYPE_CPU && !agents->has_cpu) {
        agents->cpu = agent;
        agents->has_cpu = true;
    }
    if (type == HSA_DEVICE_TYPE_GPU && agents->gpus++ == agents->wanted) agents->gpu = agent;
    return HSA_STATUS_SUCCESS;
}

keel_status_t amdgpu_agents_count(const hsa_symbols_t *hsa, int *count)
{
    agents_t agents = {.hsa = hsa, .wanted = -1};
    KEEL_TRY(HSA_CALL(hsa, hsa_iterate_agents, agent_each, &agents));
    *count = agents.gpus;
    return NULL;
}

keel_status_t amdgpu_agent_find(const hsa_symbols_t *hsa, int ordinal, hsa_agent_t *gpu,
                                hsa_agent_t *cpu)
{
    agents_t agents = {.hsa = hsa, .wanted = ordinal};
    KEEL_TRY(HSA_CALL(hsa, hsa_iterate_agents, agent_each, &agents));
    if (ordinal >= agents.gpus || !agents.has_cpu)
        return KEEL_ERROR(KEEL_NOT_FOUND, "HSA has no GPU of number %d", ordinal);
    *gpu = agents.gpu;
    *cpu = agents.cpu;
    return NULL;
}

// The walk over the pools of an agent.
typedef struct pools_t {
    const hsa_symbols_t *hsa;
    uint32_t flag; // of the one that is looked for
    bool found;
    hsa_amd_memory_pool_t pool;
    uint64_t size;
} pools_t;

static hsa_status_t pool_each(hsa_amd_memory_pool_t pool, void *data)
{
    pools_t *pools = data;
    const hsa_symbols_t *hsa = pools->hsa;
    hsa_amd_segment_t segment = HSA_AMD_SEGMENT_GROUP;
    uint32_t flags = 0;
    bool allowed = false;
    size_t size = 0;
    hsa->hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment);
    if (segment != HSA_AMD_SEGMENT_GLOBAL || pools->found) return HSA_STATUS_SUCCESS;
    hsa->hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags);
    hsa->hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED,
                                      &allowed);
    hsa->hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SIZE, &size);
    pools->found = allowed && (flags & pools->flag);
    pools->pool = pool;
    pools->size = size;
    return HSA_STATUS_SUCCESS;
}

static keel_status_t pool_find(const hsa_symbols_t *hsa, hsa_agent_t agent, uint32_t flag,
                               pools_t *pools)
{
    *pools = (pools_t){.hsa = hsa, .flag = flag};
    KEEL_TRY(HSA_CALL(hsa, hsa_amd_agent_iterate_memory_pools, agent, pool_each, pools));
    if (pools->found) return NULL;
    return KEEL_ERROR(KEEL_UNSUPPORTED, "HSA has no %s-grained memory pool that can be used",
                      flag == HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED ? "fine" : "coarse");
}

keel_status_t amdgpu_agent_memory(const hsa_symbols_t *hsa, hsa_agent_t gpu,
                                  hsa_amd_memory_pool_t *pool, uint64_t *size)
{
    pools_t pools;
    KEEL_TRY(pool_find(hsa, gpu, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED, &pools));
    *pool = pools.pool;
    *size = pools.size;
    return NULL;
}

// The first is the best.
static hsa_status_t isa_each(hsa_isa_t isa, void *data)
{
    *(hsa_isa_t *)data = isa;
    return HSA_STATUS_INFO_BREAK;
}

keel_status_t amdgpu_agents_of(const hsa_symbols_t *hsa, uint64_t address,
                               hsa_amd_pointer_info_t *info, uint32_t *count, hsa_agent_t **agents)
{
    *info = (hsa_amd_pointer_info_t){.size = sizeof *info};
    keel_status_t status = HSA_CALL(hsa, hsa_amd_pointer_info, (void *)(uintptr_t)address, info,
                                    mem_alloc, count, agents);
    // What HSA may lack here is what mem_alloc did not give it: memory of the host.
    return keel_status_code(status) == KEEL_RESOURCE_EXHAUSTED
               ? status_as(status, KEEL_OUT_OF_MEMORY)
               : status;
}

keel_status_t amdgpu_agent_target(const hsa_symbols_t *hsa, hsa_agent_t gpu,
                                  char target[AMDGPU_TARGET])
{
    hsa_isa_t isa = {0};
    uint32_t length = 0;
    char name[256] = "";
    hsa->hsa_agent_iterate_isas(gpu, isa_each, &isa);
    KEEL_TRY(HSA_CALL(hsa, hsa_isa_get_info_alt, isa, HSA_ISA_INFO_NAME_LENGTH, &length));
    if (length >= sizeof name)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "the name of its ISA has %u characters", length);
    KEEL_TRY(HSA_CALL(hsa, hsa_isa_get_info_alt, isa, HSA_ISA_INFO_NAME, name));
    snprintf(target, AMDGPU_TARGET, "%.63s", triple_processor(name));
    return NULL;
}

// HSA writes "GPU-" and sixteen digits, or "GPU-XX" for none. HIP takes these digits themselves for
// the sixteen bytes of a UUID, and so does this: the same GPU has the same one by either.
static void uuid_read(const char *text, keel_device_info_t *info)
{
    enum { BEFORE = 4 };
    info->has_uuid = strlen(text) == BEFORE + sizeof info->uuid;
    if (info->has_uuid) memcpy(info->uuid, text + BEFORE, sizeof info->uuid);
}

static keel_status_t info_read(amdgpu_device_t *device)
{
    const hsa_symbols_t *hsa = device->hsa;
    keel_device_info_t *info = &device->base.info;
    char name[64] = "", uuid[64] = "";
    uint32_t place = 0, domain = 0;
    KEEL_TRY(HSA_CALL(hsa, hsa_agent_get_info, device->agent, HSA_AMD_AGENT_INFO_UUID, uuid));
    uuid_read(uuid, info);
    KEEL_TRY(
        HSA_CALL(hsa, hsa_agent_get_info, device->agent, HSA_AMD_AGENT_INFO_PRODUCT_NAME, name));
    KEEL_TRY(HSA_CALL(hsa, hsa_agent_get_info, device->agent, HSA_AMD_AGENT_INFO_BDFID, &place));
    KEEL_TRY(HSA_CALL(hsa, hsa_agent_get_info, device->agent, HSA_AMD_AGENT_INFO_DOMAIN, &domain));
    snprintf(info->hardware, sizeof info->hardware, "%.63s", name);
    snprintf(info->pci, sizeof info->pci, "%04x:%02x:%02x.%x", domain & 0xffff, place >> 8 & 0xff,
             place >> 3 & 0x1f, place & 7);
    snprintf(info->vendor, sizeof info->vendor, "AMD");
    snprintf(info->api, sizeof info->api, "HSA %u.%u", hsa->version >> 16, hsa->version & 0xffff);
    device_info_add_pci(info, PCI_AMD);
    return amdgpu_agent_target(hsa, device->agent, info->target);
}

// Old releases do not know the rate of the clock: then it is what most GPUs have.
static uint32_t clock_khz(const amdgpu_device_t *device)
{
    enum { USUAL_KHZ = 100000 };
    uint64_t hertz = 0;
    device->hsa->hsa_agent_get_info(device->agent, HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY, &hertz);
    return hertz >= 1000 ? (uint32_t)(hertz / 1000) : USUAL_KHZ;
}

static const keel_caps_t fixed_caps = {
    .bits = KEEL_CAP_QUEUE_ALLOCA | KEEL_CAP_BRANCHES | KEEL_CAP_EVENTS | KEEL_CAP_TIMESTAMPS |
            KEEL_CAP_FILES | KEEL_CAP_HOST_CALLS | KEEL_CAP_IMPORT_HOST | KEEL_CAP_EXECUTES |
            KEEL_CAP_DYNAMIC_COUNTS | KEEL_CAP_RAW_ARGUMENTS | KEEL_CAP_GROUP_SIZE |
            KEEL_CAP_DLPACK | KEEL_CAP_COPY_ACROSS | KEEL_CAP_NATIVE,
    .native = KEEL_CAP_TIMESTAMPS | KEEL_CAP_IMPORT_HOST | KEEL_CAP_EXECUTES |
              KEEL_CAP_RAW_ARGUMENTS | KEEL_CAP_GROUP_SIZE | KEEL_CAP_DLPACK |
              KEEL_CAP_COPY_ACROSS | KEEL_CAP_NATIVE,
    .queue_families = 1u << KEEL_QUEUE_COMPUTE | 1u << KEEL_QUEUE_TRANSFER,
    .min_priority = -1,
    .max_priority = 1,
    .nodes = 1,
    .max_bindings = AMDGPU_MAX_BINDINGS,
    .max_slots = 1024,
    .max_constants = AMDGPU_MAX_CONSTANTS,
    .max_arguments = AMDGPU_MAX_ARGUMENTS,
    .max_local_memory = 64 << 10,
    .max_groups = UINT32_MAX,
    .buffer_alignment = AMDGPU_ALIGNMENT,
    .max_commands = 1u << 24,
    .max_depth = RUN_MAX_DEPTH,
    .memory_types = {KEEL_MEMORY_DEVICE_LOCAL | KEEL_MEMORY_DEVICE_VISIBLE,
                     KEEL_MEMORY_DEVICE_VISIBLE | KEEL_MEMORY_HOST_VISIBLE |
                         KEEL_MEMORY_HOST_COHERENT | KEEL_MEMORY_HOST_CACHED},
};

// A packet counts items in 32 bits, so that the largest group says how many groups there may be.
static keel_status_t caps_read(amdgpu_device_t *device)
{
    const hsa_symbols_t *hsa = device->hsa;
    keel_caps_t *caps = &device->base.caps;
    uint16_t sizes[3] = {0};
    uint32_t units = 0;
    *caps = fixed_caps;
    if (hsa->exports) {
        caps->bits |= KEEL_CAP_EXPORT_FD;
        caps->native |= KEEL_CAP_EXPORT_FD;
    }
    KEEL_TRY(
        HSA_CALL(hsa, hsa_agent_get_info, device->agent, HSA_AGENT_INFO_WORKGROUP_MAX_DIM, sizes));
    KEEL_TRY(HSA_CALL(hsa, hsa_agent_get_info, device->agent, HSA_AGENT_INFO_WORKGROUP_MAX_SIZE,
                      &caps->max_group_size));
    KEEL_TRY(HSA_CALL(hsa, hsa_agent_get_info, device->agent, HSA_AGENT_INFO_WAVEFRONT_SIZE,
                      &caps->subgroup_size));
    KEEL_TRY(HSA_CALL(hsa, hsa_agent_get_info, device->agent, HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT,
                      &units));
    caps->workers = units;
    caps->max_buffer_size = device->nodes[0].memory;
    for (int i = 0; i < 3; i++) {
        caps->max_group_sizes[i] = sizes[i];
        caps->max_group_counts[i] = UINT32_MAX / (sizes[i] ? sizes[i] : 1);
    }
    return NULL;
}

// What shares memory of the host is cut from blocks once more; programs have blocks for themselves.
static void chunks_start(amdgpu_device_t *device)
{
    enum { KIB = 1 << 10 };
    amdgpu_chunks_init(&device->chunks, device, device->shared, 64 * KIB, 512 * KIB);
    for (uint32_t i = 0; i < device->node_count; i++)
        amdgpu_chunks_init(&device->nodes[i].chunks, device, device->nodes[i].local, 4 * KIB,
                           64 * KIB);
}

keel_status_t amdgpu_agent_read(amdgpu_device_t *device)
{
    pools_t shared;
    amdgpu_node_t *node = &device->nodes[0];
    KEEL_TRY(amdgpu_agent_memory(device->hsa, device->agent, &node->local, &node->memory));
    KEEL_TRY(
        pool_find(device->hsa, device->cpu, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED, &shared));
    device->shared = shared.pool;
    chunks_start(device);
    device->clock_khz = clock_khz(device);
    KEEL_TRY(info_read(device));
    KEEL_TRY(caps_read(device));
    return amdgpu_group_read(device);
}
