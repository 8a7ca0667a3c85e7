// SPDX-License-Identifier: Apache-2.0
// What HSA says of a GPU.
#include <stdio.h>

#include "base/memory.h"
#include "base/status.h"
#include "drivers/amdgpu/host/base/device.h"
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

keel_status_t amdgpu_agent_shared(const hsa_symbols_t *hsa, hsa_agent_t cpu,
                                  hsa_amd_memory_pool_t *pool)
{
    pools_t pools;
    KEEL_TRY(pool_find(hsa, cpu, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED, &pools));
    *pool = pools.pool;
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

keel_status_t amdgpu_pointer_ask(const hsa_symbols_t *hsa, const void *memory,
                                 hsa_amd_pointer_info_t *info)
{
    *info = (hsa_amd_pointer_info_t){.size = sizeof *info};
    return HSA_CALL(hsa, hsa_amd_pointer_info, memory, info, NULL, NULL, NULL);
}

bool amdgpu_pool_is_reached(const hsa_symbols_t *hsa, hsa_agent_t gpu, hsa_amd_memory_pool_t pool)
{
    hsa_amd_memory_pool_access_t access = HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED;
    hsa->hsa_amd_agent_memory_pool_get_info(gpu, pool, HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS,
                                            &access);
    return access != HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED;
}
