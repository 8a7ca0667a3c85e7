// SPDX-License-Identifier: Apache-2.0
// Which GPUs may use memory that HSA has allocated.
#include <string.h>

#include "base/lock.h"
#include "base/memory.h"
#include "base/status.h"
#include "drivers/amdgpu/host/memory/memory.h"

// The agents that may use an allocation, and the beginning of it.
typedef struct users_t {
    KEEL_AMDGPU_DEVICE_PTR void *memory;
    hsa_agent_t *agents; // owned
    uint32_t count;
} users_t;

static keel_status_t users_ask(const amdgpu_device_t *device, uint64_t address, users_t *users)
{
    hsa_amd_pointer_info_t info;
    *users = (users_t){0};
    KEEL_TRY(amdgpu_agents_of(device->hsa, address, &info, &users->count, &users->agents));
    users->memory = info.agentBaseAddress;
    return NULL;
}

static bool users_have(const users_t *users, hsa_agent_t agent)
{
    for (uint32_t i = 0; i < users->count; i++)
        if (users->agents[i].handle == agent.handle) return true;
    return false;
}

static bool users_have_all(const users_t *users, const amdgpu_device_t *device)
{
    for (uint32_t i = 0; i < device->node_count; i++)
        if (!users_have(users, device->agents[i])) return false;
    return true;
}

keel_status_t amdgpu_access_ask(const amdgpu_device_t *device, uint64_t address, bool *has)
{
    users_t users;
    KEEL_TRY(users_ask(device, address, &users));
    *has = users_have_all(&users, device);
    mem_free(users.agents);
    return NULL;
}

static keel_status_t users_add(const users_t *users, const amdgpu_device_t *device)
{
    uint32_t count = users->count;
    hsa_agent_t *all = mem_alloc((count + device->node_count) * sizeof *all);
    if (!all) return status_no_memory();
    if (count) memcpy(all, users->agents, count * sizeof *all);
    for (uint32_t i = 0; i < device->node_count; i++)
        if (!users_have(users, device->agents[i])) all[count++] = device->agents[i];
    keel_status_t status =
        HSA_CALL(device->hsa, hsa_amd_agents_allow_access, count, all, NULL, (void *)users->memory);
    mem_free(all);
    return status;
}

// HSA takes the whole list, and replaces it.
keel_status_t amdgpu_access_add(const amdgpu_device_t *device, uint64_t address)
{
    static lock_t lock; // for the lists of all memory
    users_t users;
    lock_enter(&lock);
    keel_status_t status = users_ask(device, address, &users);
    if (!status && !users_have_all(&users, device)) status = users_add(&users, device);
    mem_free(users.agents);
    lock_leave(&lock);
    return status;
}
