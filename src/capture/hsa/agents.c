// SPDX-License-Identifier: Apache-2.0
#include "capture/hsa/agents.h"

#include <stdio.h>

#include "trace/event.h"

enum { MOST = 64 };

typedef struct gpu_t {
    hsa_agent_t agent;
    char name[96];
    _Atomic uint32_t copies;
} gpu_t;

static gpu_t gpus[MOST];
static int count;
static gpu_t host = {.name = "host"};

static hsa_status_t agent_seen(hsa_agent_t agent, void *data)
{
    uint32_t device = 0;
    char name[65] = ""; // the runtime writes 64 bytes
    if (hsa.agent_get_info(agent, HSA_AGENT_DEVICE, &device) != 0 || device != HSA_DEVICE_GPU ||
        count == MOST)
        return 0;
    hsa.agent_get_info(agent, HSA_AGENT_NAME, name);
    gpu_t *gpu = &gpus[count];
    gpu->agent = agent;
    snprintf(gpu->name, sizeof gpu->name, "gpu %d (%s)", count++, name);
    return 0;
}

void agents_read(void)
{
    count = 0;
    hsa.iterate_agents(agent_seen, NULL);
}

int agents_gpu(hsa_agent_t agent)
{
    for (int i = 0; i < count; i++)
        if (gpus[i].agent == agent) return i;
    return -1;
}

static gpu_t *gpu_of(hsa_agent_t agent)
{
    int number = agents_gpu(agent);
    return number < 0 ? &host : &gpus[number];
}

const char *agents_name(hsa_agent_t agent)
{
    return gpu_of(agent)->name;
}

uint32_t agents_copies(hsa_agent_t agent)
{
    gpu_t *gpu = gpu_of(agent);
    return trace_queue(&gpu->copies, gpu->name, "copies", NULL);
}
